"""From jobs and a snapshot to the portfolio's instance: per job and pool only what no other configuration beats.

Time is counted in whole slots: a run occupies every slot that its hours, kept with the asked confidence, reach
into. Of configurations that draw on the same pools, only those stay that no other beats in cost, slots and units
(equal in all: the first); and whatever needs no pool and is no dearer and no slower beats all others.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from catalog.errors import UnusableInput
from planner.answer import Choice
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates
from planner.choice import in_words
from planner.estimate.learned import learned_from
from planner.portfolio.instance import Instance
from planner.portfolio.markets import Pools
from planner.portfolio.request import Portfolio, PortfolioJob
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

#: What must run if it can is worth this many times its dearest configuration, and again for each step of priority.
MUST_RUN = 10.0
#: Columns are held several times over (about 100 bytes each): this many stay below a gigabyte.
MOST_COLUMNS = 4_000_000
ROUNDING_HOURS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One configuration of a job: what it is, the slots that it takes, and its draws on pools, (pool, units) each."""

    choice: Choice
    slots: int
    uses: tuple[tuple[int, float], ...]

    @property
    def cost_usd(self) -> float:
        """Expected cost."""
        return self.choice.cost.expected / 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assembled:
    """The instance, the option behind each of its configurations, and why jobs without any have none."""

    instance: Instance
    options: tuple[Option, ...]
    rejected: dict[int, dict[str, int]]


def assemble(portfolio: Portfolio, pools: Pools, settings: PlannerSettings) -> Assembled:
    """The portfolio as an instance. Raises `UnusableInput` where it would be too large, or a job contradicts itself."""
    seen: dict[object, tuple[tuple[Option, ...], dict[str, int]]] = {}
    options: list[Option] = []
    job: list[int] = []
    rejected: dict[int, dict[str, int]] = {}
    columns = 0
    for number, each in enumerate(portfolio.jobs):
        key = replace(each.job, name="", start=None, deadline_hours=None, budget_usd=None, assumptions=())
        if key not in seen:
            seen[key] = _options(number, each, portfolio, pools, settings)
        every, why = seen[key]
        mine = _affordable(every, each)
        if not mine:
            rejected[number] = why if not every else {"dearer than budget_usd at every node count": len(every)}
        options += mine
        job += [number] * len(mine)
        room = _due(portfolio, each) - _release(portfolio, each)
        columns += sum(max(0, room - option.slots + 1) for option in mine)
        if columns > MOST_COLUMNS:
            message = (
                f"{portfolio.slot_hours:g} h makes more than {MOST_COLUMNS:,} starts to choose from; "
                "give a longer slot, a shorter horizon or fewer jobs"
            )
            raise UnusableInput.at("slot", message=message)
    return Assembled(instance=_instance(portfolio, pools, options, job), options=tuple(options), rejected=rejected)


def _release(portfolio: Portfolio, each: PortfolioJob) -> int:
    return math.ceil(each.release_hours / portfolio.slot_hours - ROUNDING_HOURS)


def _due(portfolio: Portfolio, each: PortfolioJob) -> int:
    if each.job.deadline_hours is None:
        return portfolio.slots
    end = (each.release_hours + each.job.deadline_hours) / portfolio.slot_hours
    return min(portfolio.slots, math.floor(end + ROUNDING_HOURS))


def _affordable(options: tuple[Option, ...], each: PortfolioJob) -> list[Option]:
    budget = math.inf if each.job.budget_usd is None else each.job.budget_usd
    return [option for option in options if option.cost_usd <= budget]


def _options(
    number: int, each: PortfolioJob, portfolio: Portfolio, pools: Pools, settings: PlannerSettings
) -> tuple[tuple[Option, ...], dict[str, int]]:
    """The options of one job that could be in a best plan, and why offers were rejected."""
    try:
        work = work_of(each.job.workload, each.job.training)
        question = Question(
            job=each.job,
            work=work,
            markets=pools.markets,
            start=portfolio.start,
            settings=settings,
            learned=learned_from(portfolio.past_runs, work.task),
        )
        found = candidates(question)
    except UnusableInput as error:
        raise error.under("jobs", number) from None
    table = found.table
    slots = np.ceil(table.bill.hours_kept / portfolio.slot_hours - ROUNDING_HOURS)
    fits = slots <= portfolio.slots
    table, slots = table.take(fits), np.maximum(1, slots[fits]).astype(np.int64)
    draws = [_draws(pools, table, i) for i in range(len(table))]
    cost = np.rint(table.bill.cost_usd * 1e6)
    kept = _undominated(cost.tolist(), slots.tolist(), draws)
    options = tuple(Option(choice=in_words(found, table, i), slots=int(slots[i]), uses=draws[i] or ()) for i in kept)
    return options, _why(found, bool(len(found.table)))


def _why(found: Candidates, any_runs: bool) -> dict[str, int]:
    return {"longer than the whole horizon": len(found.table)} if any_runs else dict(found.rejected)


def _draws(pools: Pools, table: Configurations, i: int) -> tuple[tuple[int, float], ...] | None:
    """(pool, units) of everything that configuration i of the table uses; None if it cannot be counted."""
    market, place, nodes = int(table.market[i]), int(table.place[i]), float(table.nodes[i])
    type_index = int(pools.markets[market].snapshot.type_index[place])
    own, held = pools.own[market], pools.held[market]
    if own is not None:
        return ((own[type_index], nodes),)
    if held is not None:
        return ((held[place], nodes),)
    uses = tuple((pool, nodes * float(each[type_index])) for pool, each in pools.of_type[market])
    return None if any(math.isnan(units) for _, units in uses) else uses


def _undominated(cost: list[float], slots: list[int], draws: list[tuple[tuple[int, float], ...] | None]) -> list[int]:
    """Those that nothing on the same pools, and nothing without a pool, beats in cost, slots and units."""
    order = sorted((i for i in range(len(cost)) if draws[i] is not None), key=lambda i: (cost[i], slots[i], i))
    by_pools: dict[tuple[int, ...], list[tuple[int, tuple[float, ...]]]] = {}
    free_slots = math.inf
    kept: list[int] = []
    for i in order:
        uses = draws[i] or ()
        key, units = tuple(pool for pool, _ in uses), tuple(each for _, each in uses)
        if slots[i] >= free_slots:
            continue
        rivals = by_pools.setdefault(key, [])
        if any(s <= slots[i] and all(a <= b for a, b in zip(u, units, strict=True)) for s, u in rivals):
            continue
        rivals.append((slots[i], units))
        kept.append(i)
        if not uses:
            free_slots = min(free_slots, slots[i])
    return kept


def _instance(portfolio: Portfolio, pools: Pools, options: list[Option], job: list[int]) -> Instance:
    count, width = len(pools.names), max([1, *(len(option.uses) for option in options)])
    pool, units = np.full((len(options), width), count), np.zeros((len(options), width))
    for i, option in enumerate(options):
        for use, (which, many) in enumerate(option.uses):
            pool[i, use], units[i, use] = which, many
    cost = np.array([option.cost_usd for option in options])
    dearest = np.zeros(len(portfolio.jobs))
    np.maximum.at(dearest, np.array(job, np.int64), cost)
    penalty = [
        # What nothing can run is left out of every plan alike, and so counts for nothing.
        0.0 if dearest[j] == 0 and j not in set(job) else _penalty(each, float(dearest[j]))
        for j, each in enumerate(portfolio.jobs)
    ]
    return Instance(
        capacity=np.vstack((pools.capacity, np.full((1, portfolio.slots), np.inf))),
        release=np.array([_release(portfolio, each) for each in portfolio.jobs], np.int64),
        due=np.array([_due(portfolio, each) for each in portfolio.jobs], np.int64),
        penalty_usd=np.array(penalty),
        job=np.array(job, np.int64),
        cost_usd=cost,
        duration=np.array([option.slots for option in options], np.int64),
        pool=pool,
        units=units,
        budget_usd=math.inf if portfolio.budget_usd is None else portfolio.budget_usd,
    )


def _penalty(each: PortfolioJob, dearest_usd: float) -> float:
    if each.value_usd is not None:
        return each.value_usd
    return MUST_RUN * (1 + each.priority) * max(dearest_usd, 1e-2)
