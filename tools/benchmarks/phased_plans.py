"""What planning in two phases takes and saves, in process and warm, on the catalogue repeated to 100,000 offers.

Two sets of jobs: the varied ones of the other benchmarks, and tight ones, on few nodes with a deadline between what the
fastest and the cheapest configuration need, where moves may pay. Times are of the search for phases alone (with the
linear model that checks it) and of the whole plan, in milliseconds of this process, so that neighbours do not count.
"""

import gc
import statistics
import time
from dataclasses import replace
from random import Random

import numpy as np

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.candidates.candidate_set import candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.phased.phase_search import search_phases
from gpuplan.planner.strategies.strategy_choice import limit_micros
from gpuplan.planner.workload import work_of
from tools.benchmarks.plan_speed import repeated, varied_jobs

JOBS = 200
SETTINGS = PlannerSettings()


def tight_jobs(columns: Columns, count: int, seed: int) -> list[TrainingJob]:
    """Jobs on at most eight nodes that the cheapest configuration cannot finish in time and some other can."""
    training_jobs: list[TrainingJob] = []
    for number, drawn in enumerate(varied_jobs(3 * count, seed)):
        if len(training_jobs) == count:
            break
        draw = Random(f"{seed}/{number}")
        few = replace(drawn.constraints, max_nodes=draw.choice((1, 2, 4, 8)))
        job = replace(drawn, budget_usd=None, constraints=few)
        times = _times(job, columns)
        if times is not None:
            fastest, cheap = times
            training_jobs.append(
                replace(job, deadline_hours=fastest * (max(cheap / fastest, 1.0)) ** draw.uniform(0.05, 0.95))
            )
    return training_jobs


def _times(job: TrainingJob, columns: Columns) -> tuple[float, float] | None:
    """Confident hours of the fastest and of the cheapest configuration; None if nothing runs the job."""
    table = candidates(_question(replace(job, deadline_hours=None), columns)).table
    if not len(table):
        return None
    return float(table.cost_breakdown.hours_at_confidence.min()), float(
        table.cost_breakdown.hours_at_confidence[np.argmin(table.cost_breakdown.cost_usd)]
    )


def _question(job: TrainingJob, columns: Columns) -> Question:
    start = job.start
    if start is None:
        raise ValueError("the jobs of benchmarks have a start")
    return Question(
        job=job,
        work=work_of(job.workload, job.training),
        markets=markets(columns, (), SETTINGS, start),
        start=start,
        settings=SETTINGS,
    )


def measure(name: str, jobs: list[TrainingJob], columns: Columns) -> None:
    """Print one row."""
    search, whole, saved, phases = [], [], [], [0, 0, 0]
    for job in jobs[:20]:
        plan(job, columns, settings=SETTINGS)
    gc.collect()
    for job in jobs:
        plan_candidates = candidates(_question(job, columns))
        chosen = cheapest(plan_candidates.table, over(plan_candidates.table, job.deadline_hours, job.budget_usd) == 0)
        limit = limit_micros(plan_candidates, chosen)
        began = time.process_time()
        best = search_phases(plan_candidates, limit).best
        search.append((time.process_time() - began) * 1e3)
        if best is not None and np.isfinite(limit):
            saved.append(1 - best.plan.micros / limit)
        phases[1 if best is None else len(best.plan.steps)] += chosen is not None or best is not None
        began = time.process_time()
        outcome = plan(job, columns, settings=SETTINGS)
        whole.append((time.process_time() - began) * 1e3)
        if isinstance(outcome, Planned) and outcome.proof.certificate.gap > 0:
            print(f"  {job.name}: gap {outcome.proof.certificate.gap:.1e}")
    average = statistics.mean(saved) if saved else 0.0
    print(
        f"{name:>8} {len(jobs):>5} {np.percentile(search, 50):>9.1f} {np.percentile(search, 90):>7.1f}"
        f" {np.percentile(search, 99):>7.1f} {np.percentile(whole, 50):>9.1f} {np.percentile(whole, 90):>7.1f}"
        f" {np.percentile(whole, 99):>7.1f} {phases[1]:>5} {phases[2]:>5} {average:>8.1%}"
    )


def main() -> None:
    """Print a row per set of jobs."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    columns = repeated(embedded, 100_000)
    print("          jobs  search ms: 50, 90, 99 %      plan ms: 50, 90, 99 %   1 phase  2    saved by 2")
    measure("varied", varied_jobs(JOBS, seed=1), columns)
    measure("tight", tight_jobs(columns, JOBS, seed=2), columns)


if __name__ == "__main__":
    main()
