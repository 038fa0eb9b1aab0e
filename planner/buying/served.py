"""What each source does for each job: machine-hours, running cost and size of a run, from the planner's own estimates.

A machine that is bought may run a job on some of its accelerators and others beside it: of the counts that keep the
job's deadline the one with the least share of machine-hours is taken. A committed node and the cheapest rented
configuration are what a plan would choose, at the same speed, storage, egress and set-up as there.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from catalog.price_kinds import price_kinds
from planner.answer import Choice
from planner.buying.forecast import Forecast, ForecastJob, Machine
from planner.candidates.configurations import Configurations, configurations
from planner.candidates.gather import Candidates, candidates, over
from planner.candidates.market import Market, owned_market, rented
from planner.candidates.requirements import kinds_asked
from planner.choice import cheapest, in_words
from planner.discounts import discounted
from planner.estimate.learned import learned_from
from planner.job import Constraints
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node under a term: which offer, as the place among the arranged offers of the market."""

    place: int
    usd_per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """Sources: the machines of the forecast, then `nodes`. Arrays are [sources, jobs], inf where it cannot be done.

    `machine_hours` of a run, `kwh` (of own machines, PUE included) and `other_usd` (storage, egress) of it,
    `accelerators` at work during it. `rented` is the cheapest rented configuration per job, None where none will do.
    """

    market: Market
    nodes: tuple[Node, ...]
    machine_hours: Floats
    kwh: Floats
    other_usd: Floats
    accelerators: Floats
    rented: tuple[Choice | None, ...]


def served(forecast: Forecast, columns: Columns, settings: PlannerSettings) -> Served:
    """Estimates of every job on every machine, node under a term and rented configuration."""
    market = rented(discounted(columns, settings.discounts))
    own = [_own(each, forecast, settings) for each in forecast.jobs]
    terms = [_terms(each, forecast, market, settings) for each in forecast.jobs]
    places, under_term = _undominated(market, terms)
    nodes = tuple(Node(place=int(p), usd_per_hour=float(market.snapshot.usd_per_hour[p])) for p in places)
    parts = [np.concatenate((np.stack([each[i] for each in own], axis=1), under_term[i])) for i in range(4)]
    return Served(
        market=market,
        nodes=nodes,
        machine_hours=parts[0],
        kwh=parts[1],
        other_usd=parts[2],
        accelerators=parts[3],
        rented=tuple(_rented(each, market, forecast, settings) for each in forecast.jobs),
    )


def _question(each: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Question:
    job = each.job
    work = work_of(job.workload, job.training)
    learned = learned_from(forecast.past_runs, work.task)
    return Question(job=job, work=work, markets=(market,), start=forecast.start, settings=settings, learned=learned)


def _constrained(each: ForecastJob, constraints: Constraints) -> ForecastJob:
    return replace(each, job=replace(each.job, constraints=constraints))


def _in_time(table: Configurations, each: ForecastJob) -> NDArray[np.bool_]:
    """Configurations that finish by the deadline with the asked confidence; money is weighed elsewhere."""
    return np.asarray(over(table, each.job.deadline_hours, None) == 0, np.bool_)


def _own(each: ForecastJob, forecast: Forecast, settings: PlannerSettings) -> Floats:
    """[4, machines]: machine-hours, kWh, other USD and accelerators of a run on each machine that may be bought."""
    found = np.full((4, len(forecast.machines)), np.inf)
    flat = [(m, count, part) for m, machine in enumerate(forecast.machines) for count, part in machine.parts]
    if not flat:
        return found
    market = owned_market(tuple(part for _, _, part in flat), "marginal", forecast.start)
    stated = each.job.constraints
    own = replace(stated, price_kinds=("owned",), providers=(), regions=(), geography=(), instance_types=())
    free = _constrained(each, own)
    table = _every(candidates(_question(free, market, forecast, settings)))
    table = table.take(_in_time(table, each))
    names = {part.instance_type.name: (m, count) for m, count, part in flat}
    type_index = market.snapshot.type_index[table.place]
    for i, t in enumerate(type_index.tolist()):
        part = market.owned[t]
        m, count = names[part.instance_type.name]
        _keep_least(found, m, _run_on(table, i, part, count, forecast.machines[m]))
    return found


def _run_on(table: Configurations, i: int, part: OwnedMachine, count: int, machine: Machine) -> tuple[float, ...]:
    """One configuration on part of a machine; the run has its share of machine-hours."""
    nodes = int(table.nodes[i])
    hours = float(table.bill.hours[i]) * nodes
    kwh = float(table.bill.hours[i]) * nodes * part.power_watts / 1000 * part.pue
    other = float(table.bill.storage_usd[i] + table.bill.egress_usd[i])
    return hours * count / machine.accelerators, kwh, other, float(nodes * count)


def _keep_least(found: Floats, m: int, run: tuple[float, ...]) -> None:
    """Least machine-hours; of equals, least energy."""
    if run[:2] < tuple(found[:2, m]):
        found[:, m] = run


def _every(found: Candidates) -> Configurations:
    """Every allowed offer at every node count, also those that another offer of the cell dominates for this job."""
    market, screened = found.question.markets[0], found.screened[0]
    places = market.snapshot.lead[screened.allowed]
    whole = replace(screened, places=places, broken=np.zeros(len(places), np.uint16))
    table = configurations(found.question, 0, whole, found.estimated[0], found.costs[0])
    return table.take(table.broken == 0)


def _terms(
    each: ForecastJob, forecast: Forecast, market: Market, settings: PlannerSettings
) -> tuple[NDArray[np.int64], Floats]:
    """Places of the offers with a term that this job may use, rising, and [4, places] of its runs there."""
    nothing = np.zeros(0, np.int64), np.zeros((4, 0))
    if not forecast.commitments:
        return nothing
    asked = _constrained(each, replace(each.job.constraints, price_kinds=forecast.commitments))
    table = _every(candidates(_question(asked, market, forecast, settings)))
    table = table.take(_in_time(table, each))
    if not len(table):
        return nothing
    hours = table.bill.hours * table.nodes
    order = np.lexsort((table.nodes, hours, table.place))
    _, first = np.unique(table.place[order], return_index=True)
    best = order[first]
    shapes = market.snapshot.shapes
    devices = shapes.devices[shapes.of_type[market.snapshot.type_index[table.place[best]]]]
    other = table.bill.storage_usd[best] + table.bill.egress_usd[best]
    run = np.stack((hours[best], np.zeros(len(best)), other, (devices * table.nodes[best]).astype(np.float64)))
    return table.place[best], run


def _undominated(
    market: Market, terms: list[tuple[NDArray[np.int64], Floats]]
) -> tuple[NDArray[np.int64], tuple[Floats, ...]]:
    """Places that no other beats in price and, for every job, in machine-hours and cost of a run; within one kind."""
    places = np.unique(np.concatenate([each for each, _ in terms])) if terms else np.zeros(0, np.int64)
    table = np.full((4, len(places), len(terms)), np.inf)
    for j, (mine, run) in enumerate(terms):
        table[:, np.searchsorted(places, mine), j] = run
    snapshot = market.snapshot
    price, kind = snapshot.usd_per_hour[places], snapshot.kind_index[places]
    kept: list[int] = []
    for i in np.lexsort((table[0].min(axis=1, initial=np.inf), price)).tolist():
        rivals = np.array([k for k in kept if kind[k] == kind[i]], np.int64)
        better = (table[0, rivals] <= table[0, i]).all(axis=1) & (table[2, rivals] <= table[2, i]).all(axis=1)
        if not better.any():
            kept.append(i)
    chosen = np.array(sorted(kept), np.int64)
    return places[chosen], tuple(table[:, chosen])


def _rented(each: ForecastJob, market: Market, forecast: Forecast, settings: PlannerSettings) -> Choice | None:
    """The cheapest configuration without an obligation that meets the job's deadline and budget."""
    kinds = tuple(
        name
        for name in kinds_asked(each.job.constraints)
        if not price_kinds()[name].owned and not price_kinds()[name].term_hours
    )
    if not kinds:
        return None
    asked = _constrained(each, replace(each.job.constraints, price_kinds=tuple(sorted(kinds))))
    found = candidates(_question(asked, market, forecast, settings))
    index = cheapest(found.table, over(found.table, each.job.deadline_hours, each.job.budget_usd) == 0)
    return None if index is None else in_words(found, found.table, index)
