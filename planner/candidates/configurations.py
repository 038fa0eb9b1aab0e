"""Every (offer, node count) worth evaluating, with its hours and its bill: one array element each."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.free_time import elapsed_many
from planner.candidates.bought import Pairs, Terms, for_work, kept_of, run_on, runnable
from planner.candidates.carbon import carbon_bits, kg_per_node_hour
from planner.candidates.estimated import Estimated
from planner.candidates.market import Market
from planner.candidates.requirements import BIT
from planner.candidates.screen import RegionCosts, Screened
from planner.candidates.shapes import Arranged
from planner.cost.bill import LONGEST_RUN_HOURS, RUN_ARRAYS, Bill, Run, TakeOver, bill
from planner.cost.expected_waits import equally_likely, mean_wait
from planner.job import TrainingJob
from planner.question import Question

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configurations:
    """Configurations of one or more markets.

    `market` indexes the markets, `place` the arranged offers of that market, `row` its estimates.
    `broken` are the bits of requirements that a configuration does not meet (time and money apart). `carbon_kg` is nan
    where power or grid is unknown. What is bought in a configuration is the element `which` of `bought`, which tables have
    in common, since few of those that are made of one another ask for it.
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
    bought: Run
    which: Ints

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.nodes)

    def whole(self) -> "Configurations":
        """The configurations that can do all of the work."""
        return self.take(np.isfinite(self.bill.hours_kept))

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Configurations":
        """The configurations at these elements."""
        if which.dtype == np.bool_ and which.all():
            return self
        bill_ = Bill(**{name: getattr(self.bill, name)[which] for name in _BILL_ARRAYS})
        own = {name: getattr(self, name)[which] for name in _OWN_ARRAYS}
        return Configurations(bill=bill_, bought=self.bought, **own)

    def run(self) -> Run:
        """What is bought, one element per configuration."""
        whole = len(self.which) == len(self.bought) and bool((self.which == np.arange(len(self.which))).all())
        return self.bought if whole else self.bought.take(self.which)


def joined(parts: list[Configurations]) -> Configurations:
    """Configurations of several markets, one after the other."""
    if len(parts) == 1:
        return parts[0]
    bills = {name: np.concatenate([getattr(part.bill, name) for part in parts]) for name in _BILL_ARRAYS}
    own = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _OWN_ARRAYS}
    before = np.cumsum([0, *(len(part.bought) for part in parts)])
    own["which"] = np.concatenate([part.which + first for part, first in zip(parts, before, strict=False)])
    return Configurations(bill=Bill(**bills), bought=_one_run([part.bought for part in parts]), **own)


def _one_run(runs: list[Run]) -> Run:
    """What is bought in several tables, one after the other; a job is under way in all of them or in none."""
    arrays: dict[str, Any] = {name: np.concatenate([getattr(run, name) for run in runs]) for name in RUN_ARRAYS}
    takeovers = [run.takeover for run in runs if run.takeover is not None]
    if not takeovers:
        return Run(**arrays)
    over = {each.name: np.concatenate([getattr(ahead, each.name) for ahead in takeovers]) for each in fields(TakeOver)}
    return Run(**arrays, takeover=TakeOver(**over))


_BILL_ARRAYS = tuple(each.name for each in fields(Bill))
_OWN_ARRAYS = tuple(each.name for each in fields(Configurations) if each.name not in {"bill", "bought"})


def configurations(
    question: Question, number: int, screened: Screened, ready: Estimated, costs: RegionCosts
) -> Configurations:
    """Every kept offer of market `number` at every node count at which its machines can run the job."""
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
    """Every kept offer of market `number` at every node count at which its machines can do a share of the job.

    Hours kept are infinite where the price kind or the free windows have no room for all of the work. With `keep`, what
    is bought is kept for jobs that differ in length, deadline or budget only.
    """
    market = question.markets[number]
    if keep and ready.able is not None and question.origin is None:
        pairs, run, kg_rate = kept_of(market)(screened, ready.rows, ready.able, costs, terms=Terms.of(question))
        run = for_work(run, pairs, ready)
    else:
        hosts_gib = Terms.of(question).hosts_gib
        pairs = runnable(market, screened, ready.rows, ready.estimates.reason, hosts_gib)
        run, kg_rate = run_on(question, market, pairs, ready, costs), kg_per_node_hour(market, pairs.place)
    paid = bill(run, question.job.confidence, question.settings)
    kg = pairs.nodes * paid.run_hours * kg_rate
    size = _size_bits(question.job, market.snapshot, pairs)
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
        bought=run,
        which=np.arange(len(pairs.place)),
    )
    delay = None if run.takeover is None else run.takeover.delay_hours
    if any(machine.windows for machine in market.owned):
        result = in_windows(result, question, market, delay)
    elif delay is not None:
        result = _later(result, delay)
    return result.take(result.bill.run_hours <= LONGEST_RUN_HOURS)


def _size_bits(job: TrainingJob, snapshot: Arranged, pairs: Pairs) -> NDArray[np.uint16]:
    most, nodes = job.constraints.max_accelerators, pairs.nodes
    bits = np.zeros(len(nodes), np.uint16)
    bits[nodes > job.constraints.max_nodes] |= BIT["constraints.max_nodes"]
    if most is not None:
        devices = snapshot.shapes.devices[snapshot.shapes.of_type[snapshot.type_index[pairs.place]]]
        bits[nodes * devices > most] |= BIT["constraints.max_accelerators"]
    return bits


def run_of(question: Question, table: Configurations, ready: Sequence[Estimated], costs: Sequence[RegionCosts]) -> Run:
    """What is bought in the configurations of a table, which are in order of their markets.

    Where a job is under way it is worked out again: a table may be held against machines left at other costs than its own.
    """
    if question.origin is None:
        return table.run()
    parts = []
    for number in np.unique(table.market).tolist():
        mine = np.flatnonzero(table.market == number)
        pairs = Pairs(offer=mine, place=table.place[mine], nodes=table.nodes[mine], row=table.row[mine])
        parts.append(run_on(question, question.markets[number], pairs, ready[number], costs[number]))
    return _one_run(parts)


def before_work(found_run: Run, index: int, setup_hours: float) -> float:
    """Hours from the start until one of these configurations does its first step of work."""
    takeover = found_run.takeover
    if takeover is None:
        return setup_hours
    return float(takeover.delay_hours[index] + setup_hours - takeover.ready_hours[index])


def _later(table: Configurations, delay: Floats) -> Configurations:
    """The same configurations, each after so many hours."""
    times = {name: getattr(table.bill, name) + delay for name in _TIMES}
    return replace(table, bill=replace(table.bill, **times))


#: Hours from start to finish.
_TIMES = ("hours", "hours_median", "hours_kept", "hours_p95")


def in_windows(
    table: Configurations, question: Question, market: Market, delay_hours: Floats | None = None
) -> Configurations:
    """The same configurations with the hours of own machines stretched over their free windows.

    Work stops when a window closes and restarts from a checkpoint in the next; power is paid for
    busy hours only. Hours are infinite where the windows never give enough time, and those kept also where they do not
    for a run of expected length or for 19 of 20: no plan can then say when it ends. Machines can start after `delay_hours`.
    """
    bill_ = table.bill
    times = {name: np.array(getattr(bill_, name)) for name in _TIMES}
    restart = question.settings.restart_hours
    for i, type_index in enumerate(market.snapshot.type_index[table.place]):
        machine = market.owned[int(type_index)]
        after = 0.0 if delay_hours is None else float(delay_hours[i])
        for hours in times.values():
            busy = float(hours[i])
            hours[i] = after + machine.elapsed_hours(question.start, busy, restart_hours=restart, after_hours=after)
        if machine.windows and np.isfinite(times["hours"][i]):
            mean = bill_.run_hours[i] + bill_.waiting_hours[i]
            runs = equally_likely(bill_.hours[i] - mean, mean, bill_.log_sigma[i])
            spent = elapsed_many(
                machine.windows, question.start, runs, restart_hours=restart, after_hours=np.full(len(runs), after)
            )
            times["hours"][i] = after + bill_.hours[i] + mean_wait(spent, runs)
    kept = times["hours_kept"]
    kept[~np.isfinite(times["hours"] + times["hours_p95"])] = np.inf
    return replace(table, bill=replace(bill_, **times))
