"""How long explanations take, in process and warm, on the catalogue as it is and repeated to 100,000 offers.

A row per question: the three-way frontier alone; everything about a plan; why not something (an accelerator, a price
kind, a provider, a region in turn). Asked: 200 ms at 100,000 offers. Wall time, with the processor's own beside it:
they differ where others use the machine. The first answer about something takes its offers out of the snapshot, which
is counted.
"""

import gc
import time
from collections.abc import Callable

import numpy as np

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.pareto_cost_time_carbon import of_known_carbon, pareto_cost_time_carbon
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from gpuplan.planner.why.explanation import why
from gpuplan.planner.workload import work_of
from tools.benchmarks.plan_speed import repeated, varied_jobs

SIZES = (0, 100_000)
JOBS = 100
NAMES = ("H100", "spot", "azure", "us-*", "p5", "A100", "on_demand", "gcp", "T4", "europe-*")
SETTINGS = PlannerSettings()
Asked = Callable[[int, TrainingJob, Columns], object]


def _planned(_: int, job: TrainingJob, columns: Columns) -> object:
    return plan(job, columns, settings=SETTINGS)


def _frontier(_: int, job: TrainingJob, columns: Columns) -> object:
    if job.start is None:
        raise ValueError("jobs of the benchmark have a start")
    work = work_of(job.workload, job.training)
    market = markets(columns, (), SETTINGS, job.start)
    question = Question(job=job, work=work, markets=market, start=job.start, settings=SETTINGS)
    return pareto_cost_time_carbon(job, of_known_carbon(question))


def _plan_alone(_: int, job: TrainingJob, columns: Columns) -> object:
    return why(job, columns, settings=SETTINGS)


def _why_not(number: int, job: TrainingJob, columns: Columns) -> object:
    return why(job, columns, settings=SETTINGS, not_=NAMES[number % len(NAMES)])


REQUESTS: dict[str, Asked] = {
    "plan, for comparison": _planned,
    "frontier of three": _frontier,
    "why": _plan_alone,
    "why --not X": _why_not,
}


def main() -> None:
    """Print a row per size and question."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    jobs = varied_jobs(JOBS, seed=1)
    print(
        f"{'offers':>8} {'question':<21} {'median ms':>10} {'p90 ms':>8} {'p99 ms':>8} {'median CPU ms':>14} {'<= 200 ms':>10}"
    )
    for size in SIZES:
        columns = repeated(embedded, size) if size else embedded
        for name, asked in REQUESTS.items():
            for number, job in enumerate(jobs[:5]):
                asked(number, job, columns)
            wall, processor = [], []
            gc.collect()
            for number, job in enumerate(jobs):
                began, used = time.perf_counter(), time.process_time()
                asked(number, job, columns)
                wall.append((time.perf_counter() - began) * 1e3)
                processor.append((time.process_time() - used) * 1e3)
            median, p90, p99 = np.percentile(wall, [50, 90, 99])
            share = np.mean(np.array(wall) <= 200)
            print(
                f"{len(columns):>8,} {name:<21} {median:>10.1f} {p90:>8.1f} {p99:>8.1f} "
                f"{np.median(processor):>14.1f} {share:>10.0%}"
            )


if __name__ == "__main__":
    main()
