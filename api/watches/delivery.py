"""Everything that waits to be told, out to its channels: all channels at once, one message after the other in each.

A channel that does not answer keeps its messages for the next run, in their order; the others go on. A message
that is older than `LONGEST_WAIT` is given up, since by then its news is wrong.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

import httpx

from api.documents.channel import ChannelDocument
from api.watches.channels import Receiver, named, receiver
from api.watches.sending import NotTaken, Patience, send, web_client
from catalog.errors import UnusableInput
from catalog.notifications import Notification
from catalog.watch_store import WatchStore
from providers.pace import Pace

LONGEST_WAIT = timedelta(days=7)
#: What names of channels in Slack begin with that no settings file has: a service with Slack tells them itself.
TOLD_IN_SLACK = "slack:"
#: Slack takes one message a second, and short bursts (docs.slack.dev/apis/web-api/rate-limits).
_PER_SECOND: Mapping[str, int | None] = {"slack": 1, "webhook": None}
_BURST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One message that has not arrived: `final` if it never will."""

    notification: Notification
    error: str
    final: bool


@dataclass(slots=True, kw_only=True)
class Delivered:
    """How a run of deliveries went; `elsewhere` are being sent by another process, or were when it died."""

    sent: list[Notification] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    elsewhere: list[Notification] = field(default_factory=list)


def deliver(
    store: WatchStore, channels: Sequence[ChannelDocument], now: datetime, *, patience: Patience | None = None
) -> Delivered:
    """Sends what waits and notes how that went. Raises `StoreFailure` if that cannot be noted.

    `now` is what the age of a message is counted to.
    """
    waiting = store.waiting()
    done = Delivered()
    for old in [each for each in waiting if now - each.created_at > LONGEST_WAIT]:
        _give_up(store, old, done)
    due = [each for each in waiting if now - each.created_at <= LONGEST_WAIT and not _told_in_slack(each)]
    if due:
        asyncio.run(_Run(store, channels, patience or Patience(), done).every_channel(due))
    return done


def _told_in_slack(each: Notification) -> bool:
    return each.channel.startswith(TOLD_IN_SLACK)


def _give_up(store: WatchStore, old: Notification, done: Delivered) -> None:
    at = datetime.now(UTC)
    if not store.hold(old.id, at, at + timedelta(minutes=1)):
        done.elsewhere.append(old)
        return
    error = f"not delivered within {LONGEST_WAIT.days} days; last: {old.last_error or 'never tried'}"
    store.settle(old.id, attempts=0, error=error, given_up_at=at)
    done.failed.append(Failure(notification=old, error=error, final=True))


class _Run:
    """One run over everything that is due."""

    def __init__(
        self, store: WatchStore, channels: Sequence[ChannelDocument], patience: Patience, done: Delivered
    ) -> None:
        self.store = store
        self.channels = channels
        self.patience = patience
        self.done = done

    async def every_channel(self, due: Sequence[Notification]) -> None:
        by_channel = groupby(sorted(due, key=lambda each: each.channel), key=lambda each: each.channel)
        async with web_client(self.patience) as client:
            await asyncio.gather(*(self._channel(client, name, iter(list(each))) for name, each in by_channel))

    async def _channel(self, client: httpx.AsyncClient, name: str, due: Iterator[Notification]) -> None:
        try:
            to = receiver(named(self.channels, name))
        except UnusableInput as error:
            self._keep_rest(due, str(error))
            return
        pace = Pace(_PER_SECOND[to.kind], burst=_BURST)
        stop_at = time.monotonic() + self.patience.channel_seconds
        for each in due:
            if time.monotonic() > stop_at:
                said = f"left for the next run: this one has sent to {name} for {self.patience.channel_seconds:.0f} s"
                self._keep_rest(iter([each, *due]), said)
                return
            await asyncio.to_thread(pace.wait)
            down = await self._one(client, to, each)
            if down is not None:
                self._keep_rest(due, f"left for the next run: {name} does not answer ({down})")
                return

    async def _one(self, client: httpx.AsyncClient, to: Receiver, each: Notification) -> str | None:
        """What keeps this channel from taking anything now, if something does."""
        now = datetime.now(UTC)
        if not self.store.hold(each.id, now, now + timedelta(seconds=2 * self.patience.message_seconds)):
            self.done.elsewhere.append(each)
            return None
        try:
            attempts = await send(client, to, each.id, each.payload, self.patience)
        except NotTaken as error:
            given_up_at = datetime.now(UTC) if error.final else None
            self.store.settle(each.id, attempts=error.attempts, error=str(error), given_up_at=given_up_at)
            self.done.failed.append(Failure(notification=each, error=str(error), final=error.final))
            return None if error.final else str(error)
        self.store.settle(each.id, attempts=attempts, delivered_at=datetime.now(UTC))
        self.done.sent.append(each)
        return None

    def _keep_rest(self, rest: Iterator[Notification], error: str) -> None:
        for each in rest:
            self.store.note(each.id, error)
            self.done.failed.append(Failure(notification=each, error=error, final=False))
