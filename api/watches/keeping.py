"""Watches as users handle them: added with the plan that they start from, listed, shown, removed, tried out."""

import asyncio
import hashlib
import json
import uuid
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.documents.job import parse_job
from api.documents.watch import job_at, parse_watch, refuse_too_many, watched_job
from api.identity.asking import owner, viewer
from api.watches.channels import Receiver, named, receiver
from api.watches.events import TEST
from api.watches.sending import NotTaken, Patience, send, web_client
from api.watches.told import told_of
from catalog.errors import ProviderFailure, UnusableInput
from catalog.notifications import Notification
from catalog.watches import Watch

if TYPE_CHECKING:
    from api.questions.watches import Watches

Document = dict[str, Any]

#: At some 10 ms each, planning them all adds less than half a minute to a refresh.
MOST_WATCHES = 2_000


def add(gpuplan: "Watches", document: Document, now: datetime) -> Document:
    """Keeps a watch and gives it with the answer that changes are told against; the same watch twice is one.

    Raises `UnusableInput` for a job that nobody can plan, an unknown channel, and past `MOST_WATCHES`.
    """
    asked, job = parse_watch(document, now=now)
    for channel in asked.channels:
        named(gpuplan.channels, channel)
    refuse_too_many(gpuplan.store.watching.count(), MOST_WATCHES)
    kept_job = watched_job(asked.job, job)
    parse_job(job_at(kept_job, now), now=now)
    answer = gpuplan.plan(job_at(kept_job, now), now=now)
    watch = Watch(
        id="",
        name=asked.name or job.name,
        job=kept_job,
        channels=asked.channels,
        threshold_percent=asked.cheaper_by_percent,
        created_at=now,
        last_told=told_of(answer, now),
    )
    kept = gpuplan.store.watching.save(_with_id(watch, owner()), owner=owner())
    return shown(kept) | {"warnings": [*_warnings(gpuplan, kept)]}


def _with_id(watch: Watch, owner_id: str | None) -> Watch:
    """The same watch of the same owner has the same id; of another owner it is another, which each may end."""
    what: tuple[object, ...] = (watch.name, watch.job, watch.channels, watch.threshold_percent)
    if owner_id is not None:
        what = (*what, owner_id)
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return replace(watch, id=f"watch-{digest[:16]}")


def _warnings(gpuplan: "Watches", watch: Watch) -> list[str]:
    """Channels that could not be told anything from here: the nightly run may have other variables."""
    found = []
    for name in watch.channels:
        try:
            receiver(named(gpuplan.channels, name))
        except UnusableInput as error:
            found.append(f"nothing can be sent to {name} from here yet: {error}")
    return found


def listed(gpuplan: "Watches") -> Document:
    """Every watch, the oldest first."""
    return {"watches": [shown(each) for each in gpuplan.store.watching.every(viewer())]}


def one(gpuplan: "Watches", watch_id: str) -> Document:
    """One watch with its job and all it had to say, the newest first. Raises `NotStored` if there is none."""
    watch, said = gpuplan.store.watching.one(watch_id, viewer())
    return shown(watch) | {"job": watch.job, "notifications": [notification(each) for each in said]}


def shown(watch: Watch) -> Document:
    """A watch as JSON, without its job."""
    return {
        "id": watch.id,
        "name": watch.name,
        "channels": list(watch.channels),
        "cheaper_by_percent": watch.threshold_percent,
        "created_at": watch.created_at.isoformat(),
        "state": "ended" if watch.ended_at else "watching",
        "ended_at": watch.ended_at.isoformat() if watch.ended_at else None,
        "checked_at": watch.checked_at.isoformat() if watch.checked_at else None,
        "problem": watch.problem or None,
        "last_told": watch.last_told,
    }


def notification(each: Notification) -> Document:
    """A notification as JSON; `state` is waiting, delivered or given_up."""
    state = "delivered" if each.delivered_at else "given_up" if each.given_up_at else "waiting"
    return {
        "id": each.id,
        "event": each.event,
        "channel": each.channel,
        "snapshot_id": each.snapshot_id,
        "summary": each.payload["data"]["summary"],
        "created_at": each.created_at.isoformat(),
        "state": state,
        "delivered_at": each.delivered_at.isoformat() if each.delivered_at else None,
        "attempts": each.attempts,
        "last_error": each.last_error or None,
    }


def try_out(gpuplan: "Watches", channel: str, now: datetime, *, patience: Patience | None = None) -> Document:
    """Sends a message that only says that it arrived.

    Raises `UnusableInput` for an unknown channel or what its variables hold, `ProviderFailure` if nobody takes it.
    """
    to = receiver(named(gpuplan.channels, channel))
    data = {"event": TEST, "channel": channel, "summary": f"gpuplan can tell the channel {channel} of its watches."}
    payload = {"type": f"watch.{TEST}", "timestamp": now.isoformat(), "data": data}
    attempts = asyncio.run(_send_one(to, f"test-{uuid.uuid4().hex}", payload, patience or Patience()))
    return {"channel": channel, "kind": to.kind, "delivered": True, "attempts": attempts}


async def _send_one(to: Receiver, message_id: str, payload: Document, patience: Patience) -> int:
    async with web_client(patience) as client:
        try:
            return await send(client, to, message_id, payload, patience)
        except NotTaken as error:
            raise ProviderFailure(f"channel {to.name}: {error}") from None
