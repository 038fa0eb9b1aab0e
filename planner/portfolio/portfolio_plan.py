"""The answer of a portfolio: configuration and start of each job, rejected jobs with reasons, use of the pools.

Why a job is not in the plan, and the smallest single change that would admit it if the other jobs stay.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np

from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.portfolio import (
    Admission,
    PoolShare,
    PoolUse,
    PortfolioCertificate,
    PortfolioPlan,
    PortfolioSettings,
    RejectedJob,
    ScheduledJob,
    SearchEffort,
)
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.portfolio.instance_assembly import MUST_RUN, Assembled, assemble
from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, Floats, Instance, Plan
from gpuplan.planner.portfolio.portfolio_request import Portfolio
from gpuplan.planner.portfolio.portfolio_search import search
from gpuplan.planner.portfolio.search_progress import Progress, SearchOutcome, Stage
from gpuplan.planner.portfolio.shared_pools import Pools, pools_of
from gpuplan.planner.serialization.phase_document import cost_and_hours, machines, usd
from gpuplan.planner.serialization.rounded_figures import to_second


@dataclass(frozen=True, slots=True, kw_only=True)
class WayIn:
    """One change: of `what` (pool, deadline, budget) by `amount` (units, slots, USD), for a run that costs `cost_usd`."""

    what: str
    pool: int | None
    amount: float
    cost_usd: float


def in_use(instance: Instance, plan: Plan) -> Floats:
    """Units of each pool in use in each slot, (R, T)."""
    used = np.zeros((instance.pools + 1, instance.slots))
    for job in np.flatnonzero(plan.configuration != LEFT_OUT).tolist():
        kind, start = int(plan.configuration[job]), int(plan.start[job])
        for pool, units in zip(instance.pool[kind], instance.units[kind], strict=True):
            used[pool, start : start + instance.duration[kind]] += units
    return used[:-1]


def ways_in(instance: Instance, plan: Plan, job: int) -> tuple[WayIn, ...]:
    """The least single changes that admit a rejected job, the cheapest run first; may be empty."""
    left = instance.capacity.copy()
    left[:-1] -= in_use(instance, plan)
    runs = plan.configuration != LEFT_OUT
    budget_left = instance.budget_usd - float(instance.cost_usd[plan.configuration[runs]].sum())
    best: dict[tuple[str, int | None], WayIn] = {}
    for kind in np.flatnonzero(instance.job == job).tolist():
        cost = float(instance.cost_usd[kind])
        for start in range(int(instance.release[job]), instance.slots - int(instance.duration[kind]) + 1):
            way = _way(instance, left, budget_left, kind, start)
            if way is None:
                continue
            key = way.what, way.pool
            known = best.get(key)
            if known is None or (way.amount, cost) < (known.amount, known.cost_usd):
                best[key] = way
    return tuple(sorted(best.values(), key=lambda way: (way.cost_usd, way.what, way.pool or 0)))


def _way(instance: Instance, left: Floats, budget_left: float, kind: int, start: int) -> WayIn | None:
    """The single change that lets configuration `kind` start at `start`, or None."""
    job, end, cost = int(instance.job[kind]), start + int(instance.duration[kind]), float(instance.cost_usd[kind])
    short: list[tuple[str, int | None, float]] = []
    for pool, units in zip(instance.pool[kind].tolist(), instance.units[kind].tolist(), strict=True):
        missing = units - float(left[pool, start:end].min())
        if missing > 1e-6:
            short.append(("pool", pool, missing))
    if end > instance.due[job]:
        short.append(("deadline", None, float(end - instance.due[job])))
    if cost > budget_left + 1e-6 and math.isfinite(budget_left):
        short.append(("budget", None, cost - budget_left))
    if len(short) != 1:
        return None
    what, pool, amount = short[0]
    return WayIn(what=what, pool=pool, amount=amount, cost_usd=cost)


#: Most rejected jobs for which changes are computed; with more of them the portfolio is too large.
MOST_EXPLAINED = 100
#: Most pools in one sentence.
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
) -> PortfolioPlan:
    """The best plan found for all jobs together, with its proven gap.

    Calls `report` after each step, from the configurations of the first job on, and `cancelled` at least every second.
    When that returns true, the answer is the best plan so far.

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

    solution = search(
        assembled.instance,
        seed=limits.seed,
        time_limit_s=None if limit is None else max(0.0, limit - before_s),
        iterations=limits.iterations,
        report=tell,
        cancelled=cancelled,
        clock=clock,
    )
    return _Answer(portfolio, pools, assembled, solution).plan(columns.snapshot_id, settings, limits)


class _Answer:
    def __init__(self, portfolio: Portfolio, pools: Pools, assembled: Assembled, outcome: SearchOutcome) -> None:
        self.portfolio, self.pools, self.assembled, self.outcome = portfolio, pools, assembled, outcome
        self.instance: Instance = assembled.instance
        self.best = outcome.plan

    def plan(self, snapshot_id: str, settings: PlannerSettings, limits: Limits) -> PortfolioPlan:
        runs = np.flatnonzero(self.best.configuration != LEFT_OUT).tolist()
        out = np.flatnonzero(self.best.configuration == LEFT_OUT).tolist()
        lost = float(self.instance.penalty_usd[out].sum())
        budget = self.portfolio.budget_usd
        return PortfolioPlan(
            name=self.portfolio.name,
            snapshot_id=snapshot_id,
            currency="USD",
            start=to_second(self.portfolio.start),
            slot_hours=self.portfolio.slot_hours,
            horizon_hours=self.portfolio.slot_hours * self.portfolio.slots,
            settings=PortfolioSettings(cost_basis=settings.cost_basis, goodput=settings.goodput),
            cost_usd=usd(
                sum(self.assembled.options[int(self.best.configuration[j])].choice.cost.expected for j in runs)
            ),
            budget_usd=None if budget is None else _usd(budget),
            certificate=PortfolioCertificate(
                objective_usd=_usd(self.best.cost_usd),
                left_out_usd=_usd(lost),
                bound_usd=usd(math.floor(self.outcome.bound_usd * 1e6)),
                gap=float(f"{self.outcome.gap:.6g}"),
                proven=self.outcome.proven and not self.assembled.unseen,
                jobs_not_looked_at=len(self.assembled.unseen),
                columns=len(self.instance.columns),
                configurations=len(self.assembled.options),
            ),
            search=SearchEffort(**asdict(limits), iterations_done=self.outcome.iterations),
            jobs=tuple(self._job(j) for j in runs),
            left_out=tuple(self._left_out(j, explained=n < MOST_EXPLAINED) for n, j in enumerate(out)),
            pools=self._pools(),
            assumptions=tuple(self._assumptions()),
            warnings=tuple(self._warnings(limits)),
        )

    def _job(self, number: int) -> ScheduledJob:
        job = self.portfolio.jobs[number]
        option = self.assembled.options[int(self.best.configuration[number])]
        begins = self._time(int(self.best.start[number]))
        return ScheduledJob(
            job=number,
            name=job.job.name,
            starts_at=to_second(begins),
            finishes_at=to_second(begins + timedelta(hours=option.choice.hours.expected)),
            finishes_by=to_second(begins + timedelta(hours=option.choice.hours.confident)),
            confidence=job.job.confidence,
            slots=option.slots,
            **machines(option.choice),
            **cost_and_hours(option.choice),
            pools=tuple(PoolShare(pool=self.pools.names[pool], units=units) for pool, units in option.uses),
        )

    def _left_out(self, number: int, *, explained: bool) -> RejectedJob:
        job = self.portfolio.jobs[number]
        ways = ways_in(self.instance, self.best, number) if explained else ()
        return RejectedJob(
            job=number,
            name=job.job.name,
            value_usd=None if job.value_usd is None else _usd(job.value_usd),
            reason=self._reason(number),
            would_let_it_in=tuple(self._admission(way) for way in ways),
        )

    def _reason(self, number: int) -> str:
        instance, job = self.instance, self.portfolio.jobs[number]
        if number in self.assembled.unseen:
            return "the time limit ended the search before it was evaluated; give more time"
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
        if job.value_usd is not None and cheapest > job.value_usd:
            return f"its value is below its cheapest configuration, {usd_text(round(cheapest * 1e6))} USD"
        if job.value_usd is not None:
            return "the capacity and budget that other jobs leave cost more than its value"
        return "other jobs that are worth more, or have no alternative, use up the pools or the budget"

    def _admission(self, way: WayIn) -> Admission:
        if way.pool is not None:
            change = f"{math.ceil(way.amount - 1e-6)} more {self.pools.units[way.pool]}: {self.pools.names[way.pool]}"
        elif way.what == "deadline":
            change = f"a deadline {way.amount * self.portfolio.slot_hours:g} h later"
        else:
            change = f"{usd_text(math.ceil(way.amount * 1e6))} USD more budget"
        return Admission(change=change, run_usd=_usd(way.cost_usd))

    def _pools(self) -> tuple[PoolUse, ...]:
        used = in_use(self.instance, self.best)
        worth = self.outcome.prices.capacity
        uses = []
        for pool, name in enumerate(self.pools.names):
            capacity = self.instance.capacity[pool]
            total = float(capacity.sum())
            uses.append(
                PoolUse(
                    pool=name,
                    units=self.pools.units[pool],
                    most_available=float(capacity.max()),
                    most_used=float(used[pool].max()),
                    utilisation=None if total == 0 else float(f"{used[pool].sum() / total:.6g}"),
                    worth_usd_per_unit_hour=float(f"{worth[pool].mean() / self.portfolio.slot_hours:.6g}"),
                )
            )
        return tuple(uses)

    def _assumptions(self) -> list[str]:
        must = [job for job in self.portfolio.jobs if job.value_usd is None]
        sentences = [
            f"time is counted in slots of {self.portfolio.slot_hours:g} h from the start",
            "a run occupies every slot that its hours at the job's confidence reach into, without a break",
            "each job runs on one configuration; costs are expected costs",
        ]
        if must:
            sentences.append(
                f"a job without a value must run if it can: leaving it out counts as {MUST_RUN:g} times its dearest"
                " configuration, and as much again for each step of priority"
            )
        if any(committed is not None for committed in self.pools.committed):
            sentences.append("held commitments are open to the jobs whose price_kinds name their kind")
        if any(owned is not None for owned in self.pools.owned):
            sentences.append(
                "a run on own machines stays inside one of their free windows; a job planned alone may also pause between"
                " windows, so it may cost less"
            )
        return sentences

    def _warnings(self, limits: Limits) -> list[str]:
        sentences = []
        unseen, given = len(self.assembled.unseen), limits.time_limit_s
        if unseen:
            sentences.append(
                f"{unseen} of {len(self.portfolio.jobs)} jobs were not evaluated before the time limit"
                f"{'' if given is None else f' ({given:g} s)'}: cost, bound and gap are those of the others alone"
            )
        if not self.outcome.proven and not any(self.outcome.iterations.values()):
            sentences.append(
                "there was time for a first plan only; a longer time limit gives a cheaper plan and a better bound"
            )
        return sentences

    def _time(self, slot: int) -> datetime:
        return self.portfolio.start + timedelta(hours=slot * self.portfolio.slot_hours)


def _usd(value: float) -> Decimal:
    return usd(round(value * 1e6))
