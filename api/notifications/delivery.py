"""Delivery of waiting notifications: all channels in parallel, the messages of each channel in order.

Messages of a channel that does not answer stay queued in order for the next run; other channels continue. A message
older than `LONGEST_WAIT` is dropped, since its news is outdated.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

import httpx

from gpuplan.api.notifications.channels import Receiver, named, receiver
from gpuplan.api.notifications.webhook_sending import NotTaken, Patience, send, web_client
from gpuplan.api.schemas.channel import ChannelDocument
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.watch_store import Notification, WatchStore
from gpuplan.providers.rate_limit import RateLimit

LONGEST_WAIT = timedelta(days=7)
#: Prefix of Slack channel names, which no settings file uses: the Slack app delivers these itself.
SLACK_CHANNEL_PREFIX = "slack:"
#: Slack accepts one message per second, and short bursts (docs.slack.dev/apis/web-api/rate-limits).
_PER_SECOND: Mapping[str, int | None] = {"slack": 1, "webhook": None}
_BURST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One message that was not delivered; `final` if it never will be."""

    notification: Notification
    error: str
    final: bool


@dataclass(slots=True, kw_only=True)
class Delivered:
    """The result of a delivery run; `elsewhere` counts messages that another process is sending, or was when it died."""

    sent: list[Notification] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    elsewhere: list[Notification] = field(default_factory=list)


def deliver(
    store: WatchStore, channels: Sequence[ChannelDocument], now: datetime, *, patience: Patience | None = None
) -> Delivered:
    """Send the waiting messages and record the results. Raises `StoreFailure` if they cannot be recorded.

    The age of a message is measured at `now`.
    """
    waiting = store.waiting()
    done = Delivered()
    for old in [notification for notification in waiting if now - notification.created_at > LONGEST_WAIT]:
        _give_up(store, old, done)
    due = [
        notification
        for notification in waiting
        if now - notification.created_at <= LONGEST_WAIT and not _sent_to_slack(notification)
    ]
    if due:
        asyncio.run(_Run(store, channels, patience or Patience(), done).every_channel(due))
    return done


def _sent_to_slack(notification: Notification) -> bool:
    return notification.channel.startswith(SLACK_CHANNEL_PREFIX)


def _give_up(store: WatchStore, old: Notification, done: Delivered) -> None:
    at = datetime.now(UTC)
    if not store.hold(old.id, at, at + timedelta(minutes=1)):
        done.elsewhere.append(old)
        return
    error = f"not delivered within {LONGEST_WAIT.days} days; last: {old.last_error or 'never tried'}"
    store.settle(old.id, attempts=0, error=error, given_up_at=at)
    done.failed.append(Failure(notification=old, error=error, final=True))


class _Run:
    """One run over all due messages."""

    def __init__(
        self, store: WatchStore, channels: Sequence[ChannelDocument], patience: Patience, done: Delivered
    ) -> None:
        self.store = store
        self.channels = channels
        self.patience = patience
        self.done = done

    async def every_channel(self, due: Sequence[Notification]) -> None:
        by_channel = groupby(
            sorted(due, key=lambda notification: notification.channel), key=lambda notification: notification.channel
        )
        async with web_client(self.patience) as client:
            await asyncio.gather(*(self._channel(client, name, iter(list(waiting))) for name, waiting in by_channel))

    async def _channel(self, client: httpx.AsyncClient, name: str, due: Iterator[Notification]) -> None:
        try:
            to = receiver(named(self.channels, name))
        except UnusableInput as error:
            self._retain_rest(due, str(error))
            return
        rate_limit = RateLimit(_PER_SECOND[to.kind], burst=_BURST)
        stop_at = time.monotonic() + self.patience.channel_seconds
        for notification in due:
            if time.monotonic() > stop_at:
                reason = f"left for the next run: this one has sent to {name} for {self.patience.channel_seconds:.0f} s"
                self._retain_rest(iter([notification, *due]), reason)
                return
            await asyncio.to_thread(rate_limit.wait)
            down = await self._one(client, to, notification)
            if down is not None:
                self._retain_rest(due, f"left for the next run: {name} does not answer ({down})")
                return

    async def _one(self, client: httpx.AsyncClient, to: Receiver, notification: Notification) -> str | None:
        """The reason why this channel cannot receive anything now, or None."""
        now = datetime.now(UTC)
        if not self.store.hold(notification.id, now, now + timedelta(seconds=2 * self.patience.message_seconds)):
            self.done.elsewhere.append(notification)
            return None
        try:
            attempts = await send(client, to, notification.id, notification.payload, self.patience)
        except NotTaken as error:
            given_up_at = datetime.now(UTC) if error.final else None
            self.store.settle(notification.id, attempts=error.attempts, error=str(error), given_up_at=given_up_at)
            self.done.failed.append(Failure(notification=notification, error=str(error), final=error.final))
            return None if error.final else str(error)
        self.store.settle(notification.id, attempts=attempts, delivered_at=datetime.now(UTC))
        self.done.sent.append(notification)
        return None

    def _retain_rest(self, rest: Iterator[Notification], error: str) -> None:
        for notification in rest:
            self.store.note(notification.id, error)
            self.done.failed.append(Failure(notification=notification, error=error, final=False))
