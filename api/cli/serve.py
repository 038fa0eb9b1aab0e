"""`gpuplan serve`: run the HTTP service."""

import gc
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan
from gpuplan.api.cli.listening_socket import listen
from gpuplan.api.cli.plan import InventoryFile, SettingsFile
from gpuplan.api.cli.serve_authentication import access_for, checked_names, hosts_for
from gpuplan.catalog.runtime.extras import require_extra

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gpuplan.api.http.graceful_server import GracefulServer
    from gpuplan.api.observability.telemetry_settings import TelemetrySettings

#: A fifth of Python's default: short requests overtake running plans sooner, at a cost of 1 % of a core.
SWITCH_SECONDS = 0.001


def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8080,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Listen beyond this machine without authentication.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            envvar="GPUPLAN_ALLOW_HOST",
            help="A host name under which a proxy serves it; repeatable. The variable separates names by blanks.",
        ),
    ] = None,
    share_port: Annotated[
        bool, typer.Option("--share-port", help="Let other processes with this option share the port.")
    ] = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Run the HTTP service. On loopback it needs no key; on any other address it does."""
    require_extra("serve", "fastapi")
    names = checked_names(allow_host or ())
    from gpuplan.api.jobs.planning_processes.fork_server import begin_loading

    # Load while this process imports its own modules.
    begin_loading()
    from gpuplan.api.jobs.planning_processes.process_pool import PlanningProcesses
    from gpuplan.api.jobs.planning_processes.question_limits import budget
    from gpuplan.api.observability.telemetry_settings import telemetry_settings
    from gpuplan.api.slack.slack_settings import slack_settings
    from gpuplan.providers.proxy_settings import check_proxies

    check_proxies()
    telemetry, slack = telemetry_settings(), slack_settings()
    if slack is not None:
        require_extra("serve with Slack", "slack_bolt")
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    access = access_for(gpuplan, host=host, names=names, insecure=insecure_no_auth)
    allowed = budget()
    listener = listen(host, port, share=share_port)
    gpuplan.warm_up()
    processes = PlanningProcesses(gpuplan.context.environment, allowed)
    gpuplan.planner.use(processes)

    from gpuplan.api.http.http_service import create_service
    from gpuplan.api.observability.service_telemetry import start_watching

    watching = start_watching(telemetry)
    hosts = hosts_for(host, names, insecure=insecure_no_auth, guarded=access.authenticator is not None)
    service = create_service(gpuplan, hosts=hosts, access=access, slack=slack)
    watching.watch(service)
    _tune_the_interpreter()
    try:
        processes.wait_until_ready()
        _server(service, telemetry).run(sockets=[listener])
    finally:
        processes.stop()


def _tune_the_interpreter() -> None:
    # The event loop waits up to this long for a planning thread to release the GIL, at every step of a request.
    sys.setswitchinterval(SWITCH_SECONDS)
    # Loaded modules stay for good: scanning them at every full collection would stop every request for 50 ms.
    gc.collect()
    gc.freeze()
    # Python's own threshold: that of a command would make a few requests wait longer.
    gc.set_threshold(700, 10, 10)


def _server(service: "FastAPI", telemetry: "TelemetrySettings") -> "GracefulServer":
    import uvicorn

    from gpuplan.api.http.bounded_protocol import BoundedProtocol
    from gpuplan.api.http.graceful_server import GracefulServer

    config = uvicorn.Config(
        service,
        http=BoundedProtocol,
        # By default uvicorn trusts forwarded addresses from this machine; here trusted proxies must be configured.
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
        log_config=None,
        log_level=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(telemetry.finish_seconds) or 1,
    )
    return GracefulServer(config, stopping=service.state.health.stop, drain_seconds=telemetry.drain_seconds)
