"""The store: snapshots, plans and remembered responses, in SQLite or PostgreSQL; the one door to the tables."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from catalog.access_store import AccessStore
from catalog.actuals import read_ids
from catalog.columns import Columns
from catalog.data_tables import data_table
from catalog.database import connect, database_url, named_failures
from catalog.errors import StoreFailure
from catalog.migrate import to_head
from catalog.offer import InstanceType
from catalog.plan_store import PlanStore
from catalog.price_points import instance_types_at, price_rows_at, readings_at, write_contents
from catalog.refresh_store import RefreshStore
from catalog.refreshes import RefreshRecord, write_refresh
from catalog.saved import SavedPlan
from catalog.schema import snapshots
from catalog.snapshot import Snapshot
from catalog.snapshot_list import NotStored, StoredSnapshot, all_snapshots, current_snapshot, find_snapshot, is_stored
from catalog.stored_columns import StoredOffers, stored_columns

if TYPE_CHECKING:
    from catalog.diff import SnapshotDiff
    from catalog.history import PricePoint
    from catalog.kept_diffs import KeptDiffs
    from catalog.retention import Forgotten, RetentionPolicy
    from catalog.run_store import RunStore
    from catalog.share_store import ShareStore
    from catalog.slack_store import SlackStore
    from catalog.watch_store import WatchStore

__all__ = ["NotStored", "SavedPlan", "Source", "Store", "StoredSnapshot"]

Source = Literal["embedded", "refresh"]

#: Snapshots kept as columns in memory: the current one, the one before a refresh, and two that users look at.
CACHED_SNAPSHOTS = 4


class Store(RefreshStore, PlanStore):
    """One database, for any number of threads. Every method raises `StoreFailure` if it cannot be used."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        """Use `Store.open`, which also brings the database up to date."""
        super().__init__(engine, url)
        self.access = AccessStore(reading=self._reading, writing=self._writing)
        self._loading = threading.Lock()
        self._columns: OrderedDict[str, Columns] = OrderedDict()

    # What plans do without is loaded where it is first asked for: each costs every command some milliseconds.

    @cached_property
    def watching(self) -> "WatchStore":
        """The watches and what they have to say."""
        from catalog.watch_store import WatchStore

        return WatchStore(reading=self._reading, writing=self._writing)

    @cached_property
    def runs(self) -> "RunStore":
        """Work that outlives its request."""
        from catalog.run_store import RunStore

        return RunStore(reading=self._reading, writing=self._writing)

    @cached_property
    def slack(self) -> "SlackStore":
        """What Slack asked, and who may ask there."""
        from catalog.slack_store import SlackStore

        return SlackStore(reading=self._reading, writing=self._writing)

    @cached_property
    def shares(self) -> "ShareStore":
        """Links by which others may read a plan, run or watch."""
        from catalog.share_store import ShareStore

        return ShareStore(reading=self._reading, writing=self._writing)

    @cached_property
    def _diffs(self) -> "KeptDiffs":
        from catalog.kept_diffs import KeptDiffs

        return KeptDiffs()

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

    def price_points(self, instance_type: str, snapshot_id: str) -> "list[PricePoint]":
        """Every price the instance type had up to a snapshot and in it, by offer and time; empty if it had none.

        Raises `NotStored` at `snapshot` with the nearest ids if there is no such snapshot.
        """
        from catalog.history import line_to, price_points

        with self._reading() as connection:
            exact = snapshot_id if is_stored(connection, snapshot_id) else find_snapshot(connection, snapshot_id).id
            return price_points(connection, line_to(connection, exact), instance_type)

    def priced_types(self) -> list[str]:
        """The names of all instance types that have, or had, a price."""
        from catalog.history import priced_types

        with self._reading() as connection:
            return priced_types(connection)

    def diff(self, before: str, after: str) -> "SnapshotDiff":
        """What one snapshot changes against another, by ids or unambiguous beginnings of them.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            old, new = (find_snapshot(connection, each).id for each in (before, after))
        return self._diffs.of((old, new), lambda: self._diff(old, new))

    def _diff(self, before: str, after: str) -> "SnapshotDiff":
        from catalog.diff import stored_diff

        with self._reading() as connection:
            old, new = (find_snapshot(connection, each) for each in (before, after))
            return stored_diff(connection, old.seq, new.seq)

    def find_snapshot(self, snapshot_id: str) -> StoredSnapshot:
        """The snapshot without its rows, by its id or an unambiguous beginning of it.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            return find_snapshot(connection, snapshot_id)

    def retain(self, policy: "RetentionPolicy", now: datetime) -> "Forgotten":
        """Deletes what the policy lets go, as seen at `now`, in one transaction; kept snapshots read as before."""
        from catalog.retention import retain

        with self._writing(alone=True) as connection:
            forgotten = retain(connection, policy, now, shipped=embedded_snapshot_id())
            stored = {each.id for each in all_snapshots(connection)}
        with self._loading:
            for snapshot_id in self._columns.keys() - stored:
                del self._columns[snapshot_id]
        self._diffs.keep_only(stored)
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
