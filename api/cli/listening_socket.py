"""The socket that `gpuplan serve` and `gpuplan mcp --http` listen on."""

import socket

from gpuplan.catalog.runtime.errors import UnusableInput

#: Send buffer per connection in bytes; Linux's default grows to 4 MiB per connection.
SEND_BUFFER_BYTES = 256 * 1024


def listen(host: str, port: int, *, share: bool = False) -> socket.socket:
    """A bound socket. Raises `UnusableInput` with the reason (port in use, unknown host ...).

    With `share`, several processes listen on one port and the kernel spreads connections over their queues.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, reuse_port=share)
    except (OSError, ValueError) as error:  # ValueError: the system cannot share ports
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot listen on {host[:80]!r} port {port}: {reason}; accepted: a free port of this machine"
        raise UnusableInput.at("port", message=message) from error
    # Accepted connections inherit these. Without the first, Nagle's algorithm delays each answer's last packet until
    # the client's delayed acknowledgement, 40 ms later (asyncio sets it only on sockets that name their protocol).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener
