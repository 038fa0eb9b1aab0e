"""Every (offer, node count) worth evaluating, with its hours and its bill: one array element each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.carbon import carbon_bits, carbon_kg
from planner.candidates.kept_estimates import kept_estimates
from planner.candidates.machine_rows import MachineRows, machine_rows
from planner.candidates.market import Market
from planner.candidates.requirements import BIT
from planner.candidates.screen import RegionCosts, Screened
from planner.cost.bill import LONGEST_RUN_HOURS, RUN_ARRAYS, Bill, Run, TakeOver, bill, billing_tables
from planner.cost.checkpoints import checkpoint_gb
from planner.estimate.corrected import estimate_learned
from planner.estimate.learned import Learned
from planner.estimate.machines import Estimates
from planner.job import Training, TrainingJob
from planner.own_steps import as_timed
from planner.question import Question
from planner.workload.work import Work

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configurations:
    """Configurations of one or more markets.

    `market` indexes the markets, `place` the arranged offers of that market, `row` its estimates.
    `broken` are the bits of requirements that a configuration does not meet (time and money apart). `carbon_kg` is nan
    where power or grid is unknown.
    """

    market: Ints
    place: Ints
    row: Ints
    nodes: Ints
    broken: NDArray[np.uint16]
    cluster_rate: Floats
    checkpoint_hours: Floats
    carbon_kg: Floats
    bill: Bill

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.nodes)

    def whole(self) -> "Configurations":
        """The configurations that can do all of the work."""
        return self.take(np.isfinite(self.bill.hours_kept))

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Configurations":
        """The configurations at these elements."""
        return _mapped([self], lambda arrays: arrays[0][which])


def joined(parts: list[Configurations]) -> Configurations:
    """Configurations of several markets, one after the other."""
    return parts[0] if len(parts) == 1 else _mapped(parts, np.concatenate)


def _mapped(parts: list[Configurations], how: Callable[[list[Array]], Array]) -> Configurations:
    """One table from several by the same operation on every array."""
    bills = {f.name: how([getattr(part.bill, f.name) for part in parts]) for f in fields(Bill)}
    names = [f.name for f in fields(Configurations) if f.name != "bill"]
    return Configurations(bill=Bill(**bills), **{name: how([getattr(part, name) for part in parts]) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimated:
    """The estimates of a market's machine shapes at every node count."""

    rows: MachineRows
    estimates: Estimates


def shapes_left(market: Market, screened: Screened) -> set[int]:
    """The shapes that some kept offer has."""
    return set(market.snapshot.shapes.of_type[market.snapshot.type_index[screened.places]].tolist())


def estimated(
    question: Question, market: Market, screened: Screened, max_nodes: int, shapes_wanted: set[int]
) -> Estimated:
    """Time and memory of at least the shapes that some kept offer has, on up to `max_nodes` nodes."""
    shapes = market.snapshot.shapes
    types = np.unique(market.snapshot.type_index[screened.places])
    wanted = tuple(sorted(shapes_wanted))
    most = market.up.nodes if market.up else int(min(max_nodes, market.node_limit[types].max(initial=1.0)))
    work, training, goodput = question.work, question.job.training, question.settings.goodput
    if not market.owned and market.up is None:
        rows, estimates = kept_estimates(
            shapes, wanted, most, work, training, goodput=goodput, learned=question.learned
        )
        return Estimated(rows=rows, estimates=estimates)
    rows = machine_rows(shapes, wanted, most, work.shape.layers if work.shape is not None else 1)
    estimates = _estimates(rows, work, training, goodput, question.learned)
    if any(machine.measured for machine in market.owned):
        estimates = as_timed(estimates, rows.machines, work, training)
    return Estimated(rows=rows, estimates=estimates)


#: A user's own machines are few, and the same job is asked about again with every other deadline, budget or place.
@lru_cache(maxsize=16)
def _estimates(rows: MachineRows, work: Work, training: Training, goodput: float, learned: Learned) -> Estimates:
    return estimate_learned(work, training, rows.machines, goodput=goodput, learned=learned)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Offers times node counts at which their machines can run the job; `offer` counts the screened places."""

    offer: Ints
    place: Ints
    nodes: Ints
    row: Ints


def configurations(
    question: Question, number: int, screened: Screened, ready: Estimated, costs: RegionCosts
) -> Configurations:
    """Every kept offer of market `number` at every node count at which its machines can run the job."""
    return of_a_share(question, number, screened, ready, costs).whole()


def of_a_share(
    question: Question, number: int, screened: Screened, ready: Estimated, costs: RegionCosts
) -> Configurations:
    """Every kept offer of market `number` at every node count at which its machines can do a share of the job.

    Hours kept are infinite where the price kind or the free windows have no room for all of the work.
    """
    market = question.markets[number]
    snapshot = market.snapshot
    pairs = _runnable(market, screened, ready)
    run = _run(question, market, pairs, ready, costs)
    devices = snapshot.shapes.devices[snapshot.shapes.of_type[snapshot.type_index[pairs.place]]]
    paid = bill(run, question.job.confidence, question.settings)
    kg = carbon_kg(market, pairs.place, pairs.nodes, paid.run_hours)
    size = _size_bits(question.job, pairs.nodes, pairs.nodes * devices)
    result = Configurations(
        market=np.full(len(pairs.place), number, np.int64),
        place=pairs.place,
        row=pairs.row,
        nodes=pairs.nodes,
        broken=screened.broken[pairs.offer] | size | carbon_bits(question.job, kg),
        cluster_rate=run.cluster_rate,
        checkpoint_hours=run.checkpoint_hours,
        carbon_kg=kg,
        bill=paid,
    )
    delay = None if run.takeover is None else run.takeover.delay_hours
    if any(machine.windows for machine in market.owned):
        result = in_windows(result, question, market, delay)
    elif delay is not None:
        result = _later(result, delay)
    return result.take(result.bill.run_hours <= LONGEST_RUN_HOURS)


def _runnable(market: Market, screened: Screened, ready: Estimated) -> _Pairs:
    snapshot, rows = market.snapshot, ready.rows
    offer, pair = _expanded(snapshot.shapes.of_type[snapshot.type_index[screened.places]], rows)
    place, nodes, row = screened.places[offer], rows.nodes[pair], rows.row[pair]
    runs = (ready.estimates.reason[row] == 0) & (nodes <= market.node_limit[snapshot.type_index[place]])
    if market.up:
        runs &= nodes == market.up.nodes
    return _Pairs(offer=offer[runs], place=place[runs], nodes=nodes[runs], row=row[runs])


def _expanded(shape: NDArray[np.int32], rows: MachineRows) -> tuple[Ints, Ints]:
    """For offers of these shapes: each offer's index once per node count, and the pair it stands for."""
    first, count = rows.first[shape], rows.first[shape + 1] - rows.first[shape]
    which = np.repeat(np.arange(len(shape)), count)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)


def _size_bits(job: TrainingJob, nodes: Ints, devices: Ints) -> NDArray[np.uint16]:
    most = job.constraints.max_accelerators
    bits = np.zeros(len(nodes), np.uint16)
    bits[nodes > job.constraints.max_nodes] |= BIT["constraints.max_nodes"]
    if most is not None:
        bits[devices > most] |= BIT["constraints.max_accelerators"]
    return bits


def run_of(question: Question, table: Configurations, ready: Sequence[Estimated], costs: Sequence[RegionCosts]) -> Run:
    """What is bought in the configurations of a table, which are in order of their markets."""
    parts = []
    for number in np.unique(table.market).tolist():
        mine = np.flatnonzero(table.market == number)
        pairs = _Pairs(offer=mine, place=table.place[mine], nodes=table.nodes[mine], row=table.row[mine])
        parts.append(_run(question, question.markets[number], pairs, ready[number], costs[number]))
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in RUN_ARRAYS}
    takeovers = [part.takeover for part in parts if part.takeover is not None]
    if not takeovers:
        return Run(**arrays)
    over = {
        each.name: np.concatenate([getattr(takeover, each.name) for takeover in takeovers]) for each in fields(TakeOver)
    }
    return Run(**arrays, takeover=TakeOver(**over))


def _run(question: Question, market: Market, pairs: _Pairs, ready: Estimated, costs: RegionCosts) -> Run:
    """What is bought, one element per pair."""
    snapshot, settings, place, nodes = market.snapshot, question.settings, pairs.place, pairs.nodes
    kinds = billing_tables(market.columns.kinds)
    kind, region, type_ = snapshot.kind_index[place], snapshot.region_index[place], snapshot.type_index[place]
    levels = np.nan_to_num(snapshot.rate_levels, nan=settings.default_interruptions_per_hour)
    rate = np.where(kinds.interruptible[kind], levels[snapshot.rate_level[place]], 0.0)
    gigabytes = checkpoint_gb(question.work, question.job.training)
    return Run(
        nodes=nodes.astype(np.float64),
        work_hours=ready.estimates.hours_with_goodput[pairs.row],
        beside_hours=np.zeros(len(place)),
        log_sigma=ready.estimates.log_sigma[pairs.row],
        cluster_rate=rate * nodes,
        checkpoint_hours=(gigabytes / settings.checkpoint_gbs / 3600.0) / nodes.astype(np.float64),
        usd_per_node_hour=snapshot.usd_per_hour[place],
        power_usd_per_node_hour=market.power_usd_per_node_hour[type_],
        egress_usd=np.zeros(len(place)) if market.up else costs.egress_usd[region],
        storage_usd_per_hour=costs.storage_usd_per_hour[region],
        billing_step_hours=kinds.step_hours[kind],
        billing_minimum_hours=kinds.minimum_hours[kind],
        term_hours=np.zeros(len(place)) if market.term_paid else kinds.term_hours[kind],
        longest_hours=kinds.longest_hours[kind],
        takeover=_takeover(question, market, costs, region),
    )


def _takeover(question: Question, market: Market, costs: RegionCosts, region: NDArray[np.int32]) -> TakeOver | None:
    """What it takes to go on from where a job stands; None for a job that starts."""
    origin, zeros = question.origin, np.zeros(len(region))
    if origin is None or costs.fetch_usd is None or costs.delay_hours is None:
        return None
    if market.up:
        ready = zeros + question.settings.setup_hours
        return TakeOver(
            ready_hours=ready, up_hours=zeros + market.up.hours, fetch_usd=zeros, lead_usd=zeros, delay_hours=zeros
        )
    return TakeOver(
        ready_hours=zeros,
        up_hours=zeros,
        fetch_usd=costs.fetch_usd[region],
        lead_usd=zeros + origin.write_usd,
        delay_hours=costs.delay_hours[region],
    )


def before_work(found_run: Run, index: int, setup_hours: float) -> float:
    """Hours from the start until one of these configurations does its first step of work."""
    takeover = found_run.takeover
    if takeover is None:
        return setup_hours
    return float(takeover.delay_hours[index] + setup_hours - takeover.ready_hours[index])


def _later(table: Configurations, delay: Floats) -> Configurations:
    """The same configurations, each after so many hours."""
    names = ("hours", "hours_kept", "hours_p95")
    return replace(table, bill=replace(table.bill, **{name: getattr(table.bill, name) + delay for name in names}))


def in_windows(
    table: Configurations, question: Question, market: Market, delay_hours: Floats | None = None
) -> Configurations:
    """The same configurations with the hours of own machines stretched over their free windows.

    Work stops when a window closes and restarts from a checkpoint in the next; power is paid for
    busy hours only. Hours are infinite where the windows never give enough time. Machines can start after `delay_hours`.
    """
    hours, kept, p95 = (np.array(each) for each in (table.bill.hours, table.bill.hours_kept, table.bill.hours_p95))
    for i, type_index in enumerate(market.snapshot.type_index[table.place]):
        machine = market.owned[int(type_index)]
        for times in (hours, kept, p95):
            busy, restart = float(times[i]), question.settings.restart_hours
            after = 0.0 if delay_hours is None else float(delay_hours[i])
            elapsed = machine.elapsed_hours(question.start, busy, restart_hours=restart, after_hours=after)
            times[i] = after + elapsed
    return replace(table, bill=replace(table.bill, hours=hours, hours_kept=kept, hours_p95=p95))
