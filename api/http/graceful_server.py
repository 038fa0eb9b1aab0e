"""Graceful shutdown: report it, keep serving during a grace period, finish running requests, and exit with status 0."""

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
    """Shuts down gracefully on the first SIGTERM or SIGINT, immediately on the second.

    The first signal calls `stopping`, so that readiness fails and responses ask clients to reconnect. New requests are
    still accepted for `drain_seconds`, until every load balancer has noticed. After SIGINT (a person at the keyboard)
    this period is skipped.
    """

    def __init__(self, config: uvicorn.Config, *, stopping: Callable[[], None], drain_seconds: float = 0.0) -> None:
        """`stopping` is called when shutdown begins; it may be called from a signal handler."""
        super().__init__(config)
        self._stopping, self._drain_seconds = stopping, drain_seconds
        self._signal: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, store the event loop for the grace period, and log the addresses."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            log.info("listening at http://%s:%d/", f"[{host}]" if listener.family == socket.AF_INET6 else host, port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal: the first starts the graceful shutdown, the second ends the process."""
        if self._signal is not None:
            os._exit(128 + sig)  # threads that plan would be waited for otherwise
        self._signal = sig
        self._stopping()
        if sig == signal.SIGINT:
            # Shells expect this of an interrupted command; SIGTERM ends with 0.
            self._captured_signals.append(sig)
        if sig == signal.SIGINT or self._drain_seconds <= 0 or self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        log.info("shutting down: answering for another %g seconds", self._drain_seconds)
        asyncio.get_running_loop().call_later(self._drain_seconds, self._close)

    def _close(self) -> None:
        self.should_exit = True
