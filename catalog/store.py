"""The store: snapshots, plans and remembered responses, in SQLite or PostgreSQL; the one door to the tables."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from errno import ENOENT
from os import strerror
from typing import Any, Literal

import sqlalchemy as sa

from catalog.access_store import AccessStore, Charge
from catalog.actuals import Actual, delete_actual, delete_actuals, read_actuals, read_ids, write_actual
from catalog.columns import Columns
from catalog.data_tables import data_table
from catalog.database import connect, database_url, named_failures, shown, sqlite_file, writer, writing
from catalog.diff import SnapshotDiff, stored_diff
from catalog.errors import StoreFailure
from catalog.history import PricePoint, line_to, price_points, priced_types
from catalog.migrate import HEAD, revision_of, suits, to_head
from catalog.offer import InstanceType
from catalog.price_points import instance_types_at, price_rows_at, readings_at, write_contents
from catalog.refreshes import (
    RefreshRecord,
    last_whole,
    read_refresh,
    read_refreshes,
    refresh_times,
    rewrite_report,
    write_refresh,
)
from catalog.retention import Forgotten, RetentionPolicy, retain
from catalog.run_store import RunStore
from catalog.saved import SavedPlan, read_plan, read_response, write_plan, write_response
from catalog.schema import snapshots
from catalog.slack_store import SlackStore
from catalog.snapshot import Snapshot
from catalog.snapshot_list import NotStored, StoredSnapshot, all_snapshots, current_snapshot, find_snapshot, is_stored
from catalog.stored_columns import StoredOffers, stored_columns
from catalog.watch_store import WatchStore

__all__ = ["NotStored", "SavedPlan", "Source", "Store", "StoredSnapshot"]

Source = Literal["embedded", "refresh"]

#: Snapshots kept as columns in memory: the current one, the one before a refresh, and two that users look at.
CACHED_SNAPSHOTS = 4


class Store:
    """One database, for any number of threads. Every method raises `StoreFailure` if it cannot be used."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        """Use `Store.open`, which also brings the database up to date."""
        self.engine = engine
        self._writer = writer(engine)
        self.url = url
        self.watching = WatchStore(reading=self._reading, writing=self._writing)
        self.runs = RunStore(reading=self._reading, writing=self._writing)
        self.access = AccessStore(reading=self._reading, writing=self._writing)
        self.slack = SlackStore(reading=self._reading, writing=self._writing)
        self._loading = threading.Lock()
        self._columns: OrderedDict[str, Columns] = OrderedDict()

    @classmethod
    def open(cls, url: str | None = None) -> "Store":
        """The store at `url` (None: a SQLite file in the user's data directory), made and migrated if need be.

        Raises `UnusableInput` at GPUPLAN_DATABASE_URL for an unusable URL, `StoreFailure` if the
        database cannot be reached, read or written, or belongs to a newer release.
        """
        parsed = database_url(url)
        with named_failures(parsed):
            engine = connect(parsed)
            try:
                to_head(engine, parsed)
            except BaseException:
                engine.dispose()
                raise
        return cls(engine, parsed)

    @staticmethod
    def is_there(url: str | None = None) -> bool:
        """Whether there may be anything to read at `url`: False only for a SQLite file that nobody has made yet.

        Raises `UnusableInput` at GPUPLAN_DATABASE_URL for an unusable URL.
        """
        path = sqlite_file(database_url(url))
        return path is None or path.exists()

    @property
    def name(self) -> str:
        """The database as people may see it, without password."""
        return shown(self.url)

    def close(self) -> None:
        """Gives back every connection; the store may be used again and then opens new ones."""
        self.engine.dispose()

    def ping(self) -> None:
        """Raises `StoreFailure` unless the database is there and has this release's tables."""
        with self._reading() as connection:
            revision = revision_of(connection)
            usable = revision == HEAD or suits(connection, revision)
        if not usable:
            raise StoreFailure(
                f"database {self.name}: its tables are not those of this gpuplan (revision {revision}); start again"
            )

    def current_snapshot_id(self) -> str:
        """The snapshot to plan on; an empty store first loads the embedded one.

        That is the newest refresh, unless this release brought embedded prices read after it.
        """
        with self._reading() as connection:
            current = current_snapshot(connection)
        if current is None:
            self.ensure_embedded()
            with self._reading() as connection:
                current = current_snapshot(connection)
        if current is None:
            raise AssertionError("the embedded snapshot was stored, yet no snapshot is there")
        return current

    def at_hand(self) -> tuple[str, tuple[str, ...]]:
        """`current_snapshot_id` and `actual_ids` in one read: what a plan rests on besides its job."""
        with self._reading() as connection:
            current = current_snapshot(connection)
            if current is not None:
                return current, read_ids(connection)
        return self.current_snapshot_id(), self.actual_ids()

    def snapshots(self) -> list[StoredSnapshot]:
        """Every snapshot, the one written last first."""
        with self._reading() as connection:
            return all_snapshots(connection)

    def ensure_embedded(self) -> None:
        """Adds this release's embedded snapshot if it is not there yet; else costs one look-up."""
        shipped = embedded_snapshot_id()
        with self._reading() as connection:
            there = is_stored(connection, shipped)
        if not there:
            from catalog.embedded import embedded_snapshot

            self.put_snapshot(embedded_snapshot(), source="embedded")

    def put_snapshot(self, snapshot: Snapshot, *, source: Source) -> str:
        """Writes the snapshot in one transaction and returns its id; one that is there already stays as it is.

        Raises `ValueError` if an offer names an instance type that the snapshot does not have.
        """
        _refuse_unknown_types(snapshot)
        with self._writing(alone=True) as connection:
            _put(connection, snapshot, source)
        return snapshot.id

    def record_refresh(
        self,
        record: RefreshRecord,
        snapshot: Snapshot | None,
        *,
        then: Callable[[sa.Connection], None] = lambda connection: None,
    ) -> None:
        """Writes what a refresh did, the snapshot that it made, if any, and what `then` writes, in one transaction.

        Raises `ValueError` if an offer names an instance type that the snapshot does not have.
        """
        if snapshot is not None:
            _refuse_unknown_types(snapshot)
        with self._writing(alone=True) as connection:
            if snapshot is not None:
                _put(connection, snapshot, "refresh")
            write_refresh(connection, record)
            then(connection)

    def rewrite_report(self, refresh_id: str, report: dict[str, Any]) -> None:
        """Puts what became known after the prices were written into the report of a refresh."""
        with self._writing() as connection:
            rewrite_report(connection, refresh_id, report)

    def refresh_times(self) -> frozenset[datetime]:
        """The times that the rows of refreshes carry: a row of another time came with a release."""
        with self._reading() as connection:
            return refresh_times(connection)

    def refreshes(self) -> tuple[RefreshRecord, ...]:
        """What the last refreshes did, the newest first."""
        with self._reading() as connection:
            return read_refreshes(connection)

    def refresh(self, refresh_id: str) -> RefreshRecord:
        """What one refresh did. Raises `NotStored` at `refresh` if there is none."""
        with self._reading() as connection:
            return read_refresh(connection, refresh_id)

    def last_refresh(self) -> RefreshRecord | None:
        """What the last refresh did, None before the first."""
        with self._reading() as connection:
            return next(iter(read_refreshes(connection, limit=1)), None)

    def last_whole_refresh_at(self) -> datetime | None:
        """When the last refresh ended that left nothing out, None if there never was one."""
        with self._reading() as connection:
            return last_whole(connection)

    @contextmanager
    def refreshing(self, *, shared: str | None = None) -> Iterator[None]:
        """Keeps every other refresh of this database out. Raises `RefreshRunning` at once if one runs already.

        `shared` is the run of a refresh that several processes share, for the one that writes it.
        """
        from catalog.refresh_lock import refresh_lock

        with refresh_lock(self.engine, self.url, shared=shared):
            yield

    def price_points(self, instance_type: str, snapshot_id: str) -> list[PricePoint]:
        """Every price the instance type had up to a snapshot and in it, by offer and time; empty if it had none.

        Raises `NotStored` at `snapshot` with the nearest ids if there is no such snapshot.
        """
        with self._reading() as connection:
            exact = snapshot_id if is_stored(connection, snapshot_id) else find_snapshot(connection, snapshot_id).id
            return price_points(connection, line_to(connection, exact), instance_type)

    def priced_types(self) -> list[str]:
        """The names of all instance types that have, or had, a price."""
        with self._reading() as connection:
            return priced_types(connection)

    def diff(self, before: str, after: str) -> SnapshotDiff:
        """What one snapshot changes against another, by ids or unambiguous beginnings of them.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            old, new = (find_snapshot(connection, each) for each in (before, after))
            return stored_diff(connection, old.seq, new.seq)

    def find_snapshot(self, snapshot_id: str) -> StoredSnapshot:
        """The snapshot without its rows, by its id or an unambiguous beginning of it.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            return find_snapshot(connection, snapshot_id)

    def retain(self, policy: RetentionPolicy, now: datetime) -> Forgotten:
        """Deletes what the policy lets go, as seen at `now`, in one transaction; kept snapshots read as before."""
        with self._writing(alone=True) as connection:
            forgotten = retain(connection, policy, now, shipped=embedded_snapshot_id())
            stored = {each.id for each in all_snapshots(connection)}
        with self._loading:
            for snapshot_id in self._columns.keys() - stored:
                del self._columns[snapshot_id]
        return forgotten

    def snapshot(self, snapshot_id: str) -> Snapshot:
        """The snapshot with all its rows, by its id or an unambiguous beginning of it.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            found = find_snapshot(connection, snapshot_id)
            types, offers = _contents(connection, found.seq)
        return Snapshot(id=found.id, observed_at=found.observed_at, instance_types=types, offers=tuple(offers))

    def columns(self, snapshot_id: str) -> Columns:
        """The snapshot as columns, by its id or an unambiguous beginning of it; kept in memory.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        known = self._columns.get(snapshot_id)
        return known if known is not None else self._load(snapshot_id)

    def _load(self, snapshot_id: str) -> Columns:
        with self._loading, self._reading() as connection:
            found = find_snapshot(connection, snapshot_id)
            if found.id in self._columns:
                return self._columns[found.id]
            types, offers = _contents(connection, found.seq)
            columns = stored_columns(found.id, found.observed_at, types, offers)
            self._columns[found.id] = columns
            while len(self._columns) > CACHED_SNAPSHOTS:
                self._columns.popitem(last=False)
            return columns

    def save_plan(
        self,
        plan_id: str,
        snapshot_id: str,
        job: Mapping[str, Any],
        outcome: Mapping[str, Any],
        created_at: datetime,
        *,
        charge: Charge | None = None,
    ) -> None:
        """Saves a plan; one that is there already stays as it is. Raises `ValueError` for what is not JSON.

        `charge` is counted and recorded in the same transaction; it raises `QuotaExceeded`, and then nothing is saved.
        """
        plan = SavedPlan(
            id=plan_id, snapshot_id=snapshot_id, job=dict(job), outcome=dict(outcome), created_at=created_at
        )
        with self._writing() as connection:
            write_plan(connection, plan)
            if charge is not None:
                charge.write(connection)

    def plan(self, plan_id: str) -> SavedPlan:
        """The saved plan. Raises `NotStored` at `plan` if there is none."""
        with self._reading() as connection:
            return read_plan(connection, plan_id)

    def save_actual(self, actual: Actual) -> Actual:
        """Keeps a report on a run of a saved plan, and gives the one kept before under the same id, if any."""
        with self._writing() as connection:
            return write_actual(connection, actual)

    def actuals(self, plan_id: str | None = None) -> tuple[Actual, ...]:
        """Every report, or those on one plan, the oldest first."""
        with self._reading() as connection:
            return read_actuals(connection, plan_id)

    def actual_ids(self) -> tuple[str, ...]:
        """The ids of all reports, the oldest first; a report under an id never changes."""
        with self._reading() as connection:
            return read_ids(connection)

    def forget_actual(self, actual_id: str) -> None:
        """Forgets one report. Raises `NotStored` at `actual` if there is none."""
        with self._writing() as connection:
            delete_actual(connection, actual_id)

    def forget_actuals(self) -> int:
        """Forgets every report, and says how many there were."""
        with self._writing() as connection:
            return delete_actuals(connection)

    def remember(self, key: str, scope: str, request_hash: str, response: object) -> object:
        """Keeps the response to a request that carries `key`, and returns the one that counts.

        That is the first, if the same request was answered twice at once. Raises `UnusableInput`
        if the key stands for another request.
        """
        with self._writing() as connection:
            write_response(connection, key, scope, request_hash, response)
            return read_response(connection, key, scope, request_hash)

    def recall(self, key: str, scope: str, request_hash: str) -> object | None:
        """The response to the same request with the same key within the last day, or None.

        Raises `UnusableInput` at Idempotency-Key if the key stands for another request.
        """
        with self._reading() as connection:
            return read_response(connection, key, scope, request_hash)

    def read[Found](self, look: Callable[[sa.Connection], Found]) -> Found:
        """What `look` finds, in one transaction that reads."""
        with self._reading() as connection:
            return look(connection)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with named_failures(self.url):
            self._refuse_removed_file()
            with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def _writing(self, *, alone: bool = False) -> Iterator[sa.Connection]:
        with named_failures(self.url):
            self._refuse_removed_file()
            with writing(self._writer, alone=alone) as connection:
                yield connection

    def _refuse_removed_file(self) -> None:
        """An open connection would go on reading and writing a removed file that nobody else can see."""
        path = sqlite_file(self.url)
        if path is not None and not path.exists():
            raise FileNotFoundError(ENOENT, strerror(ENOENT))


def embedded_snapshot_id() -> str:
    """The id of the snapshot that this release ships, without reading its prices.

    Raises `StoreFailure` if the release is incomplete.
    """
    try:
        return data_table("embedded.csv")[0]["snapshot_id"]
    except (OSError, IndexError, KeyError) as problem:
        raise StoreFailure(f"the embedded catalogue cannot be read ({problem}); reinstall gpuplan") from problem


def _put(connection: sa.Connection, snapshot: Snapshot, source: Source) -> None:
    """Writes a snapshot after the last one; one that is there already stays as it is."""
    if is_stored(connection, snapshot.id):
        return
    seq = (connection.execute(sa.select(sa.func.max(snapshots.c.seq))).scalar() or 0) + 1
    row = {
        "id": snapshot.id,
        "seq": seq,
        "created_at": datetime.now(UTC),
        "observed_at": snapshot.observed_at,
        "source": source,
        "parent": current_snapshot(connection),
        "offer_count": len(snapshot.offers),
    }
    connection.execute(sa.insert(snapshots), row)
    write_contents(connection, seq, snapshot.instance_types, snapshot.offers)


def _contents(connection: sa.Connection, seq: int) -> tuple[tuple[InstanceType, ...], StoredOffers]:
    rows = price_rows_at(connection, seq)
    return instance_types_at(connection, seq), StoredOffers(rows, readings_at(connection, seq))


def _refuse_unknown_types(snapshot: Snapshot) -> None:
    known = {(each.provider, each.name) for each in snapshot.instance_types}
    unknown = {(each.provider, each.instance_type) for each in snapshot.offers} - known
    if unknown:
        raise ValueError(f"offers name {len(unknown)} instance types that the snapshot lacks, such as {min(unknown)}")
