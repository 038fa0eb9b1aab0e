"""The markets of a portfolio's configurations, and the shared pools that they draw on.

Offers are grouped by their quotas. Within a group a more expensive offer of the same machine is never needed; across
groups it may be, because a quota may be used up. Each kind of owned machine is a pool in its free windows, and each
existing commitment is a pool of its nodes.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.machine_shapes import arranged
from gpuplan.planner.candidates.markets import Market, commitment_markets, owned_market, rented
from gpuplan.planner.candidates.quota_limits import limits_place, names_type, units_per_node
from gpuplan.planner.cost.planned_prices import planned_prices
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.portfolio.portfolio_instance import Floats
from gpuplan.planner.portfolio.portfolio_request import Portfolio

#: A pool of a market and the units that one node of each instance type takes of it (nan: not countable).
Draw = tuple[int, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """`names` and `units` of the pools, `capacity` (R, T), and the pools of each market.

    `of_type[m]`: the pools of every offer of market m. `owned[m]` is the pool of each instance type and `committed[m]`
    that of each arranged place, unless None.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    capacity: Floats
    markets: tuple[Market, ...]
    of_type: tuple[tuple[Draw, ...], ...]
    owned: tuple[tuple[int, ...] | None, ...]
    committed: tuple[tuple[int, ...] | None, ...]


def pools_of(
    portfolio: Portfolio, columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings
) -> Pools:
    """Every market and pool of a portfolio at planned prices."""
    columns = planned_prices(columns, settings, portfolio.start)
    names = [quota.name for quota in portfolio.quotas]
    units = [quota.unit for quota in portfolio.quotas]
    capacity = [np.full(portfolio.slots, quota.limit) for quota in portfolio.quotas]
    draws_by_market: list[tuple[Market, tuple[Draw, ...], tuple[int, ...] | None, tuple[int, ...] | None]] = []
    for market, draws in _by_quota(portfolio.quotas, columns):
        draws_by_market.append((market, draws, None, None))
    for market in commitment_markets(columns, settings.held):
        places = []
        for i in market.snapshot.original.tolist():
            offer = market.columns.offer(i)
            nodes = float(market.node_limit[0])
            names.append(f"held {offer.instance_type} in {offer.region} ({offer.price_kind.replace('_', ' ')})")
            units.append("nodes")
            capacity.append(np.full(portfolio.slots, nodes))
            places.append(len(names) - 1)
        draws_by_market.append((market, (), None, tuple(places)))
    if owned:
        # Windows limit the pools here: a run stays within one window, and its hours do not extend over several.
        market = owned_market(
            tuple(replace(machine, windows=()) for machine in owned), settings.cost_basis, _day(portfolio.start)
        )
        first = len(names)
        ordered = sorted(
            owned, key=lambda owned_machine: (owned_machine.instance_type.provider, owned_machine.instance_type.name)
        )
        for machine in ordered:
            names.append(f"own {machine.instance_type.name}")
            units.append("machines")
            capacity.append(_free(machine, portfolio))
        draws_by_market.append((market, (), tuple(range(first, len(names))), None))
    return Pools(
        names=tuple(names),
        units=tuple(units),
        capacity=np.array(capacity).reshape(len(names), portfolio.slots),
        markets=tuple(row[0] for row in draws_by_market),
        of_type=tuple(row[1] for row in draws_by_market),
        owned=tuple(row[2] for row in draws_by_market),
        committed=tuple(row[3] for row in draws_by_market),
    )


def _day(start: datetime) -> datetime:
    return start.replace(hour=0, minute=0, second=0, microsecond=0)


def _free(machine: OwnedMachine, portfolio: Portfolio) -> Floats:
    """Machines that are free from the beginning to the end of each slot."""
    if not machine.windows:
        return np.full(portfolio.slots, float(machine.machines))
    edges = [portfolio.start + timedelta(hours=portfolio.slot_hours * t) for t in range(portfolio.slots + 1)]
    spans = sorted(span for window in machine.windows for span in window.spans(edges[0], edges[-1]))
    free = np.zeros(portfolio.slots)
    merged: list[tuple[datetime, datetime]] = []
    for opens, closes in spans:
        if merged and opens <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], closes)
        else:
            merged.append((opens, closes))
    for opens, closes in merged:
        for t in range(portfolio.slots):
            if opens <= edges[t] and edges[t + 1] <= closes:
                free[t] = machine.machines
    return free


#: Cached because repeated requests with other jobs or objectives have the same quotas.
@lru_cache(maxsize=4)
def _by_quota(quotas: tuple[Quota, ...], columns: Columns) -> tuple[tuple[Market, tuple[Draw, ...]], ...]:
    """The offers of the snapshot, grouped by equal quotas."""
    if not quotas:
        return ((rented(columns), ()),)
    types, regions = columns.instance_types, columns.regions
    falls = np.zeros((len(columns), len(quotas)), np.bool_)
    for number, quota in enumerate(quotas):
        of_type = np.array([names_type(quota, instance_type) for instance_type in types])
        of_region = np.array([limits_place(quota, place) for place in regions])
        if len(columns):
            falls[:, number] = of_type[columns.type_index] & of_region[columns.region_index]
    kinds, which = np.unique(falls, axis=0, return_inverse=True)
    # All groups share the shapes of single plans, so that each machine is estimated once.
    shapes = arranged(columns).shapes
    markets = []
    for part, signature in enumerate(kinds):
        at = np.flatnonzero(which.reshape(-1) == part)
        most = np.full(len(types), np.inf)
        draws: list[Draw] = []
        for number in np.flatnonzero(signature).tolist():
            units = np.array([units_per_node(quotas[number], instance_type) for instance_type in types])
            # Machines with unknown vCPUs are excluded; machines above the quota stay, to name the change that would
            # admit them.
            most[np.isnan(units)] = 0.0
            draws.append((number, units))
        chosen = columns if len(at) == len(columns) else _some(columns, at)
        # Not cached with the arranged snapshots: it would evict them.
        part_of_it = replace(arranged.__wrapped__(chosen), shapes=shapes)
        markets.append(
            (
                Market(snapshot=part_of_it, node_limit=most, power_usd_per_node_hour=np.zeros(len(types))),
                tuple(draws),
            )
        )
    return tuple(markets)


def _some(columns: Columns, at: np.ndarray) -> Columns:
    return columns.subset(at, [columns.offer(int(i)) for i in at])
