"""How long one plan takes, in process and warm, on the catalogue repeated to 10,000, 100,000 and 1,000,000 offers."""

import gc
import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from benchmarks.jobs import varied_jobs
from catalog.columns import Columns, columns_of
from catalog.embedded import embedded_snapshot
from catalog.offer import Offer
from planner.plan import plan
from planner.settings import PlannerSettings

SIZES = (0, 100_000, 1_000_000)
JOBS = 200


@dataclass(frozen=True)
class Repeated(Sequence[Offer]):
    """The same rows again and again, without an object per row."""

    rows: Sequence[Offer]
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.size))]
        return self.rows[index % len(self.rows)]


def repeated(columns: Columns, count: int) -> Columns:
    """The snapshot repeated to `count` offers, every copy at prices of its own (within 20 %), as more zones would be."""
    at = np.arange(count) % len(columns)
    jitter = np.random.default_rng(count).uniform(0.9, 1.1, count)
    return Columns(
        snapshot_id=f"{columns.snapshot_id}-x{count}",
        observed_at=columns.observed_at,
        instance_types=columns.instance_types,
        regions=columns.regions,
        kinds=columns.kinds,
        offers=Repeated(columns.offers, count),
        type_index=columns.type_index[at],
        region_index=columns.region_index[at],
        kind_index=columns.kind_index[at],
        usd_per_hour=columns.usd_per_hour[at] * jitter,
        interruptions_per_hour=columns.interruptions_per_hour[at],
        plannable=columns.plannable[at],
        verified=columns.verified[at],
    )


def main() -> None:
    """Print a row per size."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    jobs, settings = varied_jobs(JOBS, seed=1), PlannerSettings()
    print(f"{'offers':>10} {'median ms':>10} {'p90 ms':>8} {'p99 ms':>8} {'feasible':>9} {'peak MiB':>9}")
    for size in SIZES:
        columns = repeated(embedded, size) if size else embedded
        for job in jobs[:20]:
            plan(job, columns, settings=settings)
        taken, feasible = [], 0
        gc.collect()
        for job in jobs:
            began = time.perf_counter()
            outcome = plan(job, columns, settings=settings)
            taken.append((time.perf_counter() - began) * 1e3)
            feasible += type(outcome).__name__ == "Planned"
        p90, p99 = np.percentile(taken, [90, 99])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        median = statistics.median(taken)
        print(f"{len(columns):>10,} {median:>10.1f} {p90:>8.1f} {p99:>8.1f} {feasible:>9} {peak:>9.0f}")


if __name__ == "__main__":
    main()
