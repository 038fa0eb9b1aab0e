"""Every (offer, node count) to evaluate with its hours and cost breakdown, one array element per configuration."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.availability_windows import elapsed_hours_of_all
from gpuplan.planner.candidates.configuration_carbon import carbon_bits, kg_per_node_hour
from gpuplan.planner.candidates.estimated_machines import Estimated
from gpuplan.planner.candidates.job_requirements import BIT, QUOTA
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.offer_screening import RegionCosts, Screened
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.candidates.priced_configurations import Pairs, Terms, cached_offers_of, for_work, run_on, runnable
from gpuplan.planner.candidates.quota_limits import quota_nodes
from gpuplan.planner.cost.billing_rounding import equally_likely, mean_wait
from gpuplan.planner.cost.cost_breakdown import LONGEST_RUN_HOURS, CostBreakdown, cost_breakdown
from gpuplan.planner.cost.run_inputs import RUN_ARRAYS, Run, TakeOver
from gpuplan.planner.model.job import TrainingJob

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configurations:
    """Configurations of one or more markets.

    `market` indexes the markets, `place` the arranged offers of that market, `row` its estimates. `broken` holds the bits
    of requirements that a configuration does not meet, except deadline and budget. `carbon_kg` is nan where power or grid
    is unknown. `which` is the element of `priced_configurations` with the inputs of a configuration; tables derived from
    one another share these, since few derived tables need them.
    """

    market: Ints
    place: Ints
    row: Ints
    nodes: Ints
    broken: NDArray[np.uint32]
    cluster_rate: Floats
    checkpoint_hours: Floats
    carbon_kg: Floats
    cost_breakdown: CostBreakdown
    priced_configurations: Run
    which: Ints

    def __len__(self) -> int:
        """The number of configurations."""
        return len(self.nodes)

    def whole(self) -> "Configurations":
        """The configurations that can do all of the work."""
        return self.take(np.isfinite(self.cost_breakdown.hours_at_confidence))

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Configurations":
        """The configurations at these elements."""
        if which.dtype == np.bool_:
            if which.all():
                return self
            which = np.flatnonzero(which)
        breakdown = CostBreakdown(**{name: getattr(self.cost_breakdown, name).take(which) for name in _COST_ARRAYS})
        arrays = {name: getattr(self, name).take(which) for name in _CONFIGURATION_ARRAYS}
        return Configurations(cost_breakdown=breakdown, priced_configurations=self.priced_configurations, **arrays)

    def one_off_usd(self, index: int) -> float:
        """USD that configuration `index` costs once: egress, and machines that write the checkpoint it starts from."""
        usd, takeover = float(self.cost_breakdown.egress_usd[index]), self.priced_configurations.takeover
        return usd if takeover is None else usd + float(takeover.lead_usd[self.which[index]])

    def run(self) -> Run:
        """The inputs of cost and time, one element per configuration."""
        whole = len(self.which) == len(self.priced_configurations) and bool(
            (self.which == np.arange(len(self.which))).all()
        )
        return self.priced_configurations if whole else self.priced_configurations.take(self.which)


def joined(parts: list[Configurations]) -> Configurations:
    """The concatenated configurations of several markets."""
    if len(parts) == 1:
        return parts[0]
    cost_breakdowns = {
        name: np.concatenate([getattr(part.cost_breakdown, name) for part in parts]) for name in _COST_ARRAYS
    }
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _CONFIGURATION_ARRAYS}
    before = np.cumsum([0, *(len(part.priced_configurations) for part in parts)])
    arrays["which"] = np.concatenate([part.which + first for part, first in zip(parts, before, strict=False)])
    return Configurations(
        cost_breakdown=CostBreakdown(**cost_breakdowns),
        priced_configurations=_one_run([part.priced_configurations for part in parts]),
        **arrays,
    )


def _one_run(runs: list[Run]) -> Run:
    """The concatenated inputs of several tables; either all of them have a takeover or none has."""
    arrays: dict[str, Any] = {name: np.concatenate([getattr(run, name) for run in runs]) for name in RUN_ARRAYS}
    takeovers = [run.takeover for run in runs if run.takeover is not None]
    if not takeovers:
        return Run(**arrays)
    over = {
        field.name: np.concatenate([getattr(ahead, field.name) for ahead in takeovers]) for field in fields(TakeOver)
    }
    return Run(**arrays, takeover=TakeOver(**over))


_COST_ARRAYS = tuple(field.name for field in fields(CostBreakdown))
_CONFIGURATION_ARRAYS = tuple(
    field.name for field in fields(Configurations) if field.name not in {"cost_breakdown", "priced_configurations"}
)


def configurations(
    question: Question, number: int, screened: Screened, ready: Estimated, costs: RegionCosts
) -> Configurations:
    """Every screened offer of market `number` at every node count at which its machines can run the job."""
    return of_a_share(question, number, screened, ready, costs).whole()


def of_a_share(
    question: Question,
    number: int,
    screened: Screened,
    ready: Estimated,
    costs: RegionCosts,
    *,
    keep: bool = False,
) -> Configurations:
    """Every screened offer of market `number` at every node count at which its machines can do part of the job.

    `hours_at_confidence` are infinite where the price kind or the availability windows do not allow all of the work.
    With `keep`, the priced offers are cached for jobs that differ only in length, deadline or budget.
    """
    market = question.markets[number]
    if keep and ready.able is not None and question.origin is None:
        pairs, run, kg_rate = cached_offers_of(market)(
            screened, ready.rows, ready.able, costs, terms=Terms.of(question)
        )
        run = for_work(run, pairs, ready)
    else:
        hosts_gib = Terms.of(question).hosts_gib
        pairs = runnable(market, screened, ready.rows, ready.estimates.reason, hosts_gib)
        run, kg_rate = run_on(question, market, pairs, ready, costs), kg_per_node_hour(market, pairs.place)
    paid = cost_breakdown(run, question.job.confidence, question.settings)
    kg = pairs.nodes * paid.run_hours * kg_rate
    size = _size_bits(question.job, market, pairs)
    result = Configurations(
        market=np.full(len(pairs.place), number, np.int64),
        place=pairs.place,
        row=pairs.row,
        nodes=pairs.nodes,
        broken=screened.broken[pairs.offer] | size | carbon_bits(question.job, kg),
        cluster_rate=run.cluster_rate,
        checkpoint_hours=run.checkpoint_hours,
        carbon_kg=kg,
        cost_breakdown=paid,
        priced_configurations=run,
        which=np.arange(len(pairs.place)),
    )
    delay = None if run.takeover is None else run.takeover.delay_hours
    if any(machine.windows for machine in market.owned):
        result = in_windows(result, question, market, delay)
    elif delay is not None:
        result = _later(result, delay)
    return result.take(result.cost_breakdown.run_hours <= LONGEST_RUN_HOURS)


def _size_bits(job: TrainingJob, market: Market, pairs: Pairs) -> NDArray[np.uint32]:
    most, nodes = job.constraints.max_accelerators, pairs.nodes
    bits = np.zeros(len(nodes), np.uint32)
    bits[nodes > job.constraints.max_nodes] |= BIT["constraints.max_nodes"]
    if market.quotas:
        bits[nodes > quota_nodes(market.snapshot, market.quotas)[pairs.place]] |= QUOTA
    if most is not None:
        snapshot = market.snapshot
        devices = snapshot.shapes.devices[snapshot.shapes.of_type[snapshot.type_index[pairs.place]]]
        bits[nodes * devices > most] |= BIT["constraints.max_accelerators"]
    return bits


def run_of(question: Question, table: Configurations, ready: Sequence[Estimated], costs: Sequence[RegionCosts]) -> Run:
    """The inputs of the configurations of a table, which are in order of their markets.

    For a running job they are computed again, because a table may be compared at other costs than its own.
    """
    if question.origin is None:
        return table.run()
    parts = []
    for number in np.unique(table.market).tolist():
        mine = np.flatnonzero(table.market == number)
        pairs = Pairs(offer=mine, place=table.place[mine], nodes=table.nodes[mine], row=table.row[mine])
        parts.append(run_on(question, question.markets[number], pairs, ready[number], costs[number]))
    return _one_run(parts)


def before_work(run: Run, index: int) -> float:
    """Hours from the start until configuration `index` does its first step of work."""
    setup_hours, takeover = float(run.setup_hours[index]), run.takeover
    return setup_hours if takeover is None else setup_hours + float(takeover.delay_hours[index])


def _later(table: Configurations, delay: Floats) -> Configurations:
    """The configurations with `delay` hours added before each."""
    times = {name: getattr(table.cost_breakdown, name) + delay for name in _TIMES}
    return replace(table, cost_breakdown=replace(table.cost_breakdown, **times))


#: Hours from start to finish.
_TIMES = ("hours", "hours_median", "hours_at_confidence", "hours_p95")


def in_windows(
    table: Configurations, question: Question, market: Market, delay_hours: Floats | None = None
) -> Configurations:
    """The configurations with the hours of owned machines extended over their availability windows.

    Work stops when a window closes and restarts from a checkpoint in the next. Power is paid for busy hours only. Hours
    are infinite where the windows never give enough time. `hours_at_confidence` are infinite also where a run of
    expected length, or one of 19 of 20 runs, never ends, because no plan can then state its end. Machines can start
    after `delay_hours`.
    """
    breakdown = table.cost_breakdown
    times = {name: np.array(getattr(breakdown, name)) for name in _TIMES}
    restart = question.settings.restart_hours
    for i, type_index in enumerate(market.snapshot.type_index[table.place]):
        machine = market.owned[int(type_index)]
        after = 0.0 if delay_hours is None else float(delay_hours[i])
        for hours in times.values():
            busy = float(hours[i])
            hours[i] = after + machine.elapsed_hours(question.start, busy, restart_hours=restart, after_hours=after)
        if machine.windows and np.isfinite(times["hours"][i]):
            mean = breakdown.run_hours[i] + breakdown.waiting_hours[i]
            runs = equally_likely(breakdown.hours[i] - mean, mean, breakdown.log_sigma[i])
            spent = elapsed_hours_of_all(
                machine.windows, question.start, runs, restart_hours=restart, after_hours=np.full(len(runs), after)
            )
            times["hours"][i] = after + breakdown.hours[i] + mean_wait(spent, runs)
    confident = times["hours_at_confidence"]
    confident[~np.isfinite(times["hours"] + times["hours_p95"])] = np.inf
    return replace(table, cost_breakdown=replace(breakdown, **times))
