"""Runs: work that outlives the request that asked for it, with its progress, its end, and a heartbeat while it goes on.

A run is `queued`, then `running`, then `done`, `failed` or `cancelled`, and never leaves one of the last three.
Whoever is at it writes a beat every few seconds; where none came for `SILENCE`, the run is given up as `failed`,
and whoever was at it after all learns so at the next beat.

A run that a queue hands out has an `attempt`, 0 until it is first begun. The queue notices by itself when the process
that is at it dies, and hands it out again as the next attempt; of an earlier one no beat and no end counts any more,
should its process be alive after all.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from catalog.database import BUSY_MILLISECONDS, insert_or_keep
from catalog.ownership import UNRESTRICTED, Viewer, forget_owners, readable, write_owner
from catalog.saved import as_json
from catalog.schema import refreshes, runs
from catalog.snapshot_list import NotStored

Status = Literal["queued", "running", "done", "failed", "cancelled"]
#: What whoever is at a run hears back: go on, end soon, or that the run was given up and nobody waits for it.
Heard = Literal["go on", "cancel", "given up"]
LIVE: tuple[Status, ...] = ("queued", "running")
#: Longer than a beat may wait for another writer, by a few beats.
SILENCE = timedelta(milliseconds=BUSY_MILLISECONDS) + timedelta(seconds=15)
#: Releases that know of no queue give up what is silent, so beats of a queue's runs are written so far ahead.
_AHEAD_FOR_EARLIER_RELEASES = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `request` and `progress` are the kind's own; `answer` is None without one, `error` unless it failed."""

    id: str
    kind: str
    status: Status
    request: dict[str, Any]
    created_at: datetime
    beat_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel_asked: bool = False
    progress: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    attempt: int | None = None


def queued_run(run: Run) -> Run:
    """The run as one that a queue will hand out."""
    return replace(run, attempt=0, beat_at=run.beat_at + _AHEAD_FOR_EARLIER_RELEASES)


def write_run(connection: sa.Connection, run: Run, owner: str | None = None) -> None:
    """Keeps a run; one that is there already stays as it is, and is theirs too who made it again.

    Raises `ValueError` for what is not JSON.
    """
    row = {name: getattr(run, name) for name in Run.__slots__}
    row |= {"request": as_json(run.request), "progress": as_json(run.progress)}
    row |= {"answer": _maybe_json(run.answer), "error": _maybe_json(run.error)}
    write_owner(connection, "run", run.id, owner, is_new=insert_or_keep(connection, runs, row))


def read_run(connection: sa.Connection, run_id: str, viewer: Viewer = UNRESTRICTED) -> Run:
    """The run with this id. Raises `NotStored` at `run` if there is none that the viewer may read."""
    one = sa.select(runs).where(runs.c.id == run_id, readable("run", runs.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise NotStored.at("run", message=f"no run {run_id[:80]!r} is stored here; accepted: the id of a run")
    texts = {name: json.loads(row._mapping[name]) for name in ("request", "progress")}
    texts |= {name: None if row._mapping[name] is None else json.loads(row._mapping[name]) for name in _MAYBE}
    return Run(**{**row._mapping, **texts})


def read_statuses(connection: sa.Connection, run_ids: Collection[str]) -> dict[str, Status]:
    """How these runs stand, of those that there are."""
    rows = connection.execute(sa.select(runs.c.id, runs.c.status).where(runs.c.id.in_(list(run_ids))))
    return {row.id: row.status for row in rows}


_MAYBE = ("answer", "error")


def delete_run(connection: sa.Connection, run_id: str) -> None:
    """Forgets a run; one that is not there is forgotten already."""
    connection.execute(sa.delete(runs).where(runs.c.id == run_id))
    forget_owners(connection, "run", run_id)


def begin(connection: sa.Connection, run_id: str, now: datetime) -> bool:
    """Whether the caller may begin it: it was queued, and is running from now on."""
    queued = sa.update(runs).where(runs.c.id == run_id, runs.c.status == "queued")
    return connection.execute(queued.values(status="running", started_at=now, beat_at=now)).rowcount == 1


def take(connection: sa.Connection, run_id: str, now: datetime) -> int | None:
    """The number of the attempt that the caller begins at a run of a queue, which ends every other; None if it has ended."""
    begun = sa.func.coalesce(runs.c.started_at, sa.literal(now, runs.c.started_at.type))
    values = {"status": "running", "attempt": runs.c.attempt + 1, "started_at": begun, "beat_at": _ahead(now)}
    taken = _live(run_id).where(runs.c.attempt.is_not(None)).values(values).returning(runs.c.attempt)
    number: int | None = connection.execute(taken).scalar()
    return number


def put_back(connection: sa.Connection, run_id: str, attempt: int, now: datetime) -> bool:
    """Whether the attempt has become one that waits again: its process ends, and another one may begin anew."""
    mine = _live(run_id, attempt).values(status="queued", beat_at=_ahead(now))
    return connection.execute(mine).rowcount == 1


def beat(
    connection: sa.Connection, run_id: str, progress: Mapping[str, Any], now: datetime, attempt: int | None = None
) -> Heard:
    """Notes that somebody is at it and how far it is, and says what they should do."""
    heard_at = now if attempt is None else _ahead(now)
    if not connection.execute(_live(run_id, attempt).values(progress=as_json(progress), beat_at=heard_at)).rowcount:
        return "given up"
    asked = connection.execute(sa.select(runs.c.cancel_asked).where(runs.c.id == run_id)).scalar()
    return "cancel" if asked else "go on"


def end(
    connection: sa.Connection,
    run_id: str,
    status: Status,
    now: datetime,
    *,
    progress: Mapping[str, Any] | None,
    answer: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    attempt: int | None = None,
) -> bool:
    """Writes how it ended, unless that is written already, or another attempt than this one is at it.

    Without `progress` that stays as it is. Raises `ValueError` for what is not JSON.
    """
    values: dict[str, Any] = {"status": status, "finished_at": now, "beat_at": now}
    values |= {"answer": _maybe_json(answer), "error": _maybe_json(error)}
    if progress is not None:
        values["progress"] = as_json(progress)
    return connection.execute(_live(run_id, attempt).values(**values)).rowcount == 1


def ask_cancel(connection: sa.Connection, run_id: str) -> None:
    """Asks whoever is at it to end it; nothing happens to one that has ended."""
    connection.execute(_live(run_id).values(cancel_asked=True))


def give_up(connection: sa.Connection, run_id: str, silent_since: datetime, now: datetime) -> None:
    """Ends a run as failed if nothing was heard of it since then."""
    message = (
        f"nothing was heard of it since {silent_since.isoformat(timespec='seconds')}: "
        "its process ended, or could not write to the store; ask again"
    )
    silent = _live(run_id).where(runs.c.beat_at <= silent_since)
    connection.execute(silent.values(status="failed", finished_at=now, error=as_json({"detail": message})))


def give_up_refreshes(connection: sa.Connection, silent_since: datetime | None, now: datetime) -> int:
    """Ends refreshes as failed of which nothing was heard since then (None: all), and says how many.

    Not those that a queue hands out, which takes care of them.

    One with a report has ended as that says, and only says so late.
    """
    reported = sa.select(refreshes.c.id)
    dead = sa.select(runs.c.id, runs.c.beat_at).where(
        runs.c.kind == "refresh",
        runs.c.status.in_(LIVE),
        runs.c.attempt.is_(None),
        runs.c.id.not_in(reported),
    )
    if silent_since is not None:
        dead = dead.where(runs.c.beat_at <= silent_since)
    found = connection.execute(dead).all()
    for row in found:
        give_up(connection, row.id, row.beat_at, now)
    return len(found)


def has_live_refresh(connection: sa.Connection) -> bool:
    """Whether any process seems to be at a refresh that no queue hands out."""
    live = sa.select(runs.c.id).where(runs.c.kind == "refresh", runs.c.status.in_(LIVE), runs.c.attempt.is_(None))
    return connection.execute(live.limit(1)).first() is not None


def read_failed_refreshes(connection: sa.Connection, limit: int) -> tuple[Run, ...]:
    """The last refreshes that failed without leaving a report, the newest first."""
    failed = sa.select(runs.c.id).where(
        runs.c.kind == "refresh", runs.c.status == "failed", runs.c.id.not_in(sa.select(refreshes.c.id))
    )
    ids = connection.execute(failed.order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)).scalars().all()
    return tuple(read_run(connection, run_id) for run_id in ids)


def _live(run_id: str, attempt: int | None = None) -> sa.Update:
    live = sa.update(runs).where(runs.c.id == run_id, runs.c.status.in_(LIVE))
    return live if attempt is None else live.where(runs.c.attempt == attempt)


def _ahead(now: datetime) -> datetime:
    return now + _AHEAD_FOR_EARLIER_RELEASES


def _maybe_json(document: Mapping[str, Any] | None) -> str | None:
    return None if document is None else as_json(document)
