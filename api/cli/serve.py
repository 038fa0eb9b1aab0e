"""`gpuplan serve`: the HTTP service on this machine."""

import gc
import ipaddress
import logging
import socket
from typing import Annotated

import typer

from api.cli.documents import open_gpuplan
from api.cli.plan import InventoryFile, SettingsFile
from catalog.errors import UnusableInput


def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8080,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Listen beyond this machine although nobody has to log in.")
    ] = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """The HTTP service: plans, estimates and the catalogue."""
    if not insecure_no_auth and not is_loopback(host):
        message = (
            f"{host[:80]!r} can be reached from other machines and gpuplan has no authentication yet, so anyone there could"
            " use it; accepted: a loopback address, or --insecure-no-auth behind a proxy that authenticates"
        )
        raise UnusableInput.at("host", message=message)
    listener = listen(host, port)
    gpuplan = open_gpuplan(inventory=inventory, settings=settings)
    gpuplan.warm_up()

    import uvicorn

    from api.http.edge import LOOPBACK_HOSTS
    from api.http.service import create_service

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    service = create_service(gpuplan, hosts=None if insecure_no_auth else LOOPBACK_HOSTS | {host.lower()})
    config = uvicorn.Config(service, log_level="info", access_log=False, server_header=False)
    # What is loaded by now stays for good: looking through it again at each full collection stops every request 50 ms.
    gc.collect()
    gc.freeze()
    uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, or `UnusableInput` that says why there is none (port in use, unknown host ...)."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"cannot listen on {host[:80]!r} port {port}: {reason}; accepted: a free port of this machine"
        raise UnusableInput.at("port", message=message) from error
    # Accepted connections inherit this; without it Nagle's algorithm holds back each answer's last packet until
    # the client's delayed acknowledgement, 40 ms later (asyncio sets it only on sockets that name their protocol).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
