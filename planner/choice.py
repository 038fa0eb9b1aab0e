"""Picking elements out of a table of configurations, always by the same rule, and putting them into words."""

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice, Cost, Hours
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.cost.bill import Bill

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def cost_micros(table: Configurations) -> NDArray[np.float64]:
    """Expected cost in whole micro-dollars: below that, costs are equal and time decides."""
    return np.rint(table.bill.cost_usd * 1e6)


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
    if not len(left):
        return None
    for key in keys:
        values = key[left]
        left = left[values == values.min()]
    return int(left[0])


def pareto(table: Configurations, among: Flags) -> Ints:
    """Elements that no other beats in both cost and confident hours, fastest first."""
    left = np.flatnonzero(among)
    cost = cost_micros(table)[left]
    # lexsort is stable: among equals the first in catalogue order stands first, as in `cheapest`.
    order = np.lexsort((cost, table.bill.hours_kept[left]))
    left, cost = left[order], cost[order]
    best_before = np.concatenate(([np.inf], np.minimum.accumulate(cost)[:-1]))
    return left[cost < best_before]


def in_words(found: Candidates, table: Configurations, index: int) -> Choice:
    """Configuration `index` of a table of these candidates."""
    market = found.question.markets[int(table.market[index])]
    snapshot, place, bill = market.snapshot, int(table.place[index]), table.bill
    instance_type = market.columns.instance_types[int(snapshot.type_index[place])]
    return Choice(
        offer=market.columns.offer(int(snapshot.original[place])),
        instance_type=instance_type,
        accelerator=instance_type.accelerator,
        accelerators_per_node=float(instance_type.accelerator_count),
        nodes=int(table.nodes[index]),
        cost=_cost(bill, index),
        hours=Hours(
            expected=float(bill.hours[index]),
            confident=float(bill.hours_kept[index]),
            p95=float(bill.hours_p95[index]),
        ),
    )


def _cost(bill: Bill, index: int) -> Cost:
    """The bill in micro-dollars: the total is rounded once, and compute takes what rounding the parts would shift."""
    storage, egress = micros(bill.storage_usd[index]), micros(bill.egress_usd[index])
    power, setup = micros(bill.power_usd[index]), micros(bill.setup_usd[index])
    return Cost(
        compute=micros(bill.cost_usd[index]) - storage - egress - power - setup,
        storage=storage,
        egress=egress,
        power=power,
        setup=setup,
        p95=micros(bill.cost_p95_usd[index]),
    )


def micros(usd: float) -> int:
    """Dollars out of an array as micro-dollars, half to even."""
    return round(float(usd) * 1e6)
