"""How far going on stays the best: the price per node-hour, and the slowness, at which something else ties with it.

Going on costs what follows its price, and takes what follows its speed, wholly; any other plan follows them in part or
not at all. So as either rises, going on wins up to a point and never beyond: the point where the best plan without it,
or with it for a while, ties. First the best single configuration says how far at most; if a plan of phases wins before
that, halving finds where.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.offer import Offer
from planner.candidates.configurations import Configurations, joined, of_a_share
from planner.candidates.gather import Candidates, every_offer_of, over
from planner.candidates.market import Market
from planner.choice import cheapest, cost_micros
from planner.phases.cheapest import cheapest_course
from planner.replan.answer import Holds

#: Rounds of halving: the point is found to a thousandth of the way to where single configurations tie.
_ROUNDS = 10
_CLOSED_ROUNDS = 40
#: Slower or dearer than this, nothing is said: whatever it is, going on is best.
_FURTHEST = 100.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rivals:
    """Everything but the machines that run (market `number`): whole jobs and shares."""

    found: Candidates
    number: int
    table: Configurations
    shares: Configurations

    def alone(self, found: Candidates) -> bool:
        """Whether going on keeps all requirements and costs no more than any single rival."""
        stays, table = _stays(found, self.number), self._left_from(found, self.table)
        job = found.question.job
        if not len(stays) or over(stays, job.deadline_hours, job.budget_usd)[0]:
            return False
        best = cheapest(table, over(table, job.deadline_hours, job.budget_usd) == 0)
        return best is None or float(cost_micros(stays)[0]) <= float(cost_micros(table)[best])

    def wins(self, found: Candidates) -> bool:
        """Whether going on is the best of all plans, phases and nets among them."""
        if not self.alone(found):
            return False
        stays = _stays(found, self.number)
        # Its market is the last: tables stay in the order of their markets.
        table = joined([self._left_from(found, self.table), stays])
        shares = joined([self._left_from(found, self.shares), stays])
        best = cheapest_course(replace(found, table=table, shares=shares), len(table) - 1)
        return best is not None and len(best.course.phases) == 1

    def _left_from(self, found: Candidates, table: Configurations) -> Configurations:
        """Rivals as they cost if machines are left that cost as in `found`: these write the checkpoint."""
        now, then = self.found.question.origin, found.question.origin
        extra = 0.0 if now is None or then is None else then.write_usd - now.write_usd
        names = ("cost_usd", "cost_median_usd", "cost_p95_usd", "setup_usd")
        dearer = {name: getattr(table.bill, name) + extra for name in names}
        return replace(table, bill=replace(table.bill, **dearer)) if extra else table


def holds(found: Candidates, number: int) -> Holds:
    """Up to which price and slowness of market `number`, which is up and best, it stays the best."""
    market = found.question.markets[number]
    others, shares = found.table.market != number, found.shares.market != number
    rivals = _Rivals(found=found, number=number, table=found.table.take(others), shares=found.shares.take(shares))
    slower = _furthest(rivals, lambda factor: _slowed(found, number, factor))
    price = None
    if market.columns.usd_per_hour[0] > 0 and not market.owned:
        apart = _without_its_offer(found, rivals)
        dearer = _furthest(apart, lambda factor: _dearer(found, number, factor))
        price = None if dearer is None else int(market.columns.offer(0).usd_micros_per_hour * dearer)
    return Holds(price=price, slower=slower)


def _furthest(rivals: _Rivals, changed: Callable[[float], Candidates]) -> float | None:
    """The largest factor at which going on still wins; None if it does at any."""
    if rivals.wins(changed(_FURTHEST)):
        return None
    low, high = 1.0, _FURTHEST
    for _ in range(_CLOSED_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if rivals.alone(changed(middle)) else (low, middle)
    if rivals.wins(changed(low)):
        return low
    low, high = 1.0, low
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if rivals.wins(changed(middle)) else (low, middle)
    return low


def _stays(found: Candidates, number: int) -> Configurations:
    """The job to its end on the machines that run."""
    stays = of_a_share(found.question, number, found.screened[number], found.estimated[number], found.costs[number])
    return stays.take(stays.broken == 0).whole()


def _slowed(found: Candidates, number: int, factor: float) -> Candidates:
    ready = found.estimated[number]
    names = ("hours", "hours_with_goodput", "step_seconds")
    estimates = replace(ready.estimates, **{name: getattr(ready.estimates, name) * factor for name in names})
    slow = replace(ready, estimates=estimates)
    return replace(found, estimated=(*found.estimated[:number], slow, *found.estimated[number + 1 :]))


def _dearer(found: Candidates, number: int, factor: float) -> Candidates:
    """Everything at the prices of a catalogue in which the one offer costs so many times more."""
    markets, origin = found.question.markets, found.question.origin
    offer = markets[number].columns.offer(0)
    question = replace(
        found.question,
        markets=tuple(each if each.owned else _at(each, _places(each, offer), factor) for each in markets),
        origin=None if origin is None else replace(origin, write_usd=origin.write_usd * factor),
    )
    return replace(found, question=question)


def _at(market: Market, places: NDArray[np.int64], factor: float) -> Market:
    if not len(places):
        return market
    usd = market.snapshot.usd_per_hour.copy()
    usd[places] *= factor
    return replace(market, snapshot=replace(market.snapshot, usd_per_hour=usd))


def _places(market: Market, offer: Offer) -> NDArray[np.int64]:
    """Where an offer stands in a market."""
    columns, snapshot = market.columns, market.snapshot
    types = [
        i
        for i, each in enumerate(columns.instance_types)
        if (each.provider, each.name) == (offer.provider, offer.instance_type)
    ]
    regions = [i for i, each in enumerate(columns.regions) if each == (offer.provider, offer.region)]
    there = np.isin(snapshot.type_index, types) & np.isin(snapshot.region_index, regions)
    kept = [i for i in np.flatnonzero(there).tolist() if columns.offer(int(snapshot.original[i])).key == offer.key]
    return np.array(kept, np.int64)


def _without_its_offer(found: Candidates, rivals: _Rivals) -> _Rivals:
    """The rivals less the same offer, whose price rises too, with the offers of the machine that it kept out."""
    offer = found.question.markets[rivals.number].columns.offer(0)
    parts, shares = [], []
    for number, market in enumerate(found.question.markets[: rivals.number]):
        table, more = (each.take(each.market == number) for each in (rivals.table, rivals.shares))
        mine = [] if market.owned else sorted(set(_places(market, offer).tolist()) & set(more.place.tolist()))
        for place in mine:
            again = every_offer_of(found, number, place)
            known = set(more.place.tolist())
            again = again.take(np.array([each not in known for each in again.place.tolist()], np.bool_))
            more, table = joined([more, again]), joined([table, again.whole()])
            more, table = more.take(more.place != place), table.take(table.place != place)
        parts.append(table)
        shares.append(more)
    return replace(rivals, table=joined(parts), shares=joined(shares))
