"""The portfolio as a plan: what each job runs on and when, what was left out and why, how busy the pools are."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from catalog.columns import Columns
from catalog.money import usd_text
from catalog.owned import OwnedMachine
from planner.document_figures import moment
from planner.phase_document import choice_document
from planner.portfolio.assemble import MUST_RUN, Assembled, assemble
from planner.portfolio.instance import LEFT_OUT, Instance
from planner.portfolio.left_out import WayIn, in_use, ways_in
from planner.portfolio.markets import Pools, pools_of
from planner.portfolio.progress import Found, Progress, Stage
from planner.portfolio.request import Portfolio
from planner.portfolio.search import search
from planner.settings import PlannerSettings

Document = dict[str, Any]

#: Ways in are worked out for so many jobs; more than that left out is a portfolio to be cut, not mended.
MOST_EXPLAINED = 100
#: More pools than this are not listed in one sentence.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the search ends: after `time_limit_s` or after `iterations`, from `seed` on."""

    time_limit_s: float | None = None
    iterations: int | None = None
    seed: int = 0


def plan_portfolio(
    portfolio: Portfolio,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    limits: Limits,
    report: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Document:
    """The best plan found for all jobs together, with its proven gap, as the object that every door gives.

    `report` is told where it stands, from the first job's configurations on; `cancelled` is asked at least every second, and once it says yes the
    answer is the best plan so far.

    The time limit counts from the call: jobs whose configurations are not known when it is up are left out by name,
    and a first plan is made of the others in any case. Raises `UnusableInput` for jobs that contradict themselves and
    portfolios too large for the memory.
    """
    began, limit = clock(), limits.time_limit_s

    def stop() -> bool:
        return (limit is not None and clock() - began >= limit) or (cancelled is not None and cancelled())

    def seen(jobs: int) -> None:
        if report is not None:
            every = len(portfolio.jobs)
            report(Progress(elapsed_s=clock() - began, stage=Stage.CONFIGURATIONS, jobs=every, jobs_seen=jobs))

    seen(0)
    pools = pools_of(portfolio, columns, owned, settings)
    assembled = assemble(portfolio, pools, settings, stop=stop, seen=seen)
    before_s = clock() - began

    def tell(progress: Progress) -> None:
        if report is not None:
            looked_at = progress.jobs - len(assembled.unseen)
            report(replace(progress, elapsed_s=before_s + progress.elapsed_s, jobs_seen=looked_at))

    found = search(
        assembled.instance,
        seed=limits.seed,
        time_limit_s=None if limit is None else max(0.0, limit - before_s),
        iterations=limits.iterations,
        report=tell,
        cancelled=cancelled,
        clock=clock,
    )
    return _Answer(portfolio, pools, assembled, found).document(columns.snapshot_id, settings, limits)


class _Answer:
    def __init__(self, portfolio: Portfolio, pools: Pools, assembled: Assembled, found: Found) -> None:
        self.portfolio, self.pools, self.assembled, self.found = portfolio, pools, assembled, found
        self.instance: Instance = assembled.instance
        self.plan = found.plan

    def document(self, snapshot_id: str, settings: PlannerSettings, limits: Limits) -> Document:
        runs = np.flatnonzero(self.plan.configuration != LEFT_OUT).tolist()
        out = np.flatnonzero(self.plan.configuration == LEFT_OUT).tolist()
        spent = sum(self.assembled.options[int(self.plan.configuration[j])].choice.cost.expected for j in runs)
        lost = float(self.instance.penalty_usd[out].sum())
        return {
            "name": self.portfolio.name,
            "snapshot_id": snapshot_id,
            "currency": "USD",
            "start": moment(self.portfolio.start),
            "slot_hours": self.portfolio.slot_hours,
            "horizon_hours": self.portfolio.slot_hours * self.portfolio.slots,
            "settings": {"cost_basis": settings.cost_basis, "goodput": settings.goodput},
            "cost_usd": usd_text(spent),
            "budget_usd": None
            if self.portfolio.budget_usd is None
            else usd_text(round(self.portfolio.budget_usd * 1e6)),
            "certificate": {
                "objective_usd": usd_text(round(self.plan.cost_usd * 1e6)),
                "left_out_usd": usd_text(round(lost * 1e6)),
                "bound_usd": usd_text(math.floor(self.found.bound_usd * 1e6)),
                "gap": float(f"{self.found.gap:.6g}"),
                "proven": self.found.proven and not self.assembled.unseen,
                "jobs_not_looked_at": len(self.assembled.unseen),
                "columns": len(self.instance.columns),
                "configurations": len(self.assembled.options),
            },
            "search": asdict(limits) | {"iterations_done": self.found.iterations},
            "jobs": [self._job(j) for j in runs],
            "left_out": [self._left_out(j, explained=n < MOST_EXPLAINED) for n, j in enumerate(out)],
            "pools": self._pools(),
            "assumptions": self._assumptions(),
            "warnings": self._warnings(limits),
        }

    def _job(self, number: int) -> Document:
        each = self.portfolio.jobs[number]
        option = self.assembled.options[int(self.plan.configuration[number])]
        begins = self._time(int(self.plan.start[number]))
        return {
            "job": number,
            "name": each.job.name,
            "starts_at": moment(begins),
            "finishes_at": moment(begins + timedelta(hours=option.choice.hours.expected)),
            "finishes_by": moment(begins + timedelta(hours=option.choice.hours.confident)),
            "confidence": each.job.confidence,
            "slots": option.slots,
            **choice_document(option.choice),
            "pools": [{"pool": self.pools.names[pool], "units": units} for pool, units in option.uses],
        }

    def _left_out(self, number: int, *, explained: bool) -> Document:
        each = self.portfolio.jobs[number]
        ways = ways_in(self.instance, self.plan, number) if explained else ()
        return {
            "job": number,
            "name": each.job.name,
            "value_usd": None if each.value_usd is None else usd_text(round(each.value_usd * 1e6)),
            "reason": self._reason(number),
            "would_let_it_in": [self._way(way) for way in ways],
        }

    def _reason(self, number: int) -> str:
        instance, each = self.instance, self.portfolio.jobs[number]
        if number in self.assembled.unseen:
            return "the search had to end before it was looked at; give it longer"
        mine = np.flatnonzero(instance.job == number)
        if not len(mine):
            rejected = self.assembled.rejected.get(number, {})
            most = max(rejected.items(), key=lambda item: (item[1], item[0]), default=("nothing in the snapshot", 0))
            return f"no configuration can run it: {most[0]}"
        room = int(instance.due[number] - instance.release[number])
        if room < int(instance.duration[mine].min()):
            least = int(instance.duration[mine].min()) * self.portfolio.slot_hours
            return f"its dates leave {room * self.portfolio.slot_hours:g} h and the fastest configuration takes {least:g} h"
        columns = instance.columns
        if columns.first[number] == columns.first[number + 1]:
            drawn = sorted({int(pool) for pool in instance.pool[mine].reshape(-1) if pool < instance.pools})
            names = "; ".join(self.pools.names[pool] for pool in drawn[:MOST_NAMED])
            return f"even alone it finds no room in the budget and in what its configurations draw on: {names or 'no pool'}"
        cheapest = float(instance.cost_usd[mine].min())
        if each.value_usd is not None and cheapest > each.value_usd:
            return f"its value is below its cheapest configuration, {usd_text(round(cheapest * 1e6))} USD"
        if each.value_usd is not None:
            return "what is left of the pools and the budget after other jobs costs more than its value"
        return "nothing is left for it: other jobs that are worth more, or have no other place, take the pools or the budget"

    def _way(self, way: WayIn) -> Document:
        cost = {"run_usd": usd_text(round(way.cost_usd * 1e6))}
        if way.pool is not None:
            unit = self.pools.units[way.pool]
            return {"change": f"{math.ceil(way.amount - 1e-6)} more {unit}: {self.pools.names[way.pool]}", **cost}
        if way.what == "deadline":
            return {"change": f"a deadline {way.amount * self.portfolio.slot_hours:g} h later", **cost}
        return {"change": f"{usd_text(math.ceil(way.amount * 1e6))} USD more budget", **cost}

    def _pools(self) -> list[Document]:
        used = in_use(self.instance, self.plan)
        worth = self.found.prices.capacity
        rows = []
        for pool, name in enumerate(self.pools.names):
            capacity = self.instance.capacity[pool]
            total = float(capacity.sum())
            rows.append(
                {
                    "pool": name,
                    "units": self.pools.units[pool],
                    "most_available": float(capacity.max()),
                    "most_used": float(used[pool].max()),
                    "utilisation": None if total == 0 else float(f"{used[pool].sum() / total:.6g}"),
                    "worth_usd_per_unit_hour": float(f"{worth[pool].mean() / self.portfolio.slot_hours:.6g}"),
                }
            )
        return rows

    def _assumptions(self) -> list[str]:
        must = [each for each in self.portfolio.jobs if each.value_usd is None]
        said = [
            f"time is counted in slots of {self.portfolio.slot_hours:g} h from the start",
            "a run holds every slot that its hours, kept with the job's confidence, reach into, without a break",
            "each job runs on one configuration; costs are expected costs",
        ]
        if must:
            said.append(
                f"a job without a value must run if it can: leaving it out counts as {MUST_RUN:g} times its dearest"
                " configuration, and as much again for each step of priority"
            )
        if any(held is not None for held in self.pools.held):
            said.append("held commitments are open to the jobs whose price_kinds name their kind")
        if any(own is not None for own in self.pools.own):
            said.append(
                "a run on own machines stays inside one of their free windows; a job planned alone may also pause between"
                " windows, and so may do with less"
            )
        return said

    def _warnings(self, limits: Limits) -> list[str]:
        said = []
        unseen, given = len(self.assembled.unseen), limits.time_limit_s
        if unseen:
            said.append(
                f"{unseen} of {len(self.portfolio.jobs)} jobs were not looked at before the search had to end"
                f"{'' if given is None else f' ({given:g} s)'}: cost, bound and gap are those of the others alone"
            )
        if not self.found.proven and not any(self.found.iterations.values()):
            said.append(
                "there was time for a first plan only; a longer time limit finds a cheaper one, and a better bound"
            )
        return said

    def _time(self, slot: int) -> datetime:
        return self.portfolio.start + timedelta(hours=slot * self.portfolio.slot_hours)
