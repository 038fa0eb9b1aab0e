"""Savings of a later deadline, cost of a shorter one, and headroom of the chosen price: exact, from the frontier.

The dual of the deadline row of the relaxed choice is the slope of the lower convex hull of
(hours, cost) at the deadline; steps come from the frontier itself.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.configuration_choice import cost_micros
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.model.outcome import Choice, SensitivityRanges

Ints = NDArray[np.int64]

#: For a plan of least time or carbon: cost does not choose it, so no deadline would make it cheaper.
NOT_OF_COST = SensitivityRanges(deadline_usd_per_hour=0.0, next_cheaper=None, next_faster=None, holds_until=None)


def sensitivity(
    table: Configurations, frontier: Ints, chosen: int, deadline_hours: float | None, holds_until: int | None
) -> SensitivityRanges:
    """Steps and slopes around element `chosen`; `frontier` is sorted by hours and free of deadline and budget."""
    mine, mine_hours = float(cost_micros(table)[chosen]), float(table.cost_breakdown.hours_at_confidence[chosen])
    return around(table, frontier, (mine, mine_hours), deadline_hours, holds_until)


def around(
    table: Configurations,
    frontier: Ints,
    mine: tuple[float, float],
    deadline_hours: float | None,
    holds_until: int | None = None,
) -> SensitivityRanges:
    """Steps to configurations that are cheaper or faster than a plan of these (micro-dollars, confident hours).

    For a plan of several phases these are steps to plans on one configuration: savings are then lower bounds, and extra costs
    upper bounds. The first choice of a ladder may be dearer than another configuration in time, which is no reason for
    a longer deadline.
    """
    hours, cost = table.cost_breakdown.hours_at_confidence[frontier], cost_micros(table)[frontier]
    micros, mine_hours = mine
    allowed_hours = math.inf if deadline_hours is None else max(mine_hours, deadline_hours)
    slower = np.flatnonzero((cost < micros) & (hours > allowed_hours))
    faster = np.flatnonzero(hours < mine_hours)
    return SensitivityRanges(
        deadline_usd_per_hour=0.0 if deadline_hours is None else hull_slope(hours, cost / 1e6, deadline_hours),
        next_cheaper=(deadline_for(hours[slower[0]]), round(micros - cost[slower[0]])) if len(slower) else None,
        next_faster=(deadline_for(hours[faster[-1]]), round(cost[faster[-1]] - micros)) if len(faster) else None,
        holds_until=holds_until,
    )


def deadline_for(hours: float) -> float:
    """The least deadline of nine significant digits, as answers show it, that a run of `hours` meets."""
    step = 10.0 ** (math.floor(math.log10(hours)) - 8)
    rounded = float(f"{hours:.9g}")
    return rounded if rounded >= hours else float(f"{rounded + step:.9g}")


def break_even_price(words: Choice, rival_micros: float | None) -> int | None:
    """The price per node-hour, in micro-dollars, at which the cheapest rival ties with the choice.

    None without a rival, or if nothing is paid by the hour.
    """
    paid = words.cost.compute + words.cost.setup
    if rival_micros is None or paid == 0:
        return None
    room = max(0.0, rival_micros - words.cost.expected)
    return round(words.offer.usd_micros_per_hour * (1 + room / paid))


def hull_slope(hours: NDArray[np.float64], usd: NDArray[np.float64], deadline_hours: float) -> float:
    """USD that one more hour of deadline saves in the relaxed choice: the slope of the lower hull there (>= 0)."""
    hull: list[tuple[float, float]] = []
    for point in zip(hours.tolist(), usd.tolist(), strict=True):
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    for (t0, c0), (t1, c1) in pairwise(hull):
        if t0 <= deadline_hours < t1:
            return max(0.0, (c0 - c1) / (t1 - t0))
    return 0.0


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
