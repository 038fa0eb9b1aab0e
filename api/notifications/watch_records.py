"""Operations on watches: add with a first plan, list, show, remove, test a channel."""

import asyncio
import hashlib
import json
import uuid
from dataclasses import replace
from datetime import datetime

from gpuplan.api.notifications.capacity_watches import (
    CAPACITY,
    MOST_CAPACITY_WATCHES,
    looked_up,
    name_of,
    nothing_learned,
    wanted_of,
)
from gpuplan.api.notifications.channels import Receiver, named, receiver
from gpuplan.api.notifications.reported_answer import reported_answer_of
from gpuplan.api.notifications.watch_events import TEST
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
from gpuplan.api.security.authorization import owner, viewer
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.store.stored_notifications import Notification
from gpuplan.catalog.store.stored_watches import Watch
from gpuplan.providers.error_redaction import redacted_text

#: At about 10 ms each, planning them all adds less than half a minute to a refresh.
MOST_WATCHES = 2_000


def add(
    context: ServiceContext, plans: PlanService, live_queries: LiveQueries, document: JsonObject, now: datetime
) -> JsonObject:
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
        watch = Watch(
            id="",
            name=asked.name or job.name,
            job=stored_job,
            channels=asked.channels,
            threshold_percent=asked.cheaper_by_percent or DEFAULT_PERCENT,
            created_at=now,
            last_told=reported_answer_of(answer, now),
        )
    saved = context.store.watching.save(_with_id(watch, owner()), owner=owner())
    return shown(saved) | {"warnings": [*_warnings(context, saved)]}


def capacity_watch(context: ServiceContext, live_queries: LiveQueries, asked: WatchDocument, now: datetime) -> Watch:
    """A watch for machines, without an id, with what the clouds say now, or why nothing was learned."""
    refuse_excess(sum(CAPACITY in watch.job for watch in context.store.watching.every()), MOST_CAPACITY_WATCHES)
    wanted, columns, problem = wanted_of(asked), context.columns(None), ""
    try:
        reported = looked_up(live_queries, columns, wanted, now)
    except ProviderFailure as failure:
        reported, problem = nothing_learned(columns, now), redacted_text(failure)
    return Watch(
        id="",
        name=asked.name or name_of(wanted),
        job={CAPACITY: wanted},
        channels=asked.channels,
        threshold_percent=0.0,
        created_at=now,
        last_told=reported,
        problem=problem,
    )


def _with_id(watch: Watch, owner_id: str | None) -> Watch:
    """A deterministic id for the same watch of the same owner; different owners have separate watches."""
    what: tuple[object, ...] = (watch.name, watch.job, watch.channels, watch.threshold_percent)
    if owner_id is not None:
        what = (*what, owner_id)
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return replace(watch, id=f"watch-{digest[:16]}")


def _warnings(context: ServiceContext, watch: Watch) -> list[str]:
    """Channels that could not be told anything from here: the nightly run may have other variables."""
    warnings = [watch.problem] if watch.problem else []
    for name in watch.channels:
        try:
            receiver(named(context.channels, name))
        except UnusableInput as error:
            warnings.append(f"nothing can be sent to {name} from here yet: {error}")
    return warnings


def listed(context: ServiceContext) -> JsonObject:
    """Every watch, the oldest first."""
    return {"watches": [shown(stored_watch) for stored_watch in context.store.watching.every(viewer())]}


def one(context: ServiceContext, watch_id: str) -> JsonObject:
    """One watch with its job and all it had to say, the newest first. Raises `NotStored` if there is none."""
    watch, notifications = context.store.watching.one(watch_id, viewer())
    job = {} if CAPACITY in watch.job else {"job": watch.job}
    return shown(watch) | job | {"notifications": [notification(sent) for sent in notifications]}


def shown(watch: Watch) -> JsonObject:
    """A watch as JSON, without its job."""
    if CAPACITY in watch.job:
        kind: JsonObject = {"capacity": watch.job[CAPACITY]}
    else:
        kind = {"cheaper_by_percent": watch.threshold_percent}
    return {
        "id": watch.id,
        "name": watch.name,
        "channels": list(watch.channels),
        **kind,
        "created_at": watch.created_at.isoformat(),
        "state": "ended" if watch.ended_at else "watching",
        "ended_at": watch.ended_at.isoformat() if watch.ended_at else None,
        "checked_at": watch.checked_at.isoformat() if watch.checked_at else None,
        "problem": watch.problem or None,
        "last_told": watch.last_told,
    }


def notification(notification: Notification) -> JsonObject:
    """A notification as JSON; `state` is waiting, delivered or given_up."""
    state = "delivered" if notification.delivered_at else "given_up" if notification.given_up_at else "waiting"
    return {
        "id": notification.id,
        "event": notification.event,
        "channel": notification.channel,
        "snapshot_id": notification.snapshot_id,
        "summary": notification.payload["data"]["summary"],
        "created_at": notification.created_at.isoformat(),
        "state": state,
        "delivered_at": notification.delivered_at.isoformat() if notification.delivered_at else None,
        "attempts": notification.attempts,
        "last_error": notification.last_error or None,
    }


def try_out(context: ServiceContext, channel: str, now: datetime, *, patience: Patience | None = None) -> JsonObject:
    """Sends a message that only says that it arrived.

    Raises `UnusableInput` for an unknown channel or invalid variables, `ProviderFailure` if the message is not
    accepted.
    """
    to = receiver(named(context.channels, channel))
    data = {"event": TEST, "channel": channel, "summary": f"gpuplan can tell the channel {channel} of its watches."}
    payload = {"type": f"watch.{TEST}", "timestamp": now.isoformat(), "data": data}
    attempts = asyncio.run(_send_one(to, f"test-{uuid.uuid4().hex}", payload, patience or Patience()))
    return {"channel": channel, "kind": to.kind, "delivered": True, "attempts": attempts}


async def _send_one(to: Receiver, message_id: str, payload: JsonObject, patience: Patience) -> int:
    async with web_client(patience) as client:
        try:
            return await send(client, to, message_id, payload, patience)
        except NotTaken as error:
            raise ProviderFailure(f"channel {to.name}: {error}") from None
