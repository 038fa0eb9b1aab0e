"""Picking elements out of a table of configurations, always by the same rule, and putting them into words."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.offer import Offer
from planner.answer import Choice, Cost, Hours
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.cost.bill import Bill
from planner.kept import kept_per_snapshot

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def cost_micros(table: Configurations) -> NDArray[np.float64]:
    """Expected cost in whole micro-dollars: below that, costs are equal and time decides. Not to be written to."""
    return _cost_micros(table)


#: One plan asks a dozen times, of the one table or the other.
@lru_cache(maxsize=4)
def _cost_micros(table: Configurations) -> NDArray[np.float64]:
    found = np.rint(table.bill.cost_usd * 1e6)
    found.flags.writeable = False
    return found


def cheapest(table: Configurations, among: Flags) -> int | None:
    """The cheapest configuration of those marked; of equal ones the fastest, then the first in catalogue order."""
    return _least(among, cost_micros(table), table.bill.hours_kept)


def fastest(table: Configurations, among: Flags) -> int | None:
    """The configuration with the least hours at the asked confidence; of equal ones the cheapest."""
    return _least(among, table.bill.hours_kept, cost_micros(table))


def cleanest(table: Configurations, among: Flags) -> int | None:
    """The configuration of least carbon, of those whose carbon is known; of equal ones the cheapest, then the fastest."""
    return _least(among & ~np.isnan(table.carbon_kg), carbon_mg(table), cost_micros(table), table.bill.hours_kept)


def carbon_mg(table: Configurations) -> NDArray[np.float64]:
    """Carbon in whole milligrams: below that, amounts are equal and cost decides; nan where unknown."""
    return np.rint(table.carbon_kg * 1e6)


def soonest(table: Configurations, among: Flags) -> int | None:
    """The fastest configuration as an objective: hours that differ by less than 4 ms are equal, and cost decides."""
    return _least(among, whole_hours(table), cost_micros(table), table.bill.hours_kept)


def whole_hours(table: Configurations) -> NDArray[np.float64]:
    """Hours with the asked confidence in whole millionths."""
    return np.rint(table.bill.hours_kept * 1e6)


#: By what a job wants least of: how one configuration is picked.
BEST = {"cost": cheapest, "time": soonest, "carbon": cleanest}


def _least(among: Flags, *keys: NDArray[np.float64]) -> int | None:
    left = np.flatnonzero(among)
    return first_least(left, *keys) if len(left) else None


def first_least(left: Ints, *keys: NDArray[np.float64]) -> int:
    """Of these elements, at least one, that of the least first key; of equal ones by the next key, then the first."""
    for key in keys:
        values = key[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    return int(left[0])


def pareto(table: Configurations, among: Flags) -> Ints:
    """Elements that no other beats in both cost and confident hours, fastest first."""
    cost, hours = cost_micros(table), table.bill.hours_kept
    left: Ints = np.flatnonzero(among)
    if not len(left):
        return left
    # What is slower than the cheapest is beaten by it, which leaves less to sort.
    left = left[hours[left] <= hours[left[np.argmin(cost[left])]]]
    left = left[_no_dearer_than_faster_ones(cost[left], hours[left])]
    # lexsort is stable: among equals the first in catalogue order stands first, as in `cheapest`.
    left = left[np.lexsort((cost[left], hours[left]))]
    best_before = np.concatenate(([np.inf], np.minimum.accumulate(cost[left])[:-1]))
    return left[cost[left] < best_before]


def _no_dearer_than_faster_ones(cost: NDArray[np.float64], hours: NDArray[np.float64]) -> Ints:
    """Few elements, in their order, with all of the frontier among them: what one sort by time alone does not rule out.

    Those before an element in any order by hours are as fast, so that one of the frontier costs no more than each of them.
    """
    order = np.argsort(hours)
    return np.sort(order[cost[order] <= np.minimum.accumulate(cost[order])])


@kept_per_snapshot(2048)
def _offer(columns: Columns, index: int) -> Offer:
    """A row of the snapshot as an object: plans and what stands beside them name the same few hundred again and again."""
    return columns.offer(index)


def in_words(found: Candidates, table: Configurations, index: int) -> Choice:
    """Configuration `index` of a table of these candidates."""
    market = found.question.markets[int(table.market[index])]
    snapshot, place, bill = market.snapshot, int(table.place[index]), table.bill
    instance_type = market.columns.instance_types[int(snapshot.type_index[place])]
    return Choice(
        offer=_offer(market.columns, int(snapshot.original[place])),
        instance_type=instance_type,
        accelerator=instance_type.accelerator,
        accelerators_per_node=float(instance_type.accelerator_count),
        nodes=int(table.nodes[index]),
        cost=_cost(bill, index),
        hours=Hours(
            expected=float(bill.hours[index]),
            median=float(bill.hours_median[index]),
            confident=float(bill.hours_kept[index]),
            p95=float(bill.hours_p95[index]),
        ),
    )


def _cost(bill: Bill, index: int) -> Cost:
    """The bill in micro-dollars: the total is rounded once, and compute takes what rounding the parts would shift."""
    parts = (bill.cost_usd, bill.storage_usd, bill.egress_usd, bill.power_usd, bill.setup_usd)
    total, storage, egress, power, setup = (micros(part[index]) for part in parts)
    return Cost(
        compute=total - storage - egress - power - setup,
        storage=storage,
        egress=egress,
        power=power,
        setup=setup,
        median=micros(bill.cost_median_usd[index]),
        p95=micros(bill.cost_p95_usd[index]),
    )


def micros(usd: float) -> int:
    """Dollars out of an array as micro-dollars, half to even."""
    return round(float(usd) * 1e6)
