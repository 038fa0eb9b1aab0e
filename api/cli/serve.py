"""`gpuplan serve`: the HTTP service on this machine."""

import gc
import os
import socket
import sys
from typing import Annotated

import typer

from api.cli.documents import open_gpuplan
from api.cli.letting_in import access_for, checked_names, hosts_for
from api.cli.plan import InventoryFile, SettingsFile
from catalog.errors import UnusableInput

#: A fifth of Python's own: short questions then pass by plans under way, at a hundredth of a core.
SWITCH_SECONDS = 0.001


#: What the kernel holds of an answer that is not read yet; unless told it takes up to 4 MiB of each connection.
SEND_BUFFER_BYTES = 256 * 1024


def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8080,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Listen beyond this machine although nobody needs a key.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            envvar="GPUPLAN_ALLOW_HOST",
            help="A name by which a proxy makes it known; may be repeated. In the variable blanks stand between names.",
        ),
    ] = None,
    share_port: Annotated[
        bool, typer.Option("--share-port", help="Let further processes with this option listen on the same port.")
    ] = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """The HTTP service: plans, estimates and the catalogue. Open on loopback; elsewhere who has a key is let in."""
    names = checked_names(allow_host or ())
    from api.planning_processes.fork_server import begin_loading

    # Beside what this process loads itself.
    begin_loading()
    from api.planning_processes.budget import budget
    from api.planning_processes.pool import PlanningProcesses
    from api.slack.settings import slack_settings
    from api.telemetry.settings import telemetry_settings
    from providers.proxies import check_proxies

    check_proxies()
    telemetry, slack = telemetry_settings(), slack_settings()
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    access = access_for(gpuplan, host=host, names=names, insecure=insecure_no_auth)
    allowed = budget()
    listener = listen(host, port, share=share_port)
    gpuplan.warm_up()
    processes = PlanningProcesses(gpuplan.environment, allowed)
    gpuplan.plan_in(processes)

    import uvicorn

    from api.http.protocol import BoundedProtocol
    from api.http.server import GracefulServer
    from api.http.service import create_service
    from api.telemetry.watching import start_watching

    watching = start_watching(telemetry)
    hosts = hosts_for(host, names, insecure=insecure_no_auth, guarded=access.gate is not None)
    service = create_service(gpuplan, hosts=hosts, access=access, slack=slack)
    watching.watch(service)
    config = uvicorn.Config(
        service,
        http=BoundedProtocol,
        # uvicorn trusts whoever asks from this machine; who may say where a request comes from is said, or nobody may.
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
        log_config=None,
        log_level=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(telemetry.finish_seconds) or 1,
    )
    # The event loop waits this long for a thread that plans to hand the interpreter over, at every step of a request.
    sys.setswitchinterval(SWITCH_SECONDS)
    # What is loaded by now stays for good: looking through it again at each full collection stops every request 50 ms.
    gc.collect()
    gc.freeze()
    server = GracefulServer(config, stopping=service.state.health.stop, drain_seconds=telemetry.drain_seconds)
    try:
        processes.wait_until_ready()
        server.run(sockets=[listener])
    finally:
        processes.stop()


def listen(host: str, port: int, *, share: bool = False) -> socket.socket:
    """A bound socket, or `UnusableInput` that says why there is none (port in use, unknown host ...).

    Of processes that `share` a port each has its own queue of connections, and the kernel spreads them.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, reuse_port=share)
    except (OSError, ValueError) as error:  # ValueError: the system cannot share ports
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot listen on {host[:80]!r} port {port}: {reason}; accepted: a free port of this machine"
        raise UnusableInput.at("port", message=message) from error
    # Accepted connections inherit these; without the first Nagle's algorithm holds back each answer's last packet until
    # the client's delayed acknowledgement, 40 ms later (asyncio sets it only on sockets that name their protocol).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener
