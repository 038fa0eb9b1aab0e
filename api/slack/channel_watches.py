"""Watches of Slack channels: stored and checked like all watches, with notifications sent by the service."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.notifications.delivery import SLACK_CHANNEL_PREFIX
from gpuplan.api.notifications.reported_answer import reported_answer_of
from gpuplan.api.notifications.watch_records import MOST_WATCHES, capacity_watch, shown
from gpuplan.api.schemas.job import JobDocument
from gpuplan.api.schemas.watch import job_at, parse_watch, refuse_excess, watched_job
from gpuplan.api.schemas.watch_answers import Watch
from gpuplan.api.security.authorization import owner, record
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.slack_store import SlackAnswer
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.watch_store import Watch as StoredWatch
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services


_ID = re.compile(r"[A-Z0-9]{2,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The channel of a watch's notifications, and the user if the channel fails; the enterprise may be empty."""

    team_id: str
    channel_id: str
    user_id: str
    enterprise_id: str = ""

    @property
    def name(self) -> str:
        """The channel name stored in watches."""
        return SLACK_CHANNEL_PREFIX + ":".join(
            (self.team_id, self.channel_id, self.user_id, self.enterprise_id)
        ).rstrip(":")


def place_of(name: str) -> Place:
    """Parse a channel name of a watch. Raises `ValueError`."""
    parts = name.removeprefix(SLACK_CHANNEL_PREFIX).split(":")
    if not 3 <= len(parts) <= 4 or not all(_ID.fullmatch(part) for part in parts):
        raise ValueError(f"{name[:80]!r} is not a channel in Slack")
    return Place(**dict(zip(("team_id", "channel_id", "user_id", "enterprise_id"), parts, strict=False)))


def watch(gpuplan: "Services", asked: SlackAnswer, document: JsonObject, percent: float) -> Watch:
    """Store a watch that notifies the channel of the request; repeating a watch does not duplicate it.

    Raises `UnusableInput` for an invalid job, and above the limit of watches.
    """
    now = datetime.now(UTC)
    given = read_as(JobDocument, document)
    job = given.job(now=now)
    refuse_excess(gpuplan.store.watching.count(), MOST_WATCHES)
    stored_job = watched_job(given, job)
    answer = gpuplan.plans.plan(job_at(stored_job, now), now=now)
    channels = (_place_of_request(asked).name,)
    watch = StoredWatch(
        id="",
        name=job.name,
        job=stored_job,
        channels=channels,
        threshold_percent=percent,
        created_at=now,
        last_told=wire(reported_answer_of(answer, now)),
    )
    return _saved(gpuplan, watch, (job.name, stored_job, channels, percent), now)


def watch_machines(gpuplan: "Services", asked: SlackAnswer) -> Watch:
    """Store a watch that notifies the channel of the request when the wanted machines can be obtained.

    Raises `UnusableInput` for machines without a price and above the limits.
    """
    now, channels = datetime.now(UTC), (_place_of_request(asked).name,)
    refuse_excess(gpuplan.store.watching.count(), MOST_WATCHES)
    wanted, _ = parse_watch(asked.request["capacity"], now=now)
    made = capacity_watch(gpuplan.context, gpuplan.live_queries, wanted, now)
    return _saved(gpuplan, replace(made, channels=channels), (made.name, made.job, channels), now)


def _place_of_request(asked: SlackAnswer) -> Place:
    return Place(
        team_id=asked.team_id,
        channel_id=asked.channel_id,
        user_id=asked.user_id,
        enterprise_id=str(asked.request.get("enterprise_id") or ""),
    )


def _saved(gpuplan: "Services", watch: StoredWatch, what: tuple[object, ...], now: datetime) -> Watch:
    """The stored watch, under the hash of `what` it is."""
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    saved = shown(gpuplan.store.watching.save(replace(watch, id=f"watch-{digest[:16]}"), owner=owner()))
    gpuplan.store.access.record(record("watch.add", saved.id, now))
    return saved


def watches_of(gpuplan: "Services", team_id: str) -> list[Watch]:
    """The watches of this workspace, oldest first."""
    mine = f"{SLACK_CHANNEL_PREFIX}{team_id}:"
    watches = gpuplan.store.watching.every()
    return [
        shown(stored_watch) for stored_watch in watches if any(name.startswith(mine) for name in stored_watch.channels)
    ]


def unwatch(gpuplan: "Services", team_id: str, watch_id: str) -> None:
    """End a watch of this workspace, by any member. Raises `UnusableInput` for an unknown watch."""
    ids = [watch.id for watch in watches_of(gpuplan, team_id)]
    if watch_id not in ids:
        near = f"accepted: {', '.join(ids[:8])}" if ids else "this workspace has no watches"
        raise NotStored.at("watch", message=f"{watch_id[:80]!r} is not a watch of this workspace; {near}")
    gpuplan.store.watching.forget(watch_id)
    gpuplan.store.access.record(record("watch.forget", watch_id, datetime.now(UTC)))
