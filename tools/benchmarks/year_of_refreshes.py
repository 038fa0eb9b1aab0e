"""A year of nightly refreshes in SQLite: size on disk, and how long writing, history, a diff and retention take.

60,000 prices of 290 instance types, 2 % of them at another price each night and every one read again, one region
in twenty stale every tenth night. Prints tables, asserts nothing.

Run from the repository root: python -m tools.benchmarks.year_of_refreshes [NIGHTS] [PRICES].
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.store import Store

FIRST_NIGHT = datetime(2025, 11, 21, 2, 30, tzinfo=UTC)
TYPES, REGIONS, ZONES, KINDS = 290, 60, 4, ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y")
CHANGED_SHARE = 0.02


def machines() -> tuple[InstanceType, ...]:
    """As many instance types as the three clouds have with accelerators."""
    facts = {"provider": "aws", "accelerator": "H100-80GB-SXM", "accelerator_count": Fraction(8)}
    return tuple(InstanceType(name=f"g{i}.48xlarge", **facts) for i in range(TYPES))  # type: ignore[arg-type]


def first_offers(count: int) -> list[Offer]:
    """Distinct offers: every type in every region and zone under every kind, until there are enough."""
    chosen = random.Random(1).sample(range(TYPES * REGIONS * ZONES * len(KINDS)), count)
    return [_offer(number) for number in chosen]


def _offer(number: int) -> Offer:
    rest, kind = divmod(number, len(KINDS))
    rest, zone = divmod(rest, ZONES)
    machine, region = divmod(rest, REGIONS)
    return Offer(
        provider="aws",
        region=f"region-{region}",
        zone=f"region-{region}-az{zone}",
        instance_type=f"g{machine}.48xlarge",
        price_kind=KINDS[kind],
        usd_micros_per_hour=1_000_000 + number,
        observed_at=FIRST_NIGHT,
        source=f"https://prices.example.org/{KINDS[kind]}",
    )


def nights(count: int, prices: int) -> Iterator[Snapshot]:
    """One snapshot per night."""
    types, offers, chance = machines(), first_offers(prices), random.Random(2)
    for night in range(count):
        seen = FIRST_NIGHT + timedelta(days=night)
        moved = set(chance.sample(range(prices), round(prices * CHANGED_SHARE))) if night else set()
        stale = {f"region-{i}" for i in range(0, REGIONS, 20)} if night % 10 == 9 else set()
        for i, offer in enumerate(offers):
            if offer.region in stale:
                offers[i] = replace(offer, stale_since=seen)
                continue
            usd = chance.randrange(500_000, 90_000_000) if i in moved else offer.usd_micros_per_hour
            offers[i] = replace(offer, observed_at=seen, stale_since=None, usd_micros_per_hour=usd)
        yield snapshot_of(types, offers)


def milliseconds(act: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1e3


def row(what: str, taken: list[float]) -> None:
    """One line of the table: median, 99th percentile and the slowest."""
    p50, p99 = np.percentile(taken, [50, 99])
    print(f"{what:<44} {p50:>9.1f} {p99:>9.1f} {max(taken):>9.1f}   ({len(taken)})")


def megabytes(store: Store, file: Path) -> float:
    """The size of the file with everything in it, what WAL holds included."""
    with store.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    return file.stat().st_size / 1e6


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 365
    prices = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpuplan.sqlite3"
        store = Store.open(f"sqlite:///{file}")
        writing: list[float] = []
        ids = []
        for snapshot in nights(count, prices):
            writing.append(milliseconds(lambda: store.put_snapshot(snapshot, source="refresh")))  # noqa: B023
            ids.append(snapshot.id)
            if len(ids) in (1, 2) or len(ids) % 73 == 0:
                print(f"after night {len(ids):>3}: {megabytes(store, file):7.1f} MB", flush=True)
        measure(store, ids, writing)
        print(f"after all: {megabytes(store, file):.1f} MB")
        store.close()


def measure(store: Store, ids: list[str], writing: list[float]) -> None:
    """Print how long each question takes on the full store, then retention night by night and all at once."""
    print(f"{'milliseconds':<44} {'median':>9} {'p99':>9} {'slowest':>9}")
    row("writing the first night", writing[:1])
    row("writing a night", writing[1:])
    points = len(store.price_points("g7.48xlarge", ids[-1]))
    row(
        f"history of one type (some {points:,} prices)",
        [milliseconds(lambda: _history(store, ids)) for _ in range(200)],
    )
    row("diff of a night", [milliseconds(lambda: store.diff(ids[-2], ids[-1])) for _ in range(20)])
    row("diff of the year", [milliseconds(lambda: store.diff(ids[0], ids[-1])) for _ in range(3)])
    row("a whole snapshot from the middle", [milliseconds(lambda: store.snapshot(ids[len(ids) // 2]))])
    end = FIRST_NIGHT + timedelta(days=len(ids))
    thinned = RetentionPolicy(every_snapshot_days=len(ids) - 40, weekly_snapshot_days=1825)
    row("retention, the first night it is asked for", [milliseconds(lambda: store.retain(thinned, end))])
    nightly = [end + timedelta(days=i + 1) for i in range(20)]
    row("retention, one night more", [milliseconds(lambda: store.retain(thinned, now)) for now in nightly])  # noqa: B023
    least = RetentionPolicy(every_snapshot_days=7, weekly_snapshot_days=30)
    row("retention, almost everything at once", [milliseconds(lambda: store.retain(least, end))])


def _history(store: Store, ids: list[str]) -> object:
    return store.price_points(f"g{random.randrange(TYPES)}.48xlarge", ids[-1])


if __name__ == "__main__":
    main()
