"""`gpuplan mcp`: gpuplan as tools for agents, over standard input and output or HTTP on this machine."""

from typing import Annotated

import typer

from api.cli.documents import open_gpuplan
from api.cli.plan import InventoryFile, SettingsFile
from api.cli.standard_output import answers


def mcp(
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP at /mcp on 127.0.0.1 instead of standard input and output.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port with --http; 0 takes a free one.")] = 8765,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Tools for agents (Model Context Protocol): plan, why, estimate, offers, history, replan."""
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    gpuplan.warm_up()

    from api.mcp.server import create_mcp, over_http, over_stdio
    from api.telemetry.logs import configure_logs
    from api.telemetry.settings import telemetry_settings

    telemetry = telemetry_settings()
    server = create_mcp(gpuplan)
    # Standard output is the protocol's; logs go to standard error, after the server's library has set up its own.
    configure_logs(log_format=telemetry.log_format, level=telemetry.log_level)
    if not http:
        over_stdio(server, answers())
        return

    import uvicorn

    from api.cli.serve import listen

    listener = listen("127.0.0.1", port)
    config = uvicorn.Config(over_http(server), log_config=None, log_level=None, access_log=False, server_header=False)
    typer.echo(f"gpuplan: answering agents at http://127.0.0.1:{listener.getsockname()[1]}/mcp", err=True)
    uvicorn.Server(config).run(sockets=[listener])
