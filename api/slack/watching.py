"""Jobs that a Slack channel watches: kept and checked like every watch, and told there by the service itself."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.documents.job import JobDocument
from api.documents.watch import job_at, refuse_too_many, watched_job
from api.identity.asking import owner, record
from api.watches.delivery import TOLD_IN_SLACK
from api.watches.keeping import MOST_WATCHES, shown
from api.watches.told import told_of
from catalog.document_fields import read_as
from catalog.slack_answers import SlackAnswer
from catalog.snapshot_list import NotStored
from catalog.watches import Watch

if TYPE_CHECKING:
    from api.app import Gpuplan

Document = dict[str, Any]

_ID = re.compile(r"[A-Z0-9]{2,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a watch is told, and whom if that fails; the enterprise is empty where there is none."""

    team_id: str
    channel_id: str
    user_id: str
    enterprise_id: str = ""

    @property
    def name(self) -> str:
        """The place as watches name it."""
        return TOLD_IN_SLACK + ":".join((self.team_id, self.channel_id, self.user_id, self.enterprise_id)).rstrip(":")


def place_of(name: str) -> Place:
    """The place of such a name. Raises `ValueError` for another."""
    parts = name.removeprefix(TOLD_IN_SLACK).split(":")
    if not 3 <= len(parts) <= 4 or not all(_ID.fullmatch(each) for each in parts):
        raise ValueError(f"{name[:80]!r} is no place in Slack")
    return Place(**dict(zip(("team_id", "channel_id", "user_id", "enterprise_id"), parts, strict=False)))


def watch(gpuplan: "Gpuplan", asked: SlackAnswer, document: Document, percent: float) -> Document:
    """Keeps a watch that is told in the channel where it was asked for; the same watch twice is one.

    Raises `UnusableInput` for a job that nobody can plan, and past the most watches that there may be.
    """
    now = datetime.now(UTC)
    given = read_as(JobDocument, document)
    job = given.job(now=now)
    refuse_too_many(gpuplan.store.watching.count(), MOST_WATCHES)
    kept_job = watched_job(given, job)
    answer = gpuplan.plan(job_at(kept_job, now), now=now)
    place = Place(
        team_id=asked.team_id,
        channel_id=asked.channel_id,
        user_id=asked.user_id,
        enterprise_id=str(asked.request.get("enterprise_id") or ""),
    )
    channels = (place.name,)
    what = (job.name, kept_job, channels, percent)
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    kept = Watch(
        id=f"watch-{digest[:16]}",
        name=job.name,
        job=kept_job,
        channels=channels,
        threshold_percent=percent,
        created_at=now,
        last_told=told_of(answer, now),
    )
    found = shown(gpuplan.store.watching.save(kept, owner=owner()))
    gpuplan.store.access.record(record("watch.add", found["id"], now))
    return found


def watches_of(gpuplan: "Gpuplan", team_id: str) -> list[Document]:
    """The watches that are told in this workspace, the oldest first."""
    mine = f"{TOLD_IN_SLACK}{team_id}:"
    found = gpuplan.store.watching.every()
    return [shown(each) for each in found if any(name.startswith(mine) for name in each.channels)]


def unwatch(gpuplan: "Gpuplan", team_id: str, watch_id: str) -> None:
    """Ends a watch of this workspace, whoever of it made the watch. Raises `UnusableInput` if it has no such watch."""
    ids = [each["id"] for each in watches_of(gpuplan, team_id)]
    if watch_id not in ids:
        near = f"accepted: {', '.join(ids[:8])}" if ids else "nothing is watched here"
        raise NotStored.at("watch", message=f"{watch_id[:80]!r} is no watch of this workspace; {near}")
    gpuplan.store.watching.forget(watch_id)
    gpuplan.store.access.record(record("watch.forget", watch_id, datetime.now(UTC)))
