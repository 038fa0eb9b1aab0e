"""How long it takes to plan a running job anew, in process and warm, on the catalogue as it is and repeated to 100,000 offers.

A row per situation of the same jobs: the plan alone; on time with 40 % done; 30 % slower than planned; machines gone
with 2 % lost. Where going on is best, how far that holds is part of the answer, some twenty plans more. Wall time, with
the processor's own beside it: they differ where others use the machine. `goes on` is the share of jobs told to.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np

from benchmarks.jobs import varied_jobs
from benchmarks.plan_speed import repeated
from catalog.columns import Columns, columns_of
from catalog.embedded import embedded_snapshot
from planner.answer import Planned
from planner.job import TrainingJob
from planner.plan import plan
from planner.replan.answer import Replanned
from planner.replan.decide import replan
from planner.replan.under_way import Amount, On, Speed, UnderWay
from planner.settings import PlannerSettings

SIZES = (0, 100_000)
JOBS = 40
DONE, SLOWER, LOST = 0.4, 1.3, 0.02
SETTINGS = PlannerSettings()


def _on_time(planned: Planned) -> UnderWay:
    """Some way into a plan, at the pace that its deadline was planned at."""
    first = planned.phases[0]
    offer = first.choice.offer
    on = On(
        instance_type=offer.instance_type,
        nodes=first.choice.nodes,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        price_kind=offer.price_kind,
    )
    now = planned.start + timedelta(hours=DONE * first.choice.hours.confident)
    return UnderWay(now=now, on=on, done=Amount(value=DONE * first.share))


def _slower(planned: Planned) -> UnderWay:
    return replace(_on_time(planned), rate=Speed(value=planned.phases[0].throughput / SLOWER))


def _gone(planned: Planned) -> UnderWay:
    there = _on_time(planned)
    return replace(there, up=False, saved=Amount(value=there.done.value * (1 - LOST)))


SITUATIONS: dict[str, Callable[[Planned], UnderWay] | None] = {
    "plan, for comparison": None,
    "on time": _on_time,
    "30 % slower": _slower,
    "machines gone": _gone,
}


def _asked(job: TrainingJob, columns: Columns, running: UnderWay | None) -> object:
    if running is None:
        return plan(job, columns, settings=SETTINGS)
    return replan(job, columns, running=running, settings=SETTINGS)


def main() -> None:
    """Print a row per size and situation."""
    snapshot = embedded_snapshot()
    embedded = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    titles = f"{'median ms':>10} {'p90 ms':>8} {'median CPU ms':>14} {'goes on':>8}"
    print(f"{'offers':>8} {'jobs':>5} {'situation':<21} {titles}")
    for size in SIZES:
        columns = repeated(embedded, size) if size else embedded
        runs = []
        for job in varied_jobs(JOBS, seed=1):
            planned = plan(job, columns, settings=SETTINGS)
            if isinstance(planned, Planned) and planned.hours.confident < 1e5:
                runs.append((job, planned))
        for name, situation in SITUATIONS.items():
            asked = [(job, None if situation is None else situation(planned)) for job, planned in runs]
            for job, running in asked[:3]:
                _asked(job, columns, running)
            wall, processor, stays = [], [], 0
            gc.collect()
            for job, running in asked:
                began, used = time.perf_counter(), time.process_time()
                answer = _asked(job, columns, running)
                wall.append((time.perf_counter() - began) * 1e3)
                processor.append((time.process_time() - used) * 1e3)
                stays += isinstance(answer, Replanned) and answer.action == "continue"
            median, p90 = np.percentile(wall, [50, 90])
            share = "" if situation is None else f"{stays / len(asked):.0%}"
            figures = f"{median:>10.1f} {p90:>8.1f} {np.median(processor):>14.1f} {share:>8}"
            print(f"{len(columns):>8,} {len(asked):>5} {name:<21} {figures}")


if __name__ == "__main__":
    main()
