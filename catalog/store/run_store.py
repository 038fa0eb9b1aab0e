"""Background runs in the store: one transaction per method."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from gpuplan.catalog.runtime.monotonic_clocks import SteadyClock
from gpuplan.catalog.store.database import BUSY_MILLISECONDS, insert_or_ignore
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, forget_owners, readable, refuse_others, write_owner
from gpuplan.catalog.store.schema import refreshes, runs
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import StorePart, Transaction, reads, writes

Status = Literal["queued", "running", "done", "failed", "cancelled"]
#: Instructions for a worker: continue, stop soon, or the run was given up.
Heard = Literal["go on", "cancel", "given up"]
LIVE: tuple[Status, ...] = ("queued", "running")
#: Longer by a few heartbeats than a heartbeat may wait for another writer.
SILENCE = timedelta(milliseconds=BUSY_MILLISECONDS) + timedelta(seconds=15)
#: Releases without a queue give up silent runs, so heartbeats of queued runs are dated this far ahead.
_AHEAD_FOR_EARLIER_RELEASES = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `request` and `progress` depend on the kind; `answer` is None without one, `error` is None unless it failed."""

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
    """The run as a queued one."""
    return replace(run, attempt=0, beat_at=run.beat_at + _AHEAD_FOR_EARLIER_RELEASES)


def write_run(connection: sa.Connection, run: Run, owner: str | None = None) -> None:
    """Store a run; an existing one stays unchanged and gains the owner.

    Raises `ValueError` if it cannot be written as JSON.
    """
    write_owner(connection, "run", run.id, owner, is_new=insert_or_ignore(connection, runs, run))


def read_run(connection: sa.Connection, run_id: str, viewer: Viewer = UNRESTRICTED) -> Run:
    """The run with this id. Raises `NotStored` at `run` if the viewer cannot read one."""
    one = sa.select(runs).where(runs.c.id == run_id, readable("run", runs.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise NotStored.at("run", message=f"no run {run_id[:80]!r} is stored here; accepted: the id of a run")
    return Run(**row._mapping)


def read_statuses(connection: sa.Connection, run_ids: Collection[str]) -> dict[str, Status]:
    """The statuses of those of these runs that exist."""
    rows = connection.execute(sa.select(runs.c.id, runs.c.status).where(runs.c.id.in_(list(run_ids))))
    return {row.id: row.status for row in rows}


def delete_run(connection: sa.Connection, run_id: str) -> None:
    """Delete a run, if it exists."""
    connection.execute(sa.delete(runs).where(runs.c.id == run_id))
    forget_owners(connection, "run", run_id)


def begin(connection: sa.Connection, run_id: str, now: datetime) -> bool:
    """Set a queued run to running; returns whether the caller may begin it."""
    queued = sa.update(runs).where(runs.c.id == run_id, runs.c.status == "queued")
    return connection.execute(queued.values(status="running", started_at=now, beat_at=now)).rowcount == 1


def take(connection: sa.Connection, run_id: str, now: datetime) -> int | None:
    """Begin the next attempt of a queued run, which supersedes all others, and return its number; None if it has ended."""
    begun = sa.func.coalesce(runs.c.started_at, sa.literal(now, runs.c.started_at.type))
    values = {"status": "running", "attempt": runs.c.attempt + 1, "started_at": begun, "beat_at": _ahead(now)}
    taken = _live(run_id).where(runs.c.attempt.is_not(None)).values(values).returning(runs.c.attempt)
    number: int | None = connection.execute(taken).scalar()
    return number


def put_back(connection: sa.Connection, run_id: str, attempt: int, now: datetime) -> bool:
    """Return the attempt to the queue because its process ends; returns whether that succeeded."""
    mine = _live(run_id, attempt).values(status="queued", beat_at=_ahead(now))
    return connection.execute(mine).rowcount == 1


def beat(
    connection: sa.Connection, run_id: str, progress: Mapping[str, Any], now: datetime, attempt: int | None = None
) -> Heard:
    """Write a heartbeat with the progress; returns the instruction for the worker."""
    heard_at = now if attempt is None else _ahead(now)
    if not connection.execute(_live(run_id, attempt).values(progress=dict(progress), beat_at=heard_at)).rowcount:
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
    """Write the result, unless one is written or another attempt is running.

    Without `progress` the earlier progress stays. Raises `ValueError` if it cannot be written as JSON.
    """
    values = {"status": status, "finished_at": now, "beat_at": now, "answer": answer, "error": error}
    if progress is not None:
        values["progress"] = progress
    return connection.execute(_live(run_id, attempt).values(**values)).rowcount == 1


def ask_cancel(connection: sa.Connection, run_id: str) -> None:
    """Request the cancellation of a run; has no effect on one that has ended."""
    connection.execute(_live(run_id).values(cancel_asked=True))


def give_up(connection: sa.Connection, run_id: str, silent_since: datetime, now: datetime) -> None:
    """Mark a run as failed if it has had no heartbeat since then."""
    message = (
        f"nothing was heard of it since {silent_since.isoformat(timespec='seconds')}: "
        "its process ended, or could not write to the store; ask again"
    )
    silent = _live(run_id).where(runs.c.beat_at <= silent_since)
    connection.execute(silent.values(status="failed", finished_at=now, error={"detail": message}))


def give_up_refreshes(connection: sa.Connection, silent_since: datetime | None, now: datetime) -> int:
    """Mark refreshes as failed without a heartbeat since then (None: all), and return their number.

    Skips those from a queue, which detects dead workers itself. One with a report ends with the report's outcome.
    """
    reported = sa.select(refreshes.c.id)
    silent = [runs.c.kind == "refresh", runs.c.status.in_(LIVE), runs.c.attempt.is_(None)]
    if silent_since is not None:
        silent.append(runs.c.beat_at <= silent_since)
    # Its process ended between its report and its end.
    connection.execute(
        sa.update(runs).where(*silent, runs.c.id.in_(reported)).values(status="done", finished_at=runs.c.beat_at)
    )
    dead = sa.select(runs.c.id, runs.c.beat_at).where(*silent, runs.c.id.not_in(reported))
    given_up = connection.execute(dead).all()
    for row in given_up:
        give_up(connection, row.id, row.beat_at, now)
    return len(given_up)


def has_live_refresh(connection: sa.Connection) -> bool:
    """Whether a refresh outside a queue appears to be running."""
    live = sa.select(runs.c.id).where(runs.c.kind == "refresh", runs.c.status.in_(LIVE), runs.c.attempt.is_(None))
    return connection.execute(live.limit(1)).first() is not None


def read_failed_refreshes(connection: sa.Connection, limit: int) -> tuple[Run, ...]:
    """The last refreshes that failed without a report, newest first."""
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


class RunStore(StorePart):
    """The runs in the store."""

    has_live_refresh = reads(has_live_refresh)
    failed_refreshes = reads(read_failed_refreshes)
    statuses = reads(read_statuses)
    forget = writes(delete_run)
    begin = writes(begin)
    take = writes(take)
    put_back = writes(put_back)
    beat = writes(beat)
    end = writes(end)

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """Starts to watch this machine's clock."""
        super().__init__(reading=reading, writing=writing)
        self._clock = SteadyClock()

    def add(self, run: Run, *, owner: str | None = None, then: Callable[[sa.Connection], None] | None = None) -> None:
        """Add a run of this owner (None: everybody); an existing run stays unchanged and gains the owner.

        `then` writes in the same transaction.
        """
        with self._writing() as connection:
            write_run(connection, run, owner)
            if then is not None:
                then(connection)

    def one(self, run_id: str, now: datetime, viewer: Viewer = UNRESTRICTED) -> Run:
        """The run at `now`; failed if its process has been silent for too long.

        A run is not failed shortly after this machine's clock was set, nor if a queue manages it. Raises `NotStored` at
        `run` if the viewer cannot read one with this id.
        """
        with self._reading() as connection:
            run = read_run(connection, run_id, viewer)
        settled = self._clock.settled(SILENCE)
        if run.status not in LIVE or run.attempt is not None or now - run.beat_at < SILENCE or not settled:
            return run
        with self._writing() as connection:
            give_up(connection, run_id, run.beat_at, now)
            return read_run(connection, run_id)

    def give_up_refreshes(self, now: datetime, *, alone: bool = False) -> int:
        """Mark refreshes as failed whose process has been silent for too long, and return their number.

        `alone` is for the holder of the refresh lock: then no other process can be refreshing, regardless of recent
        heartbeats.
        """
        if not alone and not self._clock.settled(SILENCE):
            return 0
        with self._writing() as connection:
            return give_up_refreshes(connection, None if alone else now - SILENCE, now)

    def ask_cancel(self, run_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Request the cancellation of a run; has no effect on one that has ended. Raises `NotOwned` for another owner's run."""
        with self._writing() as connection:
            refuse_others(connection, "run", run_id, viewer)
            ask_cancel(connection, run_id)
