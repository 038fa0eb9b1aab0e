"""Jobs that a Slack channel watches: kept and checked like every watch, and told there by the service itself."""

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.documents.job import JobDocument
from api.documents.watch import job_at, refuse_too_many, watched_job
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


def channel_name(team_id: str, channel_id: str, user_id: str) -> str:
    """A Slack channel as watches name it: where to tell, and whom if that fails."""
    return f"{TOLD_IN_SLACK}{team_id}:{channel_id}:{user_id}"


def place_of(name: str) -> tuple[str, str, str]:
    """(team, channel, user) of such a name. Raises `ValueError` for another."""
    parts = name.removeprefix(TOLD_IN_SLACK).split(":")
    if len(parts) != 3 or not all(_ID.fullmatch(each) for each in parts):
        raise ValueError(f"{name[:80]!r} is no place in Slack")
    team, channel, user = parts
    return team, channel, user


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
    channels = (channel_name(asked.team_id, asked.channel_id, asked.user_id),)
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
    return shown(gpuplan.store.watching.save(kept))


def watches_of(gpuplan: "Gpuplan", team_id: str) -> list[Document]:
    """The watches that are told in this workspace, the oldest first."""
    mine = f"{TOLD_IN_SLACK}{team_id}:"
    found = gpuplan.store.watching.every()
    return [shown(each) for each in found if any(name.startswith(mine) for name in each.channels)]


def unwatch(gpuplan: "Gpuplan", team_id: str, watch_id: str) -> None:
    """Ends a watch of this workspace. Raises `UnusableInput` if it has no such watch."""
    ids = [each["id"] for each in watches_of(gpuplan, team_id)]
    if watch_id not in ids:
        near = f"accepted: {', '.join(ids[:8])}" if ids else "nothing is watched here"
        raise NotStored.at("watch", message=f"{watch_id[:80]!r} is no watch of this workspace; {near}")
    gpuplan.forget_watch(watch_id)
