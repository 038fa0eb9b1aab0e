"""The store of snapshots, plans and responses in SQLite or PostgreSQL; the only access to the tables."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa
from cachetools import FIFOCache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.access_store import AccessStore
from gpuplan.catalog.store.database import connect, database_url, named_failures
from gpuplan.catalog.store.plan_store import PlanStore, SavedPlan, read_ids
from gpuplan.catalog.store.price_points import instance_types_at, price_rows_at, readings_at, write_contents
from gpuplan.catalog.store.refresh_store import RefreshRecord, RefreshStore, write_refresh
from gpuplan.catalog.store.schema import snapshots
from gpuplan.catalog.store.schema_upgrade import to_head
from gpuplan.catalog.store.snapshot_list import (
    NotStored,
    StoredSnapshot,
    all_snapshots,
    current_snapshot,
    find_snapshot,
    is_stored,
)
from gpuplan.catalog.store.stored_columns import StoredOffers, stored_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpuplan.catalog.store.capacity_store import CapacityStore
    from gpuplan.catalog.store.cost_store import CostStore
    from gpuplan.catalog.store.price_history import PricePoint
    from gpuplan.catalog.store.price_points import Key
    from gpuplan.catalog.store.retention import Forgotten, RetentionPolicy
    from gpuplan.catalog.store.run_store import RunStore
    from gpuplan.catalog.store.share_store import ShareStore
    from gpuplan.catalog.store.slack_store import SlackStore
    from gpuplan.catalog.store.snapshot_diff import DiffCache, SnapshotDiff
    from gpuplan.catalog.store.watch_store import WatchStore

__all__ = ["NotStored", "SavedPlan", "Source", "Store", "StoredSnapshot"]

Source = Literal["embedded", "refresh"]

#: Snapshots cached as columns in memory: the current one, the one before a refresh, and two that users view.
CACHED_SNAPSHOTS = 4


class Store(RefreshStore, PlanStore):
    """One database, for any number of threads. Every method raises `StoreFailure` if it cannot be used."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        """Use `Store.open`, which also upgrades the database."""
        super().__init__(engine, url)
        self.access = AccessStore(reading=self._reading, writing=self._writing)
        self._loading = threading.Lock()
        self._columns: FIFOCache[str, Columns] = FIFOCache(CACHED_SNAPSHOTS)

    # Imported on first use: planning does not need these, and each costs every command some milliseconds.

    @cached_property
    def watching(self) -> "WatchStore":
        """Watches and their notifications."""
        from gpuplan.catalog.store.watch_store import WatchStore

        return WatchStore(reading=self._reading, writing=self._writing)

    @cached_property
    def runs(self) -> "RunStore":
        """Background runs."""
        from gpuplan.catalog.store.run_store import RunStore

        return RunStore(reading=self._reading, writing=self._writing)

    @cached_property
    def slack(self) -> "SlackStore":
        """Questions from Slack, and allowed workspaces."""
        from gpuplan.catalog.store.slack_store import SlackStore

        return SlackStore(reading=self._reading, writing=self._writing)

    @cached_property
    def shares(self) -> "ShareStore":
        """Share links to plans, runs and watches."""
        from gpuplan.catalog.store.share_store import ShareStore

        return ShareStore(reading=self._reading, writing=self._writing)

    @cached_property
    def capacity(self) -> "CapacityStore":
        """What clouds said about getting machines."""
        from gpuplan.catalog.store.capacity_store import CapacityStore

        return CapacityStore(reading=self._reading, writing=self._writing)

    @cached_property
    def costs(self) -> "CostStore":
        """Plans that count in the costs of a month, and budgets of teams."""
        from gpuplan.catalog.store.cost_store import CostStore

        return CostStore(reading=self._reading, writing=self._writing)

    @cached_property
    def _diffs(self) -> "DiffCache":
        from gpuplan.catalog.store.snapshot_diff import DiffCache

        return DiffCache()

    @classmethod
    def open(cls, url: str | None = None) -> "Store":
        """The store at `url` (None: a SQLite file in the user's data directory), created and migrated if needed.

        Raises `UnusableInput` at GPUPLAN_DATABASE_URL for an unusable URL, `StoreFailure` if the database cannot be
        reached, read or written, or belongs to a newer release.
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

        This is the newest refresh, unless this release has embedded prices read after it.
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
        """`current_snapshot_id` and `actual_ids` in one read: the inputs of a plan other than its job."""
        with self._reading() as connection:
            current = current_snapshot(connection)
            if current is not None:
                return current, read_ids(connection)
        return self.current_snapshot_id(), self.actual_ids()

    def snapshots(self) -> list[StoredSnapshot]:
        """Every snapshot, last written first."""
        with self._reading() as connection:
            return all_snapshots(connection)

    def ensure_embedded(self) -> None:
        """Add this release's embedded snapshot if it is missing; otherwise costs one look-up."""
        shipped = embedded_snapshot_id()
        with self._reading() as connection:
            already_stored = is_stored(connection, shipped)
        if not already_stored:
            from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot

            self.put_snapshot(embedded_snapshot(), source="embedded")

    def put_snapshot(self, snapshot: Snapshot, *, source: Source) -> str:
        """Write the snapshot in one transaction, unless it exists, and return its id.

        Raises `ValueError` if an offer names an instance type that the snapshot lacks.
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
        """Write a refresh's record, its snapshot if it has one, and the writes of `then`, in one transaction.

        Raises `ValueError` if an offer names an instance type that the snapshot lacks.
        """
        if snapshot is not None:
            _refuse_unknown_types(snapshot)
        with self._writing(alone=True) as connection:
            if snapshot is not None:
                _put(connection, snapshot, "refresh")
            write_refresh(connection, record)
            then(connection)

    def price_points(self, instance_type: str, snapshot_id: str) -> "list[PricePoint]":
        """Every price of the instance type up to and including a snapshot, by offer and time; may be empty.

        Raises `NotStored` at `snapshot` with the nearest ids if there is no such snapshot.
        """
        from gpuplan.catalog.store.price_history import line_to, price_points

        with self._reading() as connection:
            exact = snapshot_id if is_stored(connection, snapshot_id) else find_snapshot(connection, snapshot_id).id
            return price_points(connection, line_to(connection, exact), instance_type)

    def price_points_of(self, keys: "Collection[Key]", snapshot_id: str, *, since: datetime) -> "list[PricePoint]":
        """Every price that these offers had in the snapshots from `since` on, up to and including one, by offer and time.

        Raises `NotStored` at `snapshot` with the nearest ids if there is no such snapshot.
        """
        from gpuplan.catalog.store.price_history import line_to, price_points_of

        with self._reading() as connection:
            exact = snapshot_id if is_stored(connection, snapshot_id) else find_snapshot(connection, snapshot_id).id
            line = line_to(connection, exact)
            return price_points_of(connection, [one for one in line if one.observed_at >= since] or line[-1:], keys)

    def priced_types(self) -> list[str]:
        """The names of all instance types that have or had a price."""
        from gpuplan.catalog.store.price_history import priced_types

        with self._reading() as connection:
            return priced_types(connection)

    def diff(self, before: str, after: str) -> "SnapshotDiff":
        """The changes between two snapshots, given by ids or unique prefixes.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            old, new = (find_snapshot(connection, snapshot_id).id for snapshot_id in (before, after))
        return self._diffs.of((old, new), lambda: self._diff(old, new))

    def _diff(self, before: str, after: str) -> "SnapshotDiff":
        from gpuplan.catalog.store.snapshot_diff import stored_diff

        with self._reading() as connection:
            old, new = (find_snapshot(connection, snapshot_id) for snapshot_id in (before, after))
            return stored_diff(connection, old.seq, new.seq)

    def find_snapshot(self, snapshot_id: str) -> StoredSnapshot:
        """The snapshot without its rows, by its id or a unique prefix.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            return find_snapshot(connection, snapshot_id)

    def retain(self, policy: "RetentionPolicy", now: datetime) -> "Forgotten":
        """Delete what has expired at `now` under the policy, in one transaction; remaining snapshots read as before."""
        from gpuplan.catalog.store.retention import retain

        with self._writing(alone=True) as connection:
            forgotten = retain(connection, policy, now, shipped=embedded_snapshot_id())
            stored = {all_snapshot.id for all_snapshot in all_snapshots(connection)}
        with self._loading:
            for snapshot_id in self._columns.keys() - stored:
                del self._columns[snapshot_id]
        self._diffs.retain_only(stored)
        return forgotten

    def snapshot(self, snapshot_id: str) -> Snapshot:
        """The snapshot with all its rows, by its id or a unique prefix.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        with self._reading() as connection:
            stored = find_snapshot(connection, snapshot_id)
            types, offers = _contents(connection, stored.seq)
        return Snapshot(id=stored.id, observed_at=stored.observed_at, instance_types=types, offers=tuple(offers))

    def columns(self, snapshot_id: str) -> Columns:
        """The snapshot as columns, by its id or a unique prefix; cached in memory.

        Raises `NotStored` at `snapshot` with the nearest ids if there is none.
        """
        known = self._columns.get(snapshot_id)
        return known if known is not None else self._load(snapshot_id)

    def _load(self, snapshot_id: str) -> Columns:
        with self._loading, self._reading() as connection:
            stored = find_snapshot(connection, snapshot_id)
            if stored.id in self._columns:
                return self._columns[stored.id]
            types, offers = _contents(connection, stored.seq)
            columns = stored_columns(stored.id, stored.observed_at, types, offers)
            self._columns[stored.id] = columns
            return columns


def embedded_snapshot_id() -> str:
    """The id of this release's embedded snapshot, without reading its prices.

    Raises `StoreFailure` if the release is incomplete.
    """
    try:
        return data_table("embedded.csv")[0]["snapshot_id"]
    except (OSError, IndexError, KeyError) as problem:
        raise StoreFailure(f"the embedded catalogue cannot be read ({problem}); reinstall gpuplan") from problem


def _put(connection: sa.Connection, snapshot: Snapshot, source: Source) -> None:
    """Write a snapshot after the last one, unless it exists."""
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
    known = {(instance_type.provider, instance_type.name) for instance_type in snapshot.instance_types}
    unknown = {(offer.provider, offer.instance_type) for offer in snapshot.offers} - known
    if unknown:
        raise ValueError(f"offers name {len(unknown)} instance types that the snapshot lacks, such as {min(unknown)}")
