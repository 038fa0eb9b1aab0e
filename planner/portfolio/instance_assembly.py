"""Assembly of a portfolio instance from jobs and a snapshot: undominated configurations per job and pool.

Time is counted in whole slots: a run occupies every slot that its hours at the requested confidence reach into. Among
the configurations that use the same pools, only those remain that no other dominates in cost, slots and units (of equal
ones the first). A configuration that needs no pool dominates every other that is neither cheaper nor faster.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.candidates.candidate_set import Candidates, candidates
from gpuplan.planner.candidates.configuration_choice import in_words
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.portfolio.portfolio_instance import Instance
from gpuplan.planner.portfolio.portfolio_request import Portfolio, PortfolioJob
from gpuplan.planner.portfolio.shared_pools import Pools
from gpuplan.planner.workload import work_of

#: Leaving out a job without a value costs this many times its dearest configuration, and as much again per step of
#: priority.
MUST_RUN = 10.0
#: Most columns: several copies of about 100 bytes each stay below a gigabyte.
MOST_COLUMNS = 4_000_000
ROUNDING_HOURS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One configuration of a job, its duration in slots, and its use of pools as (pool, units)."""

    choice: Choice
    slots: int
    uses: tuple[tuple[int, float], ...]

    @property
    def cost_usd(self) -> float:
        """Expected cost."""
        return self.choice.cost.expected / 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assembled:
    """The instance, the option of each of its configurations, and the rejections of jobs without any.

    `unseen` are jobs whose configurations were not evaluated within the time limit.
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

    Once `stop` returns true, jobs that differ from all earlier ones stay unseen: they have no configurations and are
    left out. `seen` is called with the number of evaluated jobs.
    """
    unseen: set[int] = set()
    known: dict[object, tuple[tuple[Option, ...], dict[str, int]]] = {}
    options: list[Option] = []
    job: list[int] = []
    rejected: dict[int, dict[str, int]] = {}
    columns = 0
    for number, portfolio_job in enumerate(portfolio.jobs):
        key = replace(portfolio_job.job, name="", start=None, deadline_hours=None, budget_usd=None, assumptions=())
        if key not in known and known and stop():
            unseen.add(number)
            continue
        if key not in known:
            known[key] = _options(number, portfolio_job, portfolio, pools, settings)
            seen(number + 1 - len(unseen))
        every, why = known[key]
        mine = _affordable(every, portfolio_job)
        if not mine:
            rejected[number] = why if not every else {"dearer than budget_usd at every node count": len(every)}
        options += mine
        job += [number] * len(mine)
        room = _due(portfolio, portfolio_job) - _release(portfolio, portfolio_job)
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


def _release(portfolio: Portfolio, portfolio_job: PortfolioJob) -> int:
    return math.ceil(portfolio_job.release_hours / portfolio.slot_hours - ROUNDING_HOURS)


def _due(portfolio: Portfolio, portfolio_job: PortfolioJob) -> int:
    if portfolio_job.job.deadline_hours is None:
        return portfolio.slots
    end = (portfolio_job.release_hours + portfolio_job.job.deadline_hours) / portfolio.slot_hours
    return min(portfolio.slots, math.floor(end + ROUNDING_HOURS))


def _affordable(options: tuple[Option, ...], portfolio_job: PortfolioJob) -> list[Option]:
    budget = math.inf if portfolio_job.job.budget_usd is None else portfolio_job.job.budget_usd
    return [option for option in options if option.cost_usd <= budget]


def _options(
    number: int, portfolio_job: PortfolioJob, portfolio: Portfolio, pools: Pools, settings: PlannerSettings
) -> tuple[tuple[Option, ...], dict[str, int]]:
    """The options of one job that an optimal plan may contain, and the rejected offers by reason."""
    try:
        work = work_of(portfolio_job.job.workload, portfolio_job.job.training)
        question = Question(
            job=portfolio_job.job,
            work=work,
            markets=pools.markets,
            start=portfolio.start,
            settings=settings,
            learned=learned_from(portfolio.past_runs, work.task),
        )
        candidate_set = candidates(question)
    except UnusableInput as error:
        raise error.under("jobs", number) from None
    table = candidate_set.table
    slots = np.ceil(table.cost_breakdown.hours_at_confidence / portfolio.slot_hours - ROUNDING_HOURS)
    fits = slots <= portfolio.slots
    table, slots = table.take(fits), np.maximum(1, slots[fits]).astype(np.int64)
    draws = _draws(pools, table)
    cost = np.rint(table.cost_breakdown.cost_usd * 1e6)
    likely = _cheaper_or_sooner(cost, slots, draws)
    table, slots, draws, cost = table.take(likely), slots[likely], draws.take(likely), cost[likely]
    undominated_rows = _undominated(cost.tolist(), slots.tolist(), [draws.of(i) for i in range(len(table))])
    options = tuple(
        Option(choice=in_words(candidate_set, table, i), slots=int(slots[i]), uses=draws.of(i))
        for i in undominated_rows
    )
    return options, _why(candidate_set, bool(len(candidate_set.table)))


def _why(candidates: Candidates, any_runs: bool) -> dict[str, int]:
    return {"longer than the whole horizon": len(candidates.table)} if any_runs else dict(candidates.rejected)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Draws:
    """`pool` and `units` (N, W) that configurations use, padded with pool -1; units are nan if unknown."""

    pool: NDArray[np.int64]
    units: NDArray[np.float64]

    def take(self, which: NDArray[np.int64]) -> "_Draws":
        """The draws of some of the configurations."""
        return _Draws(pool=self.pool[which], units=self.units[which])

    def of(self, i: int) -> tuple[tuple[int, float], ...]:
        """The (pool, units) that configuration i uses."""
        pairs = zip(self.pool[i].tolist(), self.units[i].tolist(), strict=True)
        return tuple((pool, units) for pool, units in pairs if pool >= 0)


def _draws(pools: Pools, table: Configurations) -> _Draws:
    """The pools and units that each configuration of the table uses."""
    width = max([1, *(len(pools_of_market) for pools_of_market in pools.of_type)])
    pool, units = np.full((len(table), width), -1), np.zeros((len(table), width))
    for market, snapshot in enumerate(market.snapshot for market in pools.markets):
        mine = np.flatnonzero(table.market == market)
        place, nodes = table.place[mine], table.nodes[mine].astype(np.float64)
        owned, committed = pools.owned[market], pools.committed[market]
        of_type = snapshot.type_index[place]
        if owned is not None or committed is not None:
            pool[mine, 0] = np.array(owned)[of_type] if owned is not None else np.array(committed)[place]
            units[mine, 0] = nodes
            continue
        for use, (which, units_per_node) in enumerate(pools.of_type[market]):
            pool[mine, use], units[mine, use] = which, nodes * units_per_node[of_type]
    return _Draws(pool=pool, units=units)


def _cheaper_or_sooner(cost: NDArray[np.float64], slots: NDArray[np.int64], draws: _Draws) -> NDArray[np.int64]:
    """Undominated configurations by cost and slots per equal use of pools; unknown units are excluded."""
    limited_rows = np.flatnonzero(~np.isnan(draws.units).any(axis=1))
    kind = np.zeros(len(limited_rows), np.int64)
    for drawn in (*draws.pool[limited_rows].T, *draws.units[limited_rows].T):
        # Number the columns one by one: np.unique over rows sorts them as bytes and takes a hundred times as long.
        number = np.unique(drawn, return_inverse=True)[1].reshape(-1)
        kind = np.unique(kind * (int(number.max(initial=0)) + 1) + number, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((limited_rows, slots[limited_rows], cost[limited_rows], kind))
    kind, soon = kind[order], slots[limited_rows][order]
    # The fastest so far of each kind: an offset above any number of slots per kind allows a single running minimum.
    far = int(soon.max(initial=0)) + 1
    least = np.minimum.accumulate(soon - kind * far)
    undominated = np.append(True, soon[1:] - kind[1:] * far < least[:-1])[: len(order)]
    return np.sort(limited_rows[order[undominated]])


def _undominated(cost: list[float], slots: list[int], draws: list[tuple[tuple[int, float], ...]]) -> list[int]:
    """Indices that no option on the same pools, and none without a pool, dominates in cost, slots and units."""
    order = sorted(range(len(cost)), key=lambda i: (cost[i], slots[i], i))
    by_pools: dict[tuple[int, ...], list[tuple[int, tuple[float, ...]]]] = {}
    free_slots = math.inf
    undominated_rows: list[int] = []
    for i in order:
        uses = draws[i]
        key, units = tuple(pool for pool, _ in uses), tuple(pool_units for _, pool_units in uses)
        if slots[i] >= free_slots:
            continue
        rivals = by_pools.setdefault(key, [])
        if any(s <= slots[i] and all(a <= b for a, b in zip(u, units, strict=True)) for s, u in rivals):
            continue
        rivals.append((slots[i], units))
        undominated_rows.append(i)
        if not uses:
            free_slots = min(free_slots, slots[i])
    return undominated_rows


def _instance(portfolio: Portfolio, pools: Pools, options: list[Option], job: list[int]) -> Instance:
    count, width = len(pools.names), max([1, *(len(option.uses) for option in options)])
    pool, units = np.full((len(options), width), count), np.zeros((len(options), width))
    for i, option in enumerate(options):
        for use, (which, pool_units) in enumerate(option.uses):
            pool[i, use], units[i, use] = which, pool_units
    cost = np.array([option.cost_usd for option in options])
    dearest = np.zeros(len(portfolio.jobs))
    np.maximum.at(dearest, np.array(job, np.int64), cost)
    runnable = set(job)
    penalty = [
        # A job that nothing can run is left out of every plan, so its penalty is 0.
        0.0 if j not in runnable else _penalty(job, float(dearest[j]))
        for j, job in enumerate(portfolio.jobs)
    ]
    return Instance(
        capacity=np.vstack((pools.capacity, np.full((1, portfolio.slots), np.inf))),
        release=np.array([_release(portfolio, job) for job in portfolio.jobs], np.int64),
        due=np.array([_due(portfolio, job) for job in portfolio.jobs], np.int64),
        penalty_usd=np.array(penalty),
        job=np.array(job, np.int64),
        cost_usd=cost,
        duration=np.array([option.slots for option in options], np.int64),
        pool=pool,
        units=units,
        budget_usd=math.inf if portfolio.budget_usd is None else portfolio.budget_usd,
    )


def _penalty(portfolio_job: PortfolioJob, dearest_usd: float) -> float:
    if portfolio_job.value_usd is not None:
        return portfolio_job.value_usd
    return MUST_RUN * (1 + portfolio_job.priority) * max(dearest_usd, 1e-2)
