"""One refresh: take the lock, read the clock, ask the clouds, write one transaction, and apply retention."""

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import sqlalchemy as sa

from gpuplan.api.schemas.refresh import RefreshDocument
from gpuplan.api.schemas.refresh_answers import RefreshReport, RefreshWithoutReport
from gpuplan.api.security.authorization import record
from gpuplan.api.services.refresh_report import report, running, stored
from gpuplan.catalog.model.provider_names import is_own_rates
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.access_store import write_audit
from gpuplan.catalog.store.refresh_store import RefreshRecord
from gpuplan.catalog.store.store import Store
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import MakeCloud, chosen_clouds
from gpuplan.providers.refresh.parallel_fetch import MakeProvider, Progress, no_progress
from gpuplan.providers.refresh.refresh_acceptance import Accepted
from gpuplan.providers.refresh.refresh_run import CurrentRows, Refreshed, refresh
from gpuplan.providers.refresh.server_clock import clocks, server_time, true_time

#: Called with the id and the start of a refresh as soon as only the clouds or the store can stop it.
Began = Callable[[RefreshWithoutReport], None]


class Retain(Protocol):
    """Forgets what is too old as of `now`."""

    def __call__(self, *, now: datetime) -> object:
        """Raises `StoreFailure` if the store cannot be used."""


def nobody(begun: RefreshWithoutReport) -> None:
    """For a refresh whose start nobody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What is called while a refresh runs, and its clock."""

    began: Began = nobody
    progress: Progress = no_progress
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


def run_refresh(
    store: Store,
    wanted: RefreshDocument,
    clouds: Mapping[str, MakeCloud],
    sources: Sources,
    *,
    retain: Retain,
    watching: Watching,
) -> RefreshReport:
    """Ask the clouds, store their rows, and return the report, which is stored too.

    Raises `UnusableInput` for an unknown cloud, `RefreshRunning` if another refresh is running, and `StoreFailure` if the
    store cannot be used; the current snapshot is then unchanged.
    """
    names = chosen_clouds(wanted.provider, tuple(clouds))
    with store.refreshing() as check_lock:
        began = time.monotonic()
        store.runs.give_up_refreshes(datetime.now(UTC), alone=True)
        current = current_rows_of(store, None if wanted.provider else clouds)
        clock = watching.clock()
        begun = running(new_id(clock), clock, names)
        watching.began(begun)
        at, warning = true_time(clock, server_time(clocks(sources, names)), newest(current))
        refreshed = refresh(
            {name: _maker(clouds[name], sources, at) for name in names},
            current,
            at=at,
            limit_seconds=wanted.time_limit_minutes * 60,
            accepted=Accepted(loss=wanted.accept_loss, jumps=wanted.accept_jumps),
            progress=watching.progress,
        )
        took = timedelta(seconds=time.monotonic() - began)
        warnings = (warning,) if warning else ()

        def unless_lost(_: sa.Connection) -> None:
            """In the transaction that writes, so that whoever takes the lock after this reads what was written."""
            check_lock()

        return written(
            store, begun, refreshed, current, at=at, took=took, warnings=warnings, retain=retain, then=unless_lost
        )


def written(
    store: Store,
    begun: RefreshWithoutReport,
    refreshed: Refreshed,
    current_rows: CurrentRows,
    *,
    at: datetime,
    took: timedelta,
    warnings: Sequence[str],
    retain: Retain,
    then: Callable[[sa.Connection], None] = lambda connection: None,
) -> RefreshReport:
    """The report of a refresh whose rows are dated `at`, written in one transaction, with what `then` writes there."""
    ended = [f"{name} is not in the settings any more: its rows are gone" for name in sorted(current_rows.ended)]
    answer = report(
        begun, refreshed, current_rows.snapshot.id, at=at, seconds=took.total_seconds(), warnings=[*warnings, *ended]
    )
    fresh = None if refreshed.snapshot.id == current_rows.snapshot.id else refreshed.snapshot
    audit_record = record("refresh", answer.id, datetime.now(UTC), outcome=answer.outcome)

    def also(connection: sa.Connection) -> None:
        write_audit(connection, audit_record)
        then(connection)

    store.record_refresh(_record(answer, at, took, fresh), fresh, then=also)
    return _forget(retain, at, answer)


def current_rows_of(store: Store, clouds: Collection[str] | None = None) -> CurrentRows:
    """The rows in the store before a refresh.

    A refresh of all `clouds` ends the lists of own rates that are none of them any more.
    """
    current = store.snapshot(store.current_snapshot_id())
    shipped = [snapshot for snapshot in store.snapshots() if snapshot.source == "embedded"]
    last = max(shipped, key=lambda snapshot: snapshot.observed_at, default=None)
    embedded = None if last is None else current if last.id == current.id else store.snapshot(last.id)
    listed = (
        {offer.provider for offer in current.offers if is_own_rates(offer.provider)} if clouds is not None else set()
    )
    ended = frozenset(listed.difference(clouds or ()))
    return CurrentRows(snapshot=current, embedded=embedded, read_at=store.refresh_times(), ended=ended)


def newest(current_rows: CurrentRows) -> datetime:
    """The time of the newest row, which need not be in the newest snapshot."""
    return max(
        snapshot.observed_at for snapshot in (current_rows.snapshot, current_rows.embedded) if snapshot is not None
    )


def _maker(make: MakeCloud, sources: Sources, at: datetime) -> MakeProvider:
    return lambda: make(sources, at)


def new_id(at: datetime) -> str:
    """The id of a refresh: its time, so that ids sort by it, and a random part."""
    return f"refresh-{at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:12]}"


def _record(answer: RefreshReport, at: datetime, took: timedelta, fresh: Snapshot | None) -> RefreshRecord:
    return RefreshRecord(
        id=answer.id,
        started_at=at,
        finished_at=at + took,
        outcome=answer.outcome,
        snapshot_id=None if fresh is None else fresh.id,
        report=stored(answer),
    )


def _forget(retain: Retain, at: datetime, answer: RefreshReport) -> RefreshReport:
    """Delete what is too old. The new prices are already written, so a failure is only a warning."""
    try:
        retain(now=at)
    except StoreFailure as error:
        return replace(answer, warnings=(*answer.warnings, f"old snapshots could not be deleted: {error}"))
    return answer
