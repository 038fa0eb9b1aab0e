"""Selection of configurations from a table by fixed tie-breaking rules, and their conversion to `Choice`."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.cost.cost_breakdown import CostBreakdown
from gpuplan.planner.cost.cost_quantiles import cost_spread
from gpuplan.planner.model.outcome import Choice, CostMicros, CostSpread
from gpuplan.planner.model.shared import Hours
from gpuplan.planner.snapshot_cache import cached_per_snapshot

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def cost_micros(table: Configurations) -> NDArray[np.float64]:
    """Expected cost in whole micro-dollars; smaller differences count as equal."""
    return np.rint(table.cost_breakdown.cost_usd * 1e6)


def cheapest(table: Configurations, among: Flags) -> int | None:
    """The cheapest marked configuration; of equal ones the fastest, then the first in catalogue order."""
    return _least(among, cost_micros(table), table.cost_breakdown.hours_at_confidence)


def fastest(table: Configurations, among: Flags) -> int | None:
    """The configuration with the fewest hours at the requested confidence; of equal ones the cheapest."""
    return _least(among, table.cost_breakdown.hours_at_confidence, cost_micros(table))


def cleanest(table: Configurations, among: Flags) -> int | None:
    """The configuration with the least known carbon; of equal ones the cheapest, then the fastest."""
    return _least(
        among & ~np.isnan(table.carbon_kg),
        carbon_mg(table),
        cost_micros(table),
        table.cost_breakdown.hours_at_confidence,
    )


def carbon_mg(table: Configurations) -> NDArray[np.float64]:
    """Carbon in whole milligrams; smaller differences count as equal; nan where unknown."""
    return np.rint(table.carbon_kg * 1e6)


def soonest(table: Configurations, among: Flags) -> int | None:
    """The fastest configuration as an objective: hours that differ by less than 4 ms are equal, then cost decides."""
    return _least(among, whole_hours(table), cost_micros(table), table.cost_breakdown.hours_at_confidence)


def whole_hours(table: Configurations) -> NDArray[np.float64]:
    """Hours at the requested confidence in whole millionths of an hour; smaller differences count as equal."""
    return np.rint(table.cost_breakdown.hours_at_confidence * 1e6)


#: The selection rule of each objective.
BEST = {"cost": cheapest, "time": soonest, "carbon": cleanest}


def _least(among: Flags, *keys: NDArray[np.float64]) -> int | None:
    left = np.flatnonzero(among)
    return first_least(left, *keys) if len(left) else None


def first_least(left: Ints, *keys: NDArray[np.float64]) -> int:
    """The element with the least first key; of equal ones by the next key, then the first. `left` must not be empty."""
    for key in keys:
        values = key[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    return int(left[0])


def pareto(table: Configurations, among: Flags) -> Ints:
    """Elements that no other dominates in cost and in hours at the requested confidence, fastest first."""
    cost, hours = cost_micros(table), table.cost_breakdown.hours_at_confidence
    left: Ints = np.flatnonzero(among)
    if not len(left):
        return left
    # The cheapest element dominates all slower ones, which leaves less to sort.
    left = left[hours[left] <= hours[left[np.argmin(cost[left])]]]
    left = left[_no_dearer_than_faster_ones(cost[left], hours[left])]
    # lexsort is stable: among equals the first in catalogue order comes first, as in `cheapest`.
    left = left[np.lexsort((cost[left], hours[left]))]
    best_before = np.concatenate(([np.inf], np.minimum.accumulate(cost[left])[:-1]))
    return left[cost[left] < best_before]


def _no_dearer_than_faster_ones(cost: NDArray[np.float64], hours: NDArray[np.float64]) -> Ints:
    """A superset of the frontier, in the original order: elements that cost no more than every faster one.

    Elements before another in an order by hours are at least as fast, so an element of the frontier costs no more than
    each of them.
    """
    order = np.argsort(hours)
    return np.sort(order[cost[order] <= np.minimum.accumulate(cost[order])])


@cached_per_snapshot(2048)
def _offer(columns: Columns, index: int) -> Offer:
    """A row of the snapshot as an object; cached because plans and alternatives name the same few hundred offers."""
    return columns.offer(index)


def offer_of(market: Market, place: int) -> tuple[Offer, InstanceType]:
    """The offer at a place of a market, and its instance type."""
    snapshot = market.snapshot
    offer = _offer(market.columns, int(snapshot.original[place]))
    return offer, market.columns.instance_types[int(snapshot.type_index[place])]


def in_words(candidates: Candidates, table: Configurations, index: int) -> Choice:
    """Configuration `index` of a table of these candidates as a `Choice`."""
    market = candidates.question.markets[int(table.market[index])]
    cost_breakdown = table.cost_breakdown
    offer, instance_type = offer_of(market, int(table.place[index]))
    return Choice(
        offer=offer,
        instance_type=instance_type,
        accelerator=instance_type.accelerator,
        accelerators_per_node=float(instance_type.accelerator_count),
        nodes=int(table.nodes[index]),
        cost=_cost(cost_breakdown, index),
        spread=_spread(table, index, offer),
        hours=Hours(
            expected=float(cost_breakdown.hours[index]),
            median=float(cost_breakdown.hours_median[index]),
            confident=float(cost_breakdown.hours_at_confidence[index]),
            p95=float(cost_breakdown.hours_p95[index]),
        ),
    )


def _cost(cost_breakdown: CostBreakdown, index: int) -> CostMicros:
    """The cost in micro-dollars: the total is rounded once, and compute absorbs the rounding of the other parts."""
    parts = (
        cost_breakdown.cost_usd,
        cost_breakdown.storage_usd,
        cost_breakdown.egress_usd,
        cost_breakdown.power_usd,
        cost_breakdown.setup_usd,
    )
    total, storage, egress, power, setup = (micros(part[index]) for part in parts)
    return CostMicros(
        compute=total - storage - egress - power - setup,
        storage=storage,
        egress=egress,
        power=power,
        setup=setup,
        median=micros(cost_breakdown.cost_median_usd[index]),
        p95=micros(cost_breakdown.cost_p95_usd[index]),
    )


def _spread(table: Configurations, index: int, offer: Offer) -> CostSpread | None:
    """The spread of the cost over the hours, where that of the price is still to be added."""
    if offer.price_estimate is None:
        return None
    return cost_spread(table.cost_breakdown, index, one_off_usd=table.one_off_usd(index))


def micros(usd: float) -> int:
    """Dollars as whole micro-dollars, rounded half to even."""
    return round(float(usd) * 1e6)
