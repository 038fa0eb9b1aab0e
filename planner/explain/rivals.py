"""What the chosen configuration has to stay below: the cheapest run on any other offer.

Offers of other machines, and those of this one that the screening kept, stand in the table with their costs. An offer of
the same cell (machine shape, price kind and provider) that was screened out is equalled or bettered by one that was kept:
by another than the chosen one, and then it costs no less than a run in the table; or by the chosen one alone. Then it
takes no fewer hours and costs at least as much more as its price is higher: on n nodes no less than
cost(n) + compute(n) x (price / chosen price - 1). Only offers for which that leaves room below the table are priced, and
none where one of them is the chosen one in another place, alike in price and in all that the place decides: its runs cost
what the chosen one's do, and by the same bound no other run costs less.
"""

import numpy as np
from numpy.typing import NDArray

from planner.candidates.carbon import weighs_carbon
from planner.candidates.gather import Candidates, allowed_in_the_cell, on_offers, over
from planner.choice import cost_micros

Marks = NDArray[np.uint16]
Ints = NDArray[np.int64]

#: What rounding may make of two sums that are equal.
_ROUNDING = 1e-9


def cheapest_rival(found: Candidates, broken: Marks, chosen: int) -> float | None:
    """The least cost within deadline and budget on any other offer than that of configuration `chosen`, in micro-dollars.

    `broken` has the requirement bits of each configuration of the table. None if there is no such run.
    """
    job, table = found.question.job, found.table
    number, place = int(table.market[chosen]), int(table.place[chosen])
    chosen_offer = (table.place == place) & (table.market == number)
    feasible = broken == 0
    least = float(cost_micros(table)[feasible & ~chosen_offer].min(initial=np.inf))
    runs = np.flatnonzero(feasible & chosen_offer)
    places = _places_that_may_cost_less(found, number, place, runs, least)
    if _any_alike(found, number, place, places):
        least = min(least, float(cost_micros(table)[runs].min(initial=np.inf)))
    elif len(places):
        elsewhere = on_offers(found, number, places).whole()
        in_time = over(elsewhere, job.deadline_hours, job.budget_usd) == 0
        least = min(least, float(cost_micros(elsewhere)[in_time].min(initial=np.inf)))
    return None if least == np.inf else least


def _places_that_may_cost_less(found: Candidates, number: int, place: int, runs: Ints, least: float) -> Ints:
    """The other allowed places of a cell on which a run may cost less than `least`; `runs` are the feasible ones at `place`."""
    snapshot, table = found.question.markets[number].snapshot, found.table
    allowed = allowed_in_the_cell(found, number, place)
    places: Ints = allowed[allowed != place]
    price = float(snapshot.usd_per_hour[place])
    if price == 0 or found.question.origin is not None:
        return places
    dearer = snapshot.usd_per_hour[places] / price - 1
    at_least = cost_micros(table)[runs] + dearer[:, None] * (table.bill.compute_usd[runs] * 1e6)
    return np.asarray(places[at_least.min(axis=1) <= least * (1 + _ROUNDING)], np.int64)


def _any_alike(found: Candidates, number: int, place: int, places: Ints) -> bool:
    """Whether at one of these places of its cell a run costs and takes exactly what it does at `place`.

    Never said of own machines, of which each has its own hours, of jobs under way, and where carbon may rule a place out.
    """
    question, snapshot, costs = found.question, found.question.markets[number].snapshot, found.costs[number]
    if question.markets[number].owned or question.origin is not None or weighs_carbon(question.job):
        return False
    region = snapshot.region_index
    return any(
        snapshot.usd_per_hour[each] == snapshot.usd_per_hour[place]
        and snapshot.type_index[each] == snapshot.type_index[place]
        and snapshot.rate_level[each] == snapshot.rate_level[place]
        and costs.egress_usd[region[each]] == costs.egress_usd[region[place]]
        and costs.storage_usd_per_hour[region[each]] == costs.storage_usd_per_hour[region[place]]
        for each in places.tolist()
    )
