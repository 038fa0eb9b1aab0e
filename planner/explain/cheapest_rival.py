"""The cheapest run on any other offer: the cost that the chosen configuration must stay below.

Offers of other machines, and screened offers of this one, are in the table with their costs. Another offer of the same
cell (machine shape, price kind and provider) that is not in the table is dominated by one that is. If that is not the
chosen offer, the dominated one costs no less than a run in the table. If it is dominated by the chosen offer alone, it
takes no fewer hours, and its extra cost is at least that of its higher price: on n nodes it costs no less than
cost(n) + compute(n) x (price / chosen price - 1). Only offers for which this bound is below the table are priced. None is
priced where one of them is the chosen offer in another place, with the same price and the same figures of its place: its
runs cost the same as those of the chosen offer, and by the same bound no other run costs less.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates, allowed_in_the_cell, on_offers, over
from gpuplan.planner.candidates.configuration_carbon import weighs_carbon
from gpuplan.planner.candidates.configuration_choice import cost_micros

Marks = NDArray[np.uint32]
Ints = NDArray[np.int64]

#: Relative rounding error of two sums that are equal.
_ROUNDING = 1e-9


def cheapest_rival(candidates: Candidates, broken: Marks, chosen: int) -> float | None:
    """The least cost within deadline and budget on any offer other than that of configuration `chosen`, in micro-dollars.

    `broken` has the requirement bits of each configuration of the table. None if there is no such run.
    """
    job, table = candidates.question.job, candidates.table
    number, place = int(table.market[chosen]), int(table.place[chosen])
    chosen_offer = (table.place == place) & (table.market == number)
    feasible = broken == 0
    least = float(cost_micros(table)[feasible & ~chosen_offer].min(initial=np.inf))
    runs = np.flatnonzero(feasible & chosen_offer)
    places = _places_that_may_cost_less(candidates, number, place, runs, least)
    if _any_alike(candidates, number, place, places):
        least = min(least, float(cost_micros(table)[runs].min(initial=np.inf)))
    elif len(places):
        elsewhere = on_offers(candidates, number, places).whole()
        in_time = over(elsewhere, job.deadline_hours, job.budget_usd) == 0
        least = min(least, float(cost_micros(elsewhere)[in_time].min(initial=np.inf)))
    return None if least == np.inf else least


def _places_that_may_cost_less(candidates: Candidates, number: int, place: int, runs: Ints, least: float) -> Ints:
    """The other allowed places of a cell where a run may cost less than `least`; `runs` are the feasible ones at `place`."""
    snapshot, table = candidates.question.markets[number].snapshot, candidates.table
    allowed = allowed_in_the_cell(candidates, number, place)
    places: Ints = allowed[allowed != place]
    price = float(snapshot.usd_per_hour[place])
    if price == 0 or candidates.question.origin is not None:
        return places
    dearer = snapshot.usd_per_hour[places] / price - 1
    at_least = cost_micros(table)[runs] + dearer[:, None] * (table.cost_breakdown.compute_usd[runs] * 1e6)
    return np.asarray(places[at_least.min(axis=1) <= least * (1 + _ROUNDING)], np.int64)


def _any_alike(candidates: Candidates, number: int, place: int, places: Ints) -> bool:
    """Whether at one of these places of its cell a run has exactly the cost and hours that it has at `place`.

    False for owned machines, each of which has its own hours, for running jobs, and where carbon may exclude a place.
    """
    question, snapshot, costs = (
        candidates.question,
        candidates.question.markets[number].snapshot,
        candidates.costs[number],
    )
    if question.markets[number].owned or question.origin is not None or weighs_carbon(question.job):
        return False
    region = snapshot.region_index
    return any(
        snapshot.usd_per_hour[other] == snapshot.usd_per_hour[place]
        and snapshot.type_index[other] == snapshot.type_index[place]
        and snapshot.rate_level[other] == snapshot.rate_level[place]
        and snapshot.zones[other] == snapshot.zones[place]
        and costs.egress_usd[region[other]] == costs.egress_usd[region[place]]
        and costs.storage_usd_per_hour[region[other]] == costs.storage_usd_per_hour[region[place]]
        for other in places.tolist()
    )
