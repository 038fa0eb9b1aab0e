"""Where a portfolio's configurations come from, and which pools they draw on.

Offers are parted by the quotas that they fall under: inside one part a dearer offer of the same machine is never
needed, across parts it is, since a quota may be used up. Own machines are a pool each, in their free windows;
commitments already paid are a pool each of as many nodes as are held.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from catalog.columns import Columns
from catalog.offer import InstanceType
from catalog.owned import OwnedMachine
from planner.candidates.market import Market, held_markets, owned_market, rented
from planner.candidates.shapes import arranged
from planner.discounts import discounted, is_of_family
from planner.portfolio.instance import Floats
from planner.portfolio.request import Portfolio, Quota
from planner.settings import PlannerSettings

#: A pool of a market and the units that one node of each instance type takes of it (nan: not countable).
Draw = tuple[int, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """`names` and `units` of the pools, `capacity` (R, T), and for each market what it draws on.

    `of_type[m]`: pools that every offer of market m draws on. `own[m]` and `held[m]`, where they are not None: the
    pool of each instance type, or of each arranged place.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    capacity: Floats
    markets: tuple[Market, ...]
    of_type: tuple[tuple[Draw, ...], ...]
    own: tuple[tuple[int, ...] | None, ...]
    held: tuple[tuple[int, ...] | None, ...]


def pools_of(
    portfolio: Portfolio, columns: Columns, owned: tuple[OwnedMachine, ...], settings: PlannerSettings
) -> Pools:
    """Every market and every pool of a portfolio, at the prices that the user has negotiated."""
    columns = discounted(columns, settings.discounts)
    names = [quota.name for quota in portfolio.quotas]
    units = ["accelerators" if quota.accelerators is not None else "vCPUs" for quota in portfolio.quotas]
    limits = [_limit(quota) for quota in portfolio.quotas]
    capacity = [np.full(portfolio.slots, limit) for limit in limits]
    found: list[tuple[Market, tuple[Draw, ...], tuple[int, ...] | None, tuple[int, ...] | None]] = []
    for market, draws in _by_quota(portfolio.quotas, columns):
        found.append((market, draws, None, None))
    for market in held_markets(columns, settings.held):
        places = []
        for i in market.snapshot.original.tolist():
            offer = market.columns.offer(i)
            nodes = float(market.node_limit[0])
            names.append(f"held {offer.instance_type} in {offer.region} ({offer.price_kind.replace('_', ' ')})")
            units.append("nodes")
            capacity.append(np.full(portfolio.slots, nodes))
            places.append(len(names) - 1)
        found.append((market, (), None, tuple(places)))
    if owned:
        # Windows bound the pools here: a run stays inside one, and hours are not stretched over several.
        market = owned_market(
            tuple(replace(machine, windows=()) for machine in owned), settings.cost_basis, _day(portfolio.start)
        )
        first = len(names)
        ordered = sorted(owned, key=lambda each: (each.instance_type.provider, each.instance_type.name))
        for machine in ordered:
            names.append(f"own {machine.instance_type.name}")
            units.append("machines")
            capacity.append(_free(machine, portfolio))
        found.append((market, (), tuple(range(first, len(names))), None))
    return Pools(
        names=tuple(names),
        units=tuple(units),
        capacity=np.array(capacity).reshape(len(names), portfolio.slots),
        markets=tuple(each[0] for each in found),
        of_type=tuple(each[1] for each in found),
        own=tuple(each[2] for each in found),
        held=tuple(each[3] for each in found),
    )


def _day(start: datetime) -> datetime:
    return start.replace(hour=0, minute=0, second=0, microsecond=0)


def _limit(quota: Quota) -> float:
    limit = quota.accelerators if quota.accelerators is not None else quota.vcpus
    if limit is None:
        raise ValueError("a quota counts accelerators or vCPUs")
    return float(limit)


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


#: Whoever asks once more, with other jobs or for another objective, has the same quotas.
@lru_cache(maxsize=4)
def _by_quota(quotas: tuple[Quota, ...], columns: Columns) -> tuple[tuple[Market, tuple[Draw, ...]], ...]:
    """The offers of the snapshot in parts that fall under the same quotas."""
    if not quotas:
        return ((rented(columns), ()),)
    types, regions = columns.instance_types, columns.regions
    falls = np.zeros((len(columns), len(quotas)), np.bool_)
    for number, quota in enumerate(quotas):
        of_type = np.array([_names(quota, each) for each in types])
        of_region = np.array(
            [
                provider == quota.provider and (not quota.region or region == quota.region)
                for provider, region in regions
            ]
        )
        if len(columns):
            falls[:, number] = of_type[columns.type_index] & of_region[columns.region_index]
    kinds, which = np.unique(falls, axis=0, return_inverse=True)
    # One for all parts, and that of single plans, so that machines are estimated once whoever offers them.
    shapes = arranged(columns).shapes
    markets = []
    for part, signature in enumerate(kinds):
        at = np.flatnonzero(which.reshape(-1) == part)
        most = np.full(len(types), np.inf)
        draws: list[Draw] = []
        for number in np.flatnonzero(signature).tolist():
            each = _each(quotas[number], types)
            # What cannot be counted cannot be had; what is too large for the quota stays, to name the way in.
            most[np.isnan(each)] = 0.0
            draws.append((number, each))
        chosen = columns if len(at) == len(columns) else _some(columns, at)
        # Not kept among the arranged snapshots: it would push them out.
        part_of_it = replace(arranged.__wrapped__(chosen), shapes=shapes)
        markets.append(
            (
                Market(snapshot=part_of_it, node_limit=most, power_usd_per_node_hour=np.zeros(len(types))),
                tuple(draws),
            )
        )
    return tuple(markets)


def _some(columns: Columns, at: np.ndarray) -> Columns:
    return replace(
        columns,
        offers=[columns.offer(int(i)) for i in at],
        type_index=columns.type_index[at],
        region_index=columns.region_index[at],
        kind_index=columns.kind_index[at],
        usd_per_hour=columns.usd_per_hour[at],
        interruptions_per_hour=columns.interruptions_per_hour[at],
        plannable=columns.plannable[at],
        verified=columns.verified[at],
    )


def _each(quota: Quota, types: tuple[InstanceType, ...]) -> Floats:
    """What one node of each type takes of a quota; nan where its vCPUs are not known."""
    if quota.accelerators is not None:
        return np.array([float(each.accelerator_count) for each in types])
    return np.array([np.nan if each.vcpus is None else each.vcpus for each in types])


def _names(quota: Quota, each: InstanceType) -> bool:
    """Whether the quota speaks of this instance type."""
    if each.provider != quota.provider:
        return False
    if quota.instance_type:
        return each.name == quota.instance_type
    if quota.accelerator:
        return each.accelerator == quota.accelerator
    return not quota.family or is_of_family(each.name, quota.family)
