"""From jobs and a snapshot to the portfolio's instance: per job and pool only what no other configuration beats.

Time is counted in whole slots: a run occupies every slot that its hours, kept with the asked confidence, reach
into. Of configurations that draw on the same pools, only those stay that no other beats in cost, slots and units
(equal in all: the first); and whatever needs no pool and is no dearer and no slower beats all others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
    """The instance, the option behind each of its configurations, and why jobs without any have none.

    `unseen` are jobs whose configurations were not worked out before the time was up.
    """

    instance: Instance
    options: tuple[Option, ...]
    rejected: dict[int, dict[str, int]]
    unseen: frozenset[int] = frozenset()


def assemble(
    portfolio: Portfolio,
    pools: Pools,
    settings: PlannerSettings,
    *,
    stop: Callable[[], bool] = lambda: False,
    seen: Callable[[int], None] = lambda jobs: None,
) -> Assembled:
    """The portfolio as an instance. Raises `UnusableInput` where it would be too large, or a job contradicts itself.

    Once `stop` says yes, jobs unlike any before stay unseen: they have no configurations, and are left out. `seen` is
    told how many have been looked at.
    """
    unseen: set[int] = set()
    known: dict[object, tuple[tuple[Option, ...], dict[str, int]]] = {}
    options: list[Option] = []
    job: list[int] = []
    rejected: dict[int, dict[str, int]] = {}
    columns = 0
    for number, each in enumerate(portfolio.jobs):
        key = replace(each.job, name="", start=None, deadline_hours=None, budget_usd=None, assumptions=())
        if key not in known and known and stop():
            unseen.add(number)
            continue
        if key not in known:
            known[key] = _options(number, each, portfolio, pools, settings)
            seen(number + 1 - len(unseen))
        every, why = known[key]
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
    seen(len(portfolio.jobs) - len(unseen))
    return Assembled(
        instance=_instance(portfolio, pools, options, job),
        options=tuple(options),
        rejected=rejected,
        unseen=frozenset(unseen),
    )


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
    draws = _draws(pools, table)
    cost = np.rint(table.bill.cost_usd * 1e6)
    likely = _cheaper_or_sooner(cost, slots, draws)
    table, slots, draws, cost = table.take(likely), slots[likely], draws.take(likely), cost[likely]
    kept = _undominated(cost.tolist(), slots.tolist(), [draws.of(i) for i in range(len(table))])
    options = tuple(Option(choice=in_words(found, table, i), slots=int(slots[i]), uses=draws.of(i)) for i in kept)
    return options, _why(found, bool(len(found.table)))


def _why(found: Candidates, any_runs: bool) -> dict[str, int]:
    return {"longer than the whole horizon": len(found.table)} if any_runs else dict(found.rejected)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Draws:
    """`pool` and `units` (N, W) that configurations draw on, padded with pool -1; nan units cannot be counted."""

    pool: NDArray[np.int64]
    units: NDArray[np.float64]

    def take(self, which: NDArray[np.int64]) -> "_Draws":
        """The draws of some of the configurations."""
        return _Draws(pool=self.pool[which], units=self.units[which])

    def of(self, i: int) -> tuple[tuple[int, float], ...]:
        """(pool, units) of everything that configuration i draws on."""
        pairs = zip(self.pool[i].tolist(), self.units[i].tolist(), strict=True)
        return tuple((pool, units) for pool, units in pairs if pool >= 0)


def _draws(pools: Pools, table: Configurations) -> _Draws:
    """What every configuration of the table draws on."""
    width = max([1, *(len(each) for each in pools.of_type)])
    pool, units = np.full((len(table), width), -1), np.zeros((len(table), width))
    for market, snapshot in enumerate(each.snapshot for each in pools.markets):
        mine = np.flatnonzero(table.market == market)
        place, nodes = table.place[mine], table.nodes[mine].astype(np.float64)
        own, held = pools.own[market], pools.held[market]
        of_type = snapshot.type_index[place]
        if own is not None or held is not None:
            pool[mine, 0] = np.array(own)[of_type] if own is not None else np.array(held)[place]
            units[mine, 0] = nodes
            continue
        for use, (which, each) in enumerate(pools.of_type[market]):
            pool[mine, use], units[mine, use] = which, nodes * each[of_type]
    return _Draws(pool=pool, units=units)


def _cheaper_or_sooner(cost: NDArray[np.float64], slots: NDArray[np.int64], draws: _Draws) -> NDArray[np.int64]:
    """Of configurations that draw alike, those that none is both cheaper than and as fast; none that cannot be counted."""
    counted = np.flatnonzero(~np.isnan(draws.units).any(axis=1))
    kind = np.zeros(len(counted), np.int64)
    for drawn in (*draws.pool[counted].T, *draws.units[counted].T):
        # Numbered one by one: unique rows are sorted as bytes, at a hundred times the price.
        number = np.unique(drawn, return_inverse=True)[1].reshape(-1)
        kind = np.unique(kind * (int(number.max(initial=0)) + 1) + number, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((counted, slots[counted], cost[counted], kind))
    kind, soon = kind[order], slots[counted][order]
    # The fastest so far of a kind: kinds apart by more than any number of slots, so that one running minimum does.
    far = int(soon.max(initial=0)) + 1
    least = np.minimum.accumulate(soon - kind * far)
    kept = np.append(True, soon[1:] - kind[1:] * far < least[:-1])[: len(order)]
    return np.sort(counted[order[kept]])


def _undominated(cost: list[float], slots: list[int], draws: list[tuple[tuple[int, float], ...]]) -> list[int]:
    """Those that nothing on the same pools, and nothing without a pool, beats in cost, slots and units."""
    order = sorted(range(len(cost)), key=lambda i: (cost[i], slots[i], i))
    by_pools: dict[tuple[int, ...], list[tuple[int, tuple[float, ...]]]] = {}
    free_slots = math.inf
    kept: list[int] = []
    for i in order:
        uses = draws[i]
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
    runnable = set(job)
    penalty = [
        # What nothing can run is left out of every plan alike, and so counts for nothing.
        0.0 if j not in runnable else _penalty(each, float(dearest[j]))
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
