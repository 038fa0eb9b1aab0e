"""How the service stops: told to, it says so, goes on for a grace, lets what is under way finish, and ends with 0."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

log = logging.getLogger("gpuplan.serve")


class GracefulServer(uvicorn.Server):
    """Stops on the first SIGTERM or SIGINT, at once on the second.

    From the first on `stopping` has been called, so that readiness fails and answers ask for a new connection. New
    requests are still taken for `drain_seconds`, until every balancer has heard of it; a person at the keyboard
    (SIGINT) waits for no balancer.
    """

    def __init__(self, config: uvicorn.Config, *, stopping: Callable[[], None], drain_seconds: float = 0.0) -> None:
        """With what to call when it is told to stop; it may be called from a signal handler."""
        super().__init__(config)
        self._stopping, self._drain_seconds = stopping, drain_seconds
        self._signal: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As always, and from then on there is a loop that can wait."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: the first begins the end, the second is it."""
        if self._signal is not None:
            os._exit(128 + sig)  # threads that plan would be waited for otherwise
        self._signal = sig
        self._stopping()
        if sig == signal.SIGINT:
            # What a shell expects of an interrupted command; SIGTERM ends with 0.
            self._captured_signals.append(sig)
        if sig == signal.SIGINT or self._drain_seconds <= 0 or self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        log.info("told to stop: answering for another %g seconds", self._drain_seconds)
        asyncio.get_running_loop().call_later(self._drain_seconds, self._close)

    def _close(self) -> None:
        self.should_exit = True
