"""Ports for processes that must be told theirs before they listen."""

import random
import socket

#: Below those that Linux, macOS and Windows give to whoever connects or asks for any port: one that is free here is
#: not taken by another test's connection before its process listens.
_ASKED_FOR_BY_NAME = range(12_000, 32_000)


def free_port() -> int:
    """One that nobody listens on."""
    while True:
        port = random.SystemRandom().choice(_ASKED_FOR_BY_NAME)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
