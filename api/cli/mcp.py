"""`gpuplan mcp`: an MCP server over standard input and output, or over HTTP on this machine."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan
from gpuplan.api.cli.plan import InventoryFile, SettingsFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.catalog.runtime.extras import require_extra


def mcp(
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP at 127.0.0.1/mcp instead of standard input and output.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port of --http; 0 takes a free one.")] = 8765,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Serve tools for agents (Model Context Protocol): plan, why, estimate, offers, history, replan."""
    require_extra("mcp", "mcp")
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    gpuplan.warm_up()

    from gpuplan.api.mcp.server import create_mcp, over_http, over_stdio
    from gpuplan.api.observability.structured_logs import configure_logs
    from gpuplan.api.observability.telemetry_settings import telemetry_settings

    telemetry = telemetry_settings()
    server = create_mcp(gpuplan)
    # The protocol uses standard output. Logs go to standard error; set up after the server's library sets up its own.
    configure_logs(log_format=telemetry.log_format, level=telemetry.log_level)
    if not http:
        over_stdio(server, answers())
        return

    import uvicorn

    from gpuplan.api.cli.listening_socket import listen

    listener = listen("127.0.0.1", port)
    config = uvicorn.Config(over_http(server), log_config=None, log_level=None, access_log=False, server_header=False)
    typer.echo(f"gpuplan: answering agents at http://127.0.0.1:{listener.getsockname()[1]}/mcp", err=True)
    uvicorn.Server(config).run(sockets=[listener])
