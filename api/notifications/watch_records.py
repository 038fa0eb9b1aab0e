"""Operations on watches: add with a first plan, list, show, remove, test a channel."""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from gpuplan.api.notifications.capacity_watches import (
    CAPACITY,
    MOST_CAPACITY_WATCHES,
    last_answer,
    looked_up,
    name_of,
    no_answer,
    wanted_by,
    wanted_of,
)
from gpuplan.api.notifications.channels import Receiver, named, receiver
from gpuplan.api.notifications.reported_answer import last_reported, reported_answer_of
from gpuplan.api.notifications.watch_events import event_of
from gpuplan.api.notifications.webhook_sending import NotTaken, Patience, send, web_client
from gpuplan.api.schemas.job import parse_job
from gpuplan.api.schemas.watch import (
    DEFAULT_PERCENT,
    WatchDocument,
    job_at,
    parse_watch,
    refuse_excess,
    watched_job,
)
from gpuplan.api.schemas.watch_answers import (
    CapacityWatch,
    ChannelTest,
    JobWatch,
    Notification,
    ReportedMachines,
    Watch,
    Watches,
    WatchRecord,
)
from gpuplan.api.security.authorization import owner, viewer
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.store.watch_store import Notification as StoredNotification
from gpuplan.catalog.store.watch_store import Watch as StoredWatch
from gpuplan.planner.model.wire import wire
from gpuplan.providers.error_redaction import redacted_text

#: At about 10 ms each, planning them all adds less than half a minute to a refresh.
MOST_WATCHES = 2_000


def add(
    context: ServiceContext, plans: PlanService, live_queries: LiveQueries, document: JsonObject, now: datetime
) -> Watch:
    """Keeps a watch and gives it with the answer that changes are told against; the same watch twice is one.

    Raises `UnusableInput` for a job that cannot be planned or machines that have no price, an unknown channel, and above
    `MOST_WATCHES` or `MOST_CAPACITY_WATCHES`.
    """
    asked, job = parse_watch(document, now=now)
    for channel in asked.channels:
        named(context.channels, channel)
    refuse_excess(context.store.watching.count(), MOST_WATCHES)
    if asked.job is None or job is None:
        watch = capacity_watch(context, live_queries, asked, now)
    else:
        stored_job = watched_job(asked.job, job)
        parse_job(job_at(stored_job, now), now=now)
        answer = plans.plan(job_at(stored_job, now), now=now)
        watch = StoredWatch(
            id="",
            name=asked.name or job.name,
            job=stored_job,
            channels=asked.channels,
            threshold_percent=asked.cheaper_by_percent or DEFAULT_PERCENT,
            created_at=now,
            last_told=wire(reported_answer_of(answer, now)),
        )
    saved = context.store.watching.save(_with_id(watch, owner()), owner=owner())
    return replace(shown(saved), warnings=tuple(_warnings(context, saved)))


def capacity_watch(
    context: ServiceContext, live_queries: LiveQueries, asked: WatchDocument, now: datetime
) -> StoredWatch:
    """A watch for machines, without an id, with what the clouds say now, or why nothing was learned."""
    refuse_excess(sum(CAPACITY in watch.job for watch in context.store.watching.every()), MOST_CAPACITY_WATCHES)
    wanted, columns, problem = wanted_of(asked), context.columns(None), ""
    try:
        reported: ReportedMachines = looked_up(live_queries, columns, wanted, now)
    except ProviderFailure as failure:
        reported, problem = no_answer(columns, now), redacted_text(failure)
    return StoredWatch(
        id="",
        name=asked.name or name_of(wanted),
        job={CAPACITY: wire(wanted)},
        channels=asked.channels,
        threshold_percent=0.0,
        created_at=now,
        last_told=wire(reported),
        problem=problem,
    )


def _with_id(watch: StoredWatch, owner_id: str | None) -> StoredWatch:
    """A deterministic id for the same watch of the same owner; different owners have separate watches."""
    what: tuple[object, ...] = (watch.name, watch.job, watch.channels, watch.threshold_percent)
    if owner_id is not None:
        what = (*what, owner_id)
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return replace(watch, id=f"watch-{digest[:16]}")


def _warnings(context: ServiceContext, watch: StoredWatch) -> list[str]:
    """Channels that could not be told anything from here: the nightly run may have other variables."""
    warnings = [watch.problem] if watch.problem else []
    for name in watch.channels:
        try:
            receiver(named(context.channels, name))
        except UnusableInput as error:
            warnings.append(f"nothing can be sent to {name} from here yet: {error}")
    return warnings


def listed(context: ServiceContext) -> Watches:
    """Every watch, the oldest first."""
    return Watches(watches=tuple(map(shown, context.store.watching.every(viewer()))))


def one(context: ServiceContext, watch_id: str) -> Watch:
    """One watch with its job and its notifications, the newest first. Raises `NotStored` if there is none."""
    stored, sent = context.store.watching.one(watch_id, viewer())
    watch = replace(shown(stored), notifications=tuple(map(_notification, sent)))
    return replace(watch, job=stored.job) if isinstance(watch, JobWatch) else watch


def shown(watch: StoredWatch) -> Watch:
    """A watch, without its job."""
    if CAPACITY in watch.job:
        return _shown(CapacityWatch, watch, capacity=wanted_by(watch), last_told=last_answer(watch))
    return _shown(JobWatch, watch, cheaper_by_percent=watch.threshold_percent, last_told=last_reported(watch))


def _shown[Shown: WatchRecord](kind: Callable[..., Shown], watch: StoredWatch, **of_kind: object) -> Shown:
    return kind(
        id=watch.id,
        name=watch.name,
        channels=watch.channels,
        created_at=watch.created_at,
        state="ended" if watch.ended_at else "watching",
        ended_at=watch.ended_at,
        checked_at=watch.checked_at,
        problem=watch.problem or None,
        **of_kind,
    )


def _notification(sent: StoredNotification) -> Notification:
    return Notification(
        id=sent.id,
        event=event_of(sent),
        channel=sent.channel,
        snapshot_id=sent.snapshot_id,
        summary=sent.payload["data"]["summary"],
        created_at=sent.created_at,
        state="delivered" if sent.delivered_at else "given_up" if sent.given_up_at else "waiting",
        delivered_at=sent.delivered_at,
        attempts=sent.attempts,
        last_error=sent.last_error or None,
    )


def try_out(context: ServiceContext, channel: str, now: datetime, *, patience: Patience | None = None) -> ChannelTest:
    """Sends a message that only says that it arrived.

    Raises `UnusableInput` for an unknown channel or invalid variables, `ProviderFailure` if the message is not
    accepted.
    """
    to = receiver(named(context.channels, channel))
    data = {"event": "test", "channel": channel, "summary": f"gpuplan can tell the channel {channel} of its watches."}
    payload = {"type": "watch.test", "timestamp": now.isoformat(), "data": data}
    attempts = asyncio.run(_send_one(to, f"test-{uuid.uuid4().hex}", payload, patience or Patience()))
    return ChannelTest(channel=channel, kind=to.kind, delivered=True, attempts=attempts)


async def _send_one(to: Receiver, message_id: str, payload: JsonObject, patience: Patience) -> int:
    async with web_client(patience) as client:
        try:
            return await send(client, to, message_id, payload, patience)
        except NotTaken as error:
            raise ProviderFailure(f"channel {to.name}: {error}") from None
