"""New and existing commitments: nodes under a term, and spend per hour."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.spend_plans import Pool, pool_of
from gpuplan.planner.candidates.candidate_set import candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.procurement.forecast import Forecast, ForecastJob, constrained, every, in_time, question_of

Floats = NDArray[np.float64]
Runs = tuple[NDArray[np.int64], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node under a term; `place` is the index of its offer in the arranged market.

    `held` is the number of nodes that the user has already committed to (None: a new commitment).
    """

    place: int
    usd_per_hour: float
    held: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A commitment to spend USD per hour on offers that `pool` covers.

    `on` is the offer that each job uses under it (None: no offer). `existing_usd` is the hourly spend that the user has
    already committed to (None: a new commitment).
    """

    pool: Pool
    on: tuple[Offer | None, ...]
    existing_usd: float | None = None


def under_terms(
    forecast_job: ForecastJob, forecast: Forecast, market: Market, settings: PlannerSettings
) -> Configurations | None:
    """The configurations with a committed price kind that finish this job in time; None if there are none."""
    committed_kinds = {one.price_kind for one in settings.held} | {one.price_kind for one in settings.held_spend}
    kinds = tuple(sorted(committed_kinds | set(forecast.commitments)))
    if not kinds:
        return None
    asked = constrained(forecast_job, replace(forecast_job.job.constraints, price_kinds=kinds))
    table = every(candidates(question_of(asked, market, forecast, settings)))
    table = table.take(in_time(table, forecast_job))
    return table if len(table) else None


def new_nodes(
    market: Market, tables: list[Configurations | None], forecast: Forecast
) -> tuple[tuple[Node, ...], Floats]:
    """The undominated nodes under new commitments, and their runs [5, nodes, jobs]."""
    snapshot = market.snapshot
    asked = np.array([kind in forecast.commitments for kind in market.columns.kinds], np.bool_)
    pools = _pools(market, tables)
    runs = []
    for table in tables:
        if table is None:
            runs.append(_least_runs(market, None))
            continue
        single = np.array([pools[int(p)] is None for p in table.place], np.bool_)
        runs.append(_least_runs(market, table.take(asked[snapshot.kind_index[table.place]] & single)))
    places = np.unique(np.concatenate([places_of_run for places_of_run, _ in runs]))
    costs = _side_by_side(places, runs)
    undominated = _undominated(costs, snapshot.usd_per_hour[places], snapshot.kind_index[places])
    nodes = tuple(Node(place=int(p), usd_per_hour=float(snapshot.usd_per_hour[p])) for p in places[undominated])
    return nodes, costs[:, undominated]


def committed_nodes(
    market: Market, tables: list[Configurations | None], settings: PlannerSettings
) -> tuple[tuple[Node, ...], Floats]:
    """Nodes that the user has already committed to, and their runs [5, nodes, jobs]. A job may use several of them."""
    nodes, costs = [], []
    offers = _offers(market, tables)
    for commitment in settings.held:
        key = (commitment.provider, commitment.region, commitment.instance_type, commitment.price_kind)
        mine = {p for p, o in offers.items() if (o.provider, o.region, o.instance_type, o.price_kind) == key}
        runs = np.full((5, len(tables)), np.inf)
        place = min(mine, default=-1)
        for j, table in enumerate(tables):
            if table is not None:
                is_covered = np.array([int(p) in mine for p in table.place], np.bool_) & (
                    table.nodes <= commitment.nodes
                )
                _, best = _least_runs(market, table.take(is_covered))
                if best.shape[1]:
                    runs[:, j] = best[:, int(best[0].argmin())]
        if place >= 0:
            nodes.append(Node(place=place, usd_per_hour=0.0, held=commitment.nodes))
            costs.append(runs)
    return tuple(nodes), np.stack(costs, axis=1) if costs else np.zeros((5, 0, len(tables)))


def spendings(
    market: Market, tables: list[Configurations | None], forecast: Forecast, settings: PlannerSettings
) -> tuple[tuple[Spending, ...], Floats]:
    """Existing and new commitments to spend per hour, and their runs [5, commitments, jobs].

    The first of the five figures is the cost of a run at the plan's rates. Each job uses the offer with the least sum
    of rate and other costs. New commitments that another one of their kind dominates are omitted.
    """
    offers = _offers(market, tables)
    new = sorted({pool for o in offers.values() if (pool := pool_of(o)) and o.price_kind in forecast.commitments})
    asked: list[tuple[Pool, float | None]] = [(pool, None) for pool in new]
    asked += [
        (Pool(provider=h.provider, price_kind=h.price_kind, region=h.region, family=h.family), h.usd_per_hour)
        for h in settings.held_spend
    ]
    costs = np.full((5, len(asked), len(tables)), np.inf)
    on: list[list[Offer | None]] = [[None] * len(tables) for _ in asked]
    for i, (pool, existing_usd) in enumerate(asked):
        mine = {p for p, o in offers.items() if (pool_of(o) == pool if existing_usd is None else pool.covers(o))}
        for j, table in enumerate(tables):
            if table is None:
                continue
            covered = table.take(np.array([int(p) in mine for p in table.place], np.bool_))
            if len(covered):
                runs = _runs_of(market, covered)
                runs[0] *= market.snapshot.usd_per_hour[covered.place]
                best = int((runs[0] + runs[2]).argmin())
                costs[:, i, j], on[i][j] = runs[:, best], offers[int(covered.place[best])]
    kinds = np.array([market.columns.kinds.index(pool.price_kind) for pool in new], np.int64)
    undominated = [*_undominated(costs[:, : len(new)], np.ones(len(new)), kinds).tolist(), *range(len(new), len(asked))]
    return (
        tuple(Spending(pool=asked[i][0], on=tuple(on[i]), existing_usd=asked[i][1]) for i in undominated),
        costs[:, undominated],
    )


def _offers(market: Market, tables: list[Configurations | None]) -> dict[int, Offer]:
    """The offers at the places in the tables."""
    places = {int(p) for table in tables if table is not None for p in table.place}
    return {p: market.columns.offer(int(market.snapshot.original[p])) for p in sorted(places)}


def _pools(market: Market, tables: list[Configurations | None]) -> dict[int, Pool | None]:
    return {p: pool_of(offer) for p, offer in _offers(market, tables).items()}


def _least_runs(market: Market, table: Configurations | None) -> Runs:
    """The places of a table in ascending order, and at each the run with the least node-hours [5, places]."""
    if table is None or not len(table):
        return np.zeros(0, np.int64), np.zeros((5, 0))
    hours = table.cost_breakdown.hours * table.nodes
    order = np.lexsort((table.nodes, hours, table.place))
    _, first = np.unique(table.place[order], return_index=True)
    best = order[first]
    return table.place[best], _runs_of(market, table)[:, best]


def _runs_of(market: Market, table: Configurations) -> Floats:
    """[5, configurations]: node-hours, kWh paid by the user (0), storage and egress in USD, accelerators, hours."""
    shapes = market.snapshot.shapes
    devices = shapes.devices[shapes.of_type[market.snapshot.type_index[table.place]]] * table.nodes
    other = table.cost_breakdown.storage_usd + table.cost_breakdown.egress_usd
    hours = table.cost_breakdown.hours
    return np.stack((hours * table.nodes, np.zeros(len(table)), other, devices.astype(np.float64), hours))


def _side_by_side(places: NDArray[np.int64], runs: list[Runs]) -> Floats:
    """The runs of every job side by side: [5, places, jobs]."""
    costs = np.full((5, len(places), len(runs)), np.inf)
    for j, (mine, run) in enumerate(runs):
        costs[:, np.searchsorted(places, mine), j] = run
    return costs


def _undominated(costs: Floats, price: Floats, kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices that no other of the same kind dominates in price, machine-hours and cost of every job's run."""
    undominated: list[int] = []
    for i in np.lexsort((costs[0].min(axis=1, initial=np.inf), price)).tolist():
        rivals = np.array([k for k in undominated if kind[k] == kind[i]], np.int64)
        better = (costs[0, rivals] <= costs[0, i]).all(axis=1) & (costs[2, rivals] <= costs[2, i]).all(axis=1)
        if not better.any():
            undominated.append(i)
    return np.array(sorted(undominated), np.int64)
