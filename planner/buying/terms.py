"""What may be committed to, and what is held already: nodes under a term, and so much to spend per hour."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.offer import Offer
from catalog.spend_plans import Pool, pool_of
from planner.buying.forecast import Forecast, ForecastJob
from planner.buying.questions import constrained, every, in_time, question_of
from planner.candidates.configurations import Configurations
from planner.candidates.gather import candidates
from planner.candidates.market import Market
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]
Runs = tuple[NDArray[np.int64], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node under a term: which offer, as the place among the arranged offers of the market.

    `held` nodes of it are the user's already (None: it may be entered into).
    """

    place: int
    usd_per_hour: float
    held: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A commitment to spend so much per hour on what `pool` covers; `held_usd` per hour is the user's already.

    `on` has per job what the money is spent on there (None: it cannot be).
    """

    pool: Pool
    on: tuple[Offer | None, ...]
    held_usd: float | None = None


def under_terms(
    each: ForecastJob, forecast: Forecast, market: Market, settings: PlannerSettings
) -> Configurations | None:
    """Every configuration under a kind with a term, of those in question, that does this job in time; None if none."""
    held = {one.price_kind for one in settings.held} | {one.price_kind for one in settings.held_spend}
    kinds = tuple(sorted(held | set(forecast.commitments)))
    if not kinds:
        return None
    asked = constrained(each, replace(each.job.constraints, price_kinds=kinds))
    table = every(candidates(question_of(asked, market, forecast, settings)))
    table = table.take(in_time(table, each))
    return table if len(table) else None


def new_nodes(
    market: Market, tables: list[Configurations | None], forecast: Forecast
) -> tuple[tuple[Node, ...], Floats]:
    """Nodes under a term that may be entered into, the undominated ones, and [5, nodes, jobs] of the runs on them."""
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
    places = np.unique(np.concatenate([each for each, _ in runs]))
    found = _side_by_side(places, runs)
    kept = _undominated(found, snapshot.usd_per_hour[places], snapshot.kind_index[places])
    nodes = tuple(Node(place=int(p), usd_per_hour=float(snapshot.usd_per_hour[p])) for p in places[kept])
    return nodes, found[:, kept]


def held_nodes(
    market: Market, tables: list[Configurations | None], settings: PlannerSettings
) -> tuple[tuple[Node, ...], Floats]:
    """Nodes that the user holds, on as many of which a job may run together, and [5, nodes, jobs] of the runs there."""
    nodes, found = [], []
    offers = _offers(market, tables)
    for each in settings.held:
        key = (each.provider, each.region, each.instance_type, each.price_kind)
        mine = {p for p, o in offers.items() if (o.provider, o.region, o.instance_type, o.price_kind) == key}
        runs = np.full((5, len(tables)), np.inf)
        place = min(mine, default=-1)
        for j, table in enumerate(tables):
            if table is not None:
                there = np.array([int(p) in mine for p in table.place], np.bool_) & (table.nodes <= each.nodes)
                _, best = _least_runs(market, table.take(there))
                if best.shape[1]:
                    runs[:, j] = best[:, int(best[0].argmin())]
        if place >= 0:
            nodes.append(Node(place=place, usd_per_hour=0.0, held=each.nodes))
            found.append(runs)
    return tuple(nodes), np.stack(found, axis=1) if found else np.zeros((5, 0, len(tables)))


def spendings(
    market: Market, tables: list[Configurations | None], forecast: Forecast, settings: PlannerSettings
) -> tuple[tuple[Spending, ...], Floats]:
    """Commitments to spend per hour, held ones and those that may be entered into, and [5, these, jobs] of the runs.

    The first of the five is what a run comes to at the plan's rates. Each job runs where rate and other costs together
    are least. Of two new ones of a kind that cover every job, the one with higher rates and costs is left out.
    """
    offers = _offers(market, tables)
    new = sorted({pool for o in offers.values() if (pool := pool_of(o)) and o.price_kind in forecast.commitments})
    asked: list[tuple[Pool, float | None]] = [(pool, None) for pool in new]
    asked += [
        (Pool(provider=h.provider, price_kind=h.price_kind, region=h.region, family=h.family), h.usd_per_hour)
        for h in settings.held_spend
    ]
    found = np.full((5, len(asked), len(tables)), np.inf)
    on: list[list[Offer | None]] = [[None] * len(tables) for _ in asked]
    for i, (pool, held_usd) in enumerate(asked):
        mine = {p for p, o in offers.items() if (pool_of(o) == pool if held_usd is None else pool.covers(o))}
        for j, table in enumerate(tables):
            if table is None:
                continue
            here = table.take(np.array([int(p) in mine for p in table.place], np.bool_))
            if len(here):
                runs = _runs_of(market, here)
                runs[0] *= market.snapshot.usd_per_hour[here.place]
                best = int((runs[0] + runs[2]).argmin())
                found[:, i, j], on[i][j] = runs[:, best], offers[int(here.place[best])]
    kinds = np.array([market.columns.kinds.index(pool.price_kind) for pool in new], np.int64)
    kept = [*_undominated(found[:, : len(new)], np.ones(len(new)), kinds).tolist(), *range(len(new), len(asked))]
    return (
        tuple(Spending(pool=asked[i][0], on=tuple(on[i]), held_usd=asked[i][1]) for i in kept),
        found[:, kept],
    )


def _offers(market: Market, tables: list[Configurations | None]) -> dict[int, Offer]:
    """The offers of the places in the tables."""
    places = {int(p) for table in tables if table is not None for p in table.place}
    return {p: market.columns.offer(int(market.snapshot.original[p])) for p in sorted(places)}


def _pools(market: Market, tables: list[Configurations | None]) -> dict[int, Pool | None]:
    return {p: pool_of(offer) for p, offer in _offers(market, tables).items()}


def _least_runs(market: Market, table: Configurations | None) -> Runs:
    """Places of a table, rising, and [5, places] of the run there that takes the least node-hours."""
    if table is None or not len(table):
        return np.zeros(0, np.int64), np.zeros((5, 0))
    hours = table.bill.hours * table.nodes
    order = np.lexsort((table.nodes, hours, table.place))
    _, first = np.unique(table.place[order], return_index=True)
    best = order[first]
    return table.place[best], _runs_of(market, table)[:, best]


def _runs_of(market: Market, table: Configurations) -> Floats:
    """[5, configurations]: node-hours, no power of the user's own, storage and egress, accelerators, hours."""
    shapes = market.snapshot.shapes
    devices = shapes.devices[shapes.of_type[market.snapshot.type_index[table.place]]] * table.nodes
    other = table.bill.storage_usd + table.bill.egress_usd
    hours = table.bill.hours
    return np.stack((hours * table.nodes, np.zeros(len(table)), other, devices.astype(np.float64), hours))


def _side_by_side(places: NDArray[np.int64], runs: list[Runs]) -> Floats:
    """[5, places, jobs]."""
    found = np.full((5, len(places), len(runs)), np.inf)
    for j, (mine, run) in enumerate(runs):
        found[:, np.searchsorted(places, mine), j] = run
    return found


def _undominated(found: Floats, price: Floats, kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those that no other beats in price and, for every job, in machine-hours and cost of a run; within one kind."""
    kept: list[int] = []
    for i in np.lexsort((found[0].min(axis=1, initial=np.inf), price)).tolist():
        rivals = np.array([k for k in kept if kind[k] == kind[i]], np.int64)
        better = (found[0, rivals] <= found[0, i]).all(axis=1) & (found[2, rivals] <= found[2, i]).all(axis=1)
        if not better.any():
            kept.append(i)
    return np.array(sorted(kept), np.int64)
