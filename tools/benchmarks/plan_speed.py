"""How long the first plan of a job takes, on the catalogue repeated to 100,000 and 1,000,000 offers, by the most nodes.

The snapshot is prepared, as a service does when prices arrive. Everything that the planner keeps of jobs is forgotten
before each plan, so that no job profits from the one before.
"""

import functools
import gc
import random
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import overload

import numpy as np

from gpuplan.api.services.current_prices import prepare_markets
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates import estimate_cache, priced_configurations
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Training, TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
#: Preset, unit, and a range of sizes from a fine-tune to a pre-training run.
MODELS = (
    ("llama-3-8b", "tokens", 1e8, 3e11),
    ("llama-3-70b", "tokens", 1e8, 3e10),
    ("mistral-7b", "tokens", 1e8, 1e11),
    ("mixtral-8x7b", "tokens", 1e8, 3e10),
    ("gpt2", "tokens", 1e8, 1e11),
    ("gpt3-175b", "tokens", 1e8, 1e10),
    ("qwen2.5-7b", "tokens", 1e8, 1e11),
    ("bert-large", "tokens", 1e9, 1e11),
    ("vit-b-16", "samples", 1e6, 4e8),
    ("resnet-50", "samples", 1e6, 2e8),
    ("stable-diffusion-1.5", "samples", 1e5, 1e8),
)


def varied_jobs(count: int, seed: int) -> list[TrainingJob]:
    """`count` jobs that differ in model, size, method, deadline, confidence, places and kinds."""
    return [_job(random.Random(f"{seed}/{i}"), i) for i in range(count)]


def _job(draw: random.Random, number: int) -> TrainingJob:
    workload = _workload(draw)
    adapts = isinstance(workload, Preset) and workload.tokens is not None
    return TrainingJob(
        name=f"job-{number}",
        workload=workload,
        training=Training(method=draw.choice(("full", "full", "lora", "qlora")) if adapts else "full"),
        start=START,
        deadline_hours=draw.choice((None, 12.0, 72.0, 168.0, 336.0, 720.0)),
        budget_usd=draw.choice((None, None, 1e4, 1e6)),
        confidence=draw.choice((0.5, 0.9, 0.95)),
        constraints=_constraints(draw),
        data=draw.choice((DataSource(), DataSource(location="aws:us-east-1", dataset_gb=draw.uniform(10, 5e3)))),
    )


def _workload(draw: random.Random) -> Preset | Explicit:
    if draw.random() < 0.1:
        return Explicit(total_flops=10 ** draw.uniform(18, 23), memory_gib=draw.uniform(4, 400))
    model, unit, least, most = draw.choice(MODELS)
    amount = least * (most / least) ** draw.random()
    return Preset(
        model=model, tokens=amount if unit == "tokens" else None, samples=amount if unit == "samples" else None
    )


def _constraints(draw: random.Random) -> Constraints:
    return Constraints(
        providers=draw.choice(((), (), ("aws",), ("gcp", "azure"))),
        geography=draw.choice(((), (), ("us",), ("us", "eu"))),
        price_kinds=draw.choice(((), (), ("on_demand",))),
        max_nodes=draw.choice((8, 32, 32, 64)),
    )


#: Offers (0: the embedded ones), the most nodes (0: what each job draws, 8, 32 or 64), and jobs.
CASES = ((0, 0, 200), (100_000, 0, 200), (100_000, 512, 40), (100_000, 4096, 20), (1_000_000, 0, 50))


@dataclass(frozen=True)
class Repeated(Sequence[Offer]):
    """The same rows repeated, without an object per row."""

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
    rows = columns.subset(at, Repeated(columns.offers, count))
    return replace(rows, snapshot_id=f"{columns.snapshot_id}-x{count}", usd_per_hour=rows.usd_per_hour * jitter)


class JobCaches:
    """The planner's job caches: those that grow when another job is planned on the same snapshot."""

    def __init__(self, columns: Columns, first: TrainingJob, second: TrainingJob) -> None:
        """Determined by planning two unrelated jobs."""
        plan(first, columns, settings=PlannerSettings())
        lru_caches = [
            get_object for get_object in gc.get_objects() if isinstance(get_object, functools._lru_cache_wrapper)
        ]
        mine = [item for item in lru_caches if _module(item).startswith("gpuplan.planner.")]
        sizes = [item.cache_info().currsize for item in mine]
        plan(second, columns, settings=PlannerSettings())
        self.caches = [item for item, size in zip(mine, sizes, strict=True) if item.cache_info().currsize > size]

    def forget(self) -> None:
        """Clear the caches of all jobs."""
        estimate_cache._tables.clear()
        priced_configurations.cached_offers_of.cache_clear()
        for cache in self.caches:
            cache.cache_clear()


def _module(cache: "functools._lru_cache_wrapper[object]") -> str:
    function: object = cache.__wrapped__
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", ""))


def main() -> None:
    """Print a row per case; with arguments only the cases of these most nodes."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    asked = {int(item) for item in sys.argv[1:]}
    columns_of_size: dict[int, Columns] = {0: embedded}
    print(
        f"{'offers':>10} {'max_nodes':>9} {'jobs':>5} {'median ms':>10} {'p90 ms':>8} {'p99 ms':>8} {'feasible':>9} {'peak MiB':>9}"
    )
    for size, most, count in CASES:
        if asked and most not in asked:
            continue
        columns = columns_of_size.setdefault(size, repeated(embedded, size) if size else embedded)
        jobs = [varied_job if not most else _on(varied_job, most) for varied_job in varied_jobs(count, seed=1)]
        prepare_markets(columns, PlannerSettings())
        caches = JobCaches(columns, *varied_jobs(2, seed=2))
        taken, feasible = [], 0
        gc.collect()
        for job in jobs:
            caches.forget()
            began = time.perf_counter()
            outcome = plan(job, columns, settings=PlannerSettings())
            taken.append((time.perf_counter() - began) * 1e3)
            feasible += type(outcome).__name__ == "Planned"
        p90, p99 = np.percentile(taken, [90, 99])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{len(columns):>10,} {most or '8-64':>9} {count:>5} {statistics.median(taken):>10.1f} {p90:>8.1f} {p99:>8.1f} "
            f"{feasible:>9} {peak:>9.0f}",
            flush=True,
        )


def _on(job: TrainingJob, most_nodes: int) -> TrainingJob:
    return replace(job, constraints=replace(job.constraints, max_nodes=most_nodes))


if __name__ == "__main__":
    main()
