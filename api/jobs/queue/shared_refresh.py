"""A refresh shared by workers: one task per provider and region, gathered into one snapshot, or none.

`begin` stores a run and adds the first task. That task fixes the time of all rows and adds a task per provider, which
lists its regions and adds a task for each. Their results are stored as parts. The task that completes the parts adds
the last task, which merges them as a refresh in one process does, and deletes them. A copy of the last task is queued
from the start, for the deadline of the refresh: regions that are not read by then have failed. Each step is one
idempotent transaction, so a worker that dies at any moment costs only its own step, which another worker repeats.
"""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.api.jobs.queue.queue_names import BEGIN, FETCH, LIST, REFRESHES, WRITE, lane, writing_lock
from gpuplan.api.jobs.queue.queue_schema import upgrade_queue
from gpuplan.api.jobs.queue.queued_pool import require_worker
from gpuplan.api.jobs.queue.task_queue import Queue, database_time, job
from gpuplan.api.jobs.run_execution import failure_of
from gpuplan.api.schemas.refresh import RefreshDocument
from gpuplan.api.schemas.refresh_answers import RefreshReport, RefreshWithoutReport
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.services.price_refresh import Retain, current_rows_of, new_id, newest, written
from gpuplan.api.services.refresh_report import running
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.database import named_failures
from gpuplan.catalog.store.refresh_parts import (
    LISTING,
    Part,
    fetched_regions,
    forget_parts,
    has_part,
    listings,
    live_run,
    note_progress,
    parts,
    set_out,
    store_part,
)
from gpuplan.catalog.store.run_store import LIVE, Run, end, queued_run
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import MakeCloud, chosen_clouds
from gpuplan.providers.contract import Provider
from gpuplan.providers.refresh.parallel_fetch import Gathered, late, why
from gpuplan.providers.refresh.refresh_acceptance import Accepted
from gpuplan.providers.refresh.refresh_run import combined
from gpuplan.providers.refresh.serialization import deserialized, deserialized_regions, serialized, serialized_regions
from gpuplan.providers.refresh.server_clock import clocks, server_time, true_time

#: Regions are listed before any is fetched. Of two tasks with one lock the earlier runs first, even if it is not due
#: yet, unless the other has a higher priority. So the task that writes a complete refresh has a higher priority than
#: the one that waits for the deadline.
_FIRST, _TIME_IS_UP, _COMPLETE = 10, 20, 21


class SharedRefreshes:
    """Starts refreshes and executes their steps; every method raises `StoreFailure` if the store cannot be used."""

    def __init__(
        self,
        store: Store,
        clouds: Mapping[str, MakeCloud],
        sources: Sources,
        *,
        retain: Retain,
        tell: Callable[[RefreshReport], RefreshReport],
    ) -> None:
        """`tell` plans watched jobs at the new prices and adds the result to the report."""
        upgrade_queue(store)
        self._store, self._clouds, self._sources = store, clouds, sources
        self._retain, self._tell = retain, tell
        self._queue = Queue(store)
        self._held = WorkerProviders(clouds, sources)

    def begin(self, wanted: RefreshDocument) -> RefreshWithoutReport:
        """Queue a refresh and return its id. Raises `UnusableInput`, `RefreshRunning` or `NoWorker`, and then stores
        nothing.
        """
        names = chosen_clouds(wanted.provider, tuple(self._clouds))
        require_worker(self._queue)
        with self._store.refreshing(), named_failures(self._store.url):
            with self._store.engine.connect() as connection:
                now = database_time(connection)
            begun = running(new_id(now), now, names)
            request = {"asked": list(names), "wanted": wanted.model_dump(mode="json"), "begun_at": now.isoformat()}
            run = Run(id=begun.id, kind="refresh", status="queued", request=request, created_at=now, beat_at=now)
            self._store.runs.add(
                queued_run(run),
                then=lambda tx: self._queue.defer(tx, job(BEGIN, REFRESHES, priority=_FIRST, run_id=run.id)),
            )
        return begun

    def set_out(self, run_id: str) -> None:
        """The first step: fix the time of all rows, add a task per provider and one for the deadline."""
        run = self._run(run_id)
        if run is None or "at" in run.request:
            return
        names = run.request["asked"]
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            clock = database_time(connection)
        at, warning = true_time(clock, server_time(clocks(self._sources, names)), newest(current_rows_of(self._store)))
        limit = timedelta(minutes=run.request["wanted"]["time_limit_minutes"])
        with named_failures(self._store.url), self._queue.writing() as tx:
            now = live_run(tx, run_id)
            if now is None or "at" in now.request:
                return
            set_out(tx, run_id, now.request | {"at": at.isoformat(), "warning": warning}, clock)
            time_is_up = job(
                WRITE, REFRESHES, lock=writing_lock(run_id), priority=_TIME_IS_UP, at=clock + limit, run_id=run_id
            )
            lists = [job(LIST, REFRESHES, priority=_FIRST, run_id=run_id, provider=name) for name in names]
            self._queue.defer(tx, time_is_up, *lists)

    def list_regions(self, run_id: str, provider: str) -> None:
        """The second step for a provider: list its regions and add a task for each."""
        run = self._run(run_id)
        if run is None:
            return
        listed: tuple[str, ...] = ()
        parallel, failure = 1, ""
        try:
            source = self._held.provider(run, provider)
            listed = tuple(dict.fromkeys(source.regions()))
            parallel = max(1, min(source.parallel, len(listed)))
            failure = "" if listed else "the provider lists no regions"
        except Exception as error:  # noqa: BLE001 (a bug in one cloud's code must not stop the others)
            failure = why(error)
        content = None if failure else serialized_regions(listed)
        fetches = [
            job(
                FETCH, REFRESHES, lock=lane(provider, number, parallel), run_id=run_id, provider=provider, region=region
            )
            for number, region in enumerate(listed)
        ]
        part = Part(provider=provider, region=LISTING, content=content, failure=failure)
        self._keep(run_id, part, lambda tx: self._queue.defer(tx, *fetches) if fetches else None)

    def fetch(self, run_id: str, provider: str, region: str) -> None:
        """The third step for a region: fetch its rows."""
        run = self._run(run_id)
        if run is None:
            return
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            if has_part(connection, run_id, provider, region):
                return
        try:
            content, failure = serialized(self._held.provider(run, provider).fetch(region)), ""
        except Exception as error:  # noqa: BLE001 (one region's bug must not lose the others)
            content, failure = None, why(error)
        self._keep(run_id, Part(provider=provider, region=region, content=content, failure=failure))

    def write(self, run_id: str) -> None:
        """The last step: write the snapshot from all parts and plan the watched jobs on it.

        Raises `RefreshRunning` while a refresh that is starting briefly holds the lock.
        """
        with self._store.refreshing(shared=run_id):
            report = self._report(run_id)
            if report is None:
                run = self._run(run_id)
                if run is None:
                    return
                report = self._written(run)
            if report.watches is None:
                self._tell(report)
        self._held.forget(run_id)

    def give_up(self, run_id: str, error: Exception) -> None:
        """End a refresh after a step failed in a way that a retry does not fix, and record the reason."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            end(tx, run_id, "failed", database_time(tx), progress=None, error=failure_of(error, run_id))
            forget_parts(tx, run_id)

    def put_in_last(self, run_id: str) -> None:
        """Add the last step again, for a refresh without a remaining task."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            self._queue.defer_deduplicated(tx, self._last(run_id))

    def _written(self, run: Run) -> RefreshReport:
        request = run.request
        wanted = RefreshDocument(**request["wanted"])
        current_rows = current_rows_of(self._store, None if wanted.provider else self._clouds)
        at = datetime.fromisoformat(request.get("at") or request["begun_at"])
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            stored_parts, now = parts(connection, run.id), database_time(connection)
        begun_at = datetime.fromisoformat(request["begun_at"])
        return written(
            self._store,
            running(run.id, begun_at, request["asked"]),
            combined(
                gathered(request["asked"], stored_parts, limit_seconds=wanted.time_limit_minutes * 60),
                current_rows,
                at=at,
                accepted=Accepted(loss=wanted.accept_loss, jumps=wanted.accept_jumps),
            ),
            current_rows,
            at=at,
            took=max(now - begun_at, timedelta(0)),
            warnings=[request["warning"]] if request.get("warning") else [],
            retain=self._retain,
            then=lambda tx: self._over(tx, run.id, now),
        )

    def _over(self, tx: sa.Connection, run_id: str, now: datetime) -> None:
        end(tx, run_id, "done", now, progress=None)
        forget_parts(tx, run_id)

    def _keep(self, run_id: str, part: Part, then: Callable[[sa.Connection], None] = lambda tx: None) -> None:
        """Store a part once, together with the effects of `then`; the part that completes a refresh adds its last step."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            run = live_run(tx, run_id)
            if run is None or has_part(tx, run_id, part.provider, part.region):
                return
            store_part(tx, run_id, part)
            then(tx)
            lists, done = _listed(listings(tx, run_id)), fetched_regions(tx, run_id)
            note_progress(tx, run_id, _progress(lists, done))
            names = run.request["asked"]
            if all(name in lists and done[name] == len(lists[name]) for name in names):
                self._queue.defer_deduplicated(tx, self._last(run_id))

    def _last(self, run_id: str) -> Any:
        lock = writing_lock(run_id)
        return job(WRITE, REFRESHES, lock=lock, queueing_lock=lock, priority=_COMPLETE, run_id=run_id)

    def _run(self, run_id: str) -> Run | None:
        try:
            run = self._store.runs.one(run_id, datetime.now(UTC))
        except NotStored:
            return None
        return run if run.status in LIVE else None

    def _report(self, run_id: str) -> RefreshReport | None:
        try:
            return read_stored(RefreshReport, self._store.refresh(run_id).report)
        except NotStored:
            return None


def gathered(names: list[str], parts: list[Part], *, limit_seconds: float) -> dict[str, Gathered]:
    """The stored parts in the form that one process gathers; missing parts count as not answered in time."""
    by_provider = {name: Gathered(provider=name) for name in names}
    for part in parts:
        of = by_provider[part.provider]
        if part.region == LISTING:
            of.listed = None if part.content is None else deserialized_regions(part.content)
            of.failure = part.failure
        elif part.content is None:
            of.failed[part.region] = part.failure
        else:
            of.rows[part.region] = deserialized(part.content)
    for of in by_provider.values():
        late(of, limit_seconds)
    return by_provider


def _listed(stored_parts: Mapping[str, Part]) -> dict[str, tuple[str, ...]]:
    return {
        name: () if part.content is None else deserialized_regions(part.content) for name, part in stored_parts.items()
    }


def _progress(lists: Mapping[str, tuple[str, ...]], done: Mapping[str, int]) -> JsonObject:
    return {name: {"done": done.get(name, 0), "total": len(regions)} for name, regions in lists.items()}


class WorkerProviders:
    """Creates each provider once per refresh, with the time of its rows; thread-safe."""

    def __init__(self, clouds: Mapping[str, MakeCloud], sources: Sources) -> None:
        """Creates no provider yet."""
        self._clouds, self._sources = clouds, sources
        self._lock = threading.Lock()
        self._of = ""
        self._providers: dict[str, Provider] = {}

    def provider(self, run: Run, name: str) -> Provider:
        """The provider of this refresh, whose `at` is fixed. Raises what its constructor raises."""
        with self._lock:
            if self._of != run.id:
                self._of, self._providers = run.id, {}
            if name not in self._providers:
                at = datetime.fromisoformat(run.request["at"])
                self._providers[name] = self._clouds[name](self._sources, at)
            return self._providers[name]

    def forget(self, run_id: str) -> None:
        """Drop the providers of a refresh."""
        with self._lock:
            if self._of == run_id:
                self._of, self._providers = "", {}
