"""A refresh that workers share: one task per provider and region, gathered into one snapshot, or none.

`begin` keeps a run and puts in the first task. That settles the time of all rows and puts in a task per provider, which
lists its regions and puts in a task for each. What these give is kept as parts; the one that completes them puts in the
last task, which does with the parts just what a refresh in one process does with what it gathered, and deletes them. The
last task also stands in the queue from the start, for the moment at which time is up: regions that are not read by then
have failed. Each step is one transaction that does nothing if it was done already, so a worker that dies at any moment
costs the work in its hands, which another one does again.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from api.documents.refresh import RefreshDocument
from api.refresh import Retain, new_id, newest, standing_of, written
from api.refresh_report import running
from api.runs.failures import failure_of
from api.runs.queued import require_worker
from api.tasks.held import HeldProviders
from api.tasks.names import BEGIN, FETCH, LIST, REFRESHES, WRITE, lane, writing_lock
from api.tasks.queue import Queue, database_time, job
from api.tasks.queue_schema import upgrade_queue
from catalog.database import named_failures
from catalog.refresh_parts import (
    LISTING,
    Part,
    forget_parts,
    has_part,
    keep_part,
    listings,
    live_run,
    note_progress,
    parts,
    regions_kept,
    set_out,
)
from catalog.runs import LIVE, Run, end, queued_run
from catalog.snapshot_list import NotStored
from catalog.store import Store
from providers.checks import Accepted
from providers.clock import clocks, server_time, true_time
from providers.clouds import MakeCloud, chosen_clouds
from providers.gather import Gathered, late, why
from providers.packed import packed, packed_regions, unpacked, unpacked_regions
from providers.refresh import combined
from providers.sources import Sources

Document = dict[str, Any]
#: Regions are listed before any is fetched. Of two tasks with one lock the earlier goes first, even if its time has not
#: come, unless the other is more urgent: so what writes a complete refresh is, against what waits until time is up.
_FIRST, _TIME_IS_UP, _COMPLETE = 10, 20, 21


class SharedRefreshes:
    """Begins refreshes and does their steps; every method raises `StoreFailure` where the store cannot be used."""

    def __init__(
        self,
        store: Store,
        clouds: Mapping[str, MakeCloud],
        sources: Sources,
        *,
        retain: Retain,
        tell: Callable[[Document], Document],
    ) -> None:
        """`tell` plans watched jobs on the new prices and keeps that in the report that it is given."""
        upgrade_queue(store)
        self._store, self._clouds, self._sources = store, clouds, sources
        self._retain, self._tell = retain, tell
        self._queue = Queue(store)
        self._held = HeldProviders(clouds, sources)

    def begin(self, wanted: RefreshDocument) -> Document:
        """Queue a refresh, and say its id. Raises `UnusableInput`, `RefreshRunning` or `NoWorker`, and keeps nothing then."""
        names = chosen_clouds(wanted.provider, tuple(self._clouds))
        require_worker(self._queue)
        with self._store.refreshing(), named_failures(self._store.url):
            with self._store.engine.connect() as connection:
                now = database_time(connection)
            begun = running(new_id(now), now, names)
            request = {"asked": list(names), "wanted": wanted.model_dump(mode="json"), "begun_at": now.isoformat()}
            run = Run(id=begun["id"], kind="refresh", status="queued", request=request, created_at=now, beat_at=now)
            self._store.runs.add(
                queued_run(run),
                then=lambda tx: self._queue.defer(tx, job(BEGIN, REFRESHES, priority=_FIRST, run_id=run.id)),
            )
        return begun

    def set_out(self, run_id: str) -> None:
        """The first step: what time it is for all rows, and a task per provider; and one for when time is up."""
        run = self._run(run_id)
        if run is None or "at" in run.request:
            return
        names = run.request["asked"]
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            clock = database_time(connection)
        at, warning = true_time(clock, server_time(clocks(self._sources, names)), newest(standing_of(self._store)))
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
        """The second step for a provider: its regions, and a task for each."""
        run = self._run(run_id)
        if run is None:
            return
        listed: tuple[str, ...] = ()
        parallel, failure = 1, ""
        try:
            held = self._held.provider(run, provider)
            listed = tuple(dict.fromkeys(held.regions()))
            parallel = max(1, min(held.parallel, len(listed)))
            failure = "" if listed else "the provider lists no regions"
        except Exception as error:  # noqa: BLE001 (whatever one cloud's code does, the others go on)
            failure = why(error)
        content = None if failure else packed_regions(listed)
        fetches = [
            job(
                FETCH, REFRESHES, lock=lane(provider, number, parallel), run_id=run_id, provider=provider, region=region
            )
            for number, region in enumerate(listed)
        ]
        part = Part(provider=provider, region=LISTING, content=content, failure=failure)
        self._keep(run_id, part, lambda tx: self._queue.defer(tx, *fetches) if fetches else None)

    def fetch(self, run_id: str, provider: str, region: str) -> None:
        """The third step for a region: its rows."""
        run = self._run(run_id)
        if run is None:
            return
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            if has_part(connection, run_id, provider, region):
                return
        try:
            content, failure = packed(self._held.provider(run, provider).fetch(region)), ""
        except Exception as error:  # noqa: BLE001 (one region's bug must not lose the others)
            content, failure = None, why(error)
        self._keep(run_id, Part(provider=provider, region=region, content=content, failure=failure))

    def write(self, run_id: str) -> None:
        """The last step: the snapshot that follows from all parts, and what watched jobs cost on it.

        Raises `RefreshRunning` while a refresh that is about to begin holds the lock for a moment.
        """
        with self._store.refreshing(shared=run_id):
            document = self._report(run_id)
            if document is None:
                run = self._run(run_id)
                if run is None:
                    return
                document = self._written(run)
            if document["watches"] is None:
                self._tell(document)
        self._held.forget(run_id)

    def give_up(self, run_id: str, error: Exception) -> None:
        """Ends a refresh of which a step failed in a way that another try does not mend, and says why."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            end(tx, run_id, "failed", database_time(tx), progress=None, error=failure_of(error, run_id))
            forget_parts(tx, run_id)

    def put_in_last(self, run_id: str) -> None:
        """Puts in the last step again, for a refresh of which no task is left."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            self._queue.defer_once(tx, self._last(run_id))

    def _written(self, run: Run) -> Document:
        standing = standing_of(self._store)
        request = run.request
        wanted = RefreshDocument(**request["wanted"])
        at = datetime.fromisoformat(request.get("at") or request["begun_at"])
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            kept, now = parts(connection, run.id), database_time(connection)
        begun_at = datetime.fromisoformat(request["begun_at"])
        return written(
            self._store,
            running(run.id, begun_at, request["asked"]),
            combined(
                gathered(request["asked"], kept, limit_seconds=wanted.time_limit_minutes * 60),
                standing,
                at=at,
                accepted=Accepted(loss=wanted.accept_loss, jumps=wanted.accept_jumps),
            ),
            standing,
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
        """Keeps a part, once, with what `then` does; the part that completes a refresh puts in its last step."""
        with named_failures(self._store.url), self._queue.writing() as tx:
            run = live_run(tx, run_id)
            if run is None or has_part(tx, run_id, part.provider, part.region):
                return
            keep_part(tx, run_id, part)
            then(tx)
            lists, done = _listed(listings(tx, run_id)), regions_kept(tx, run_id)
            note_progress(tx, run_id, _progress(lists, done))
            names = run.request["asked"]
            if all(name in lists and done[name] == len(lists[name]) for name in names):
                self._queue.defer_once(tx, self._last(run_id))

    def _last(self, run_id: str) -> Any:
        lock = writing_lock(run_id)
        return job(WRITE, REFRESHES, lock=lock, queueing_lock=lock, priority=_COMPLETE, run_id=run_id)

    def _run(self, run_id: str) -> Run | None:
        try:
            run = self._store.runs.one(run_id, datetime.now(UTC))
        except NotStored:
            return None
        return run if run.status in LIVE else None

    def _report(self, run_id: str) -> Document | None:
        try:
            return self._store.refresh(run_id).report
        except NotStored:
            return None


def gathered(names: list[str], kept: list[Part], *, limit_seconds: float) -> dict[str, Gathered]:
    """What was kept, as one process would have gathered it; what is not there has not answered in time."""
    found = {name: Gathered(provider=name) for name in names}
    for part in kept:
        of = found[part.provider]
        if part.region == LISTING:
            of.listed = None if part.content is None else unpacked_regions(part.content)
            of.failure = part.failure
        elif part.content is None:
            of.failed[part.region] = part.failure
        else:
            of.rows[part.region] = unpacked(part.content)
    for of in found.values():
        late(of, limit_seconds)
    return found


def _listed(found: Mapping[str, Part]) -> dict[str, tuple[str, ...]]:
    return {name: () if part.content is None else unpacked_regions(part.content) for name, part in found.items()}


def _progress(lists: Mapping[str, tuple[str, ...]], done: Mapping[str, int]) -> Document:
    return {name: {"done": done.get(name, 0), "total": len(regions)} for name, regions in lists.items()}
