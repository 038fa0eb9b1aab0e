"""How far continuing stays optimal: the price per node-hour, and the slowdown, at which something else ties with it.

The cost of continuing is proportional to its price, and its hours to its speed; those of any other plan depend on them in
part or not at all. So as either rises, continuing wins up to one point and never beyond it: the point where the best plan
without it, or with it for a while, ties. The best single configuration gives an upper limit; if a plan of phases wins
before that, bisection finds the point.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.candidates.candidate_set import Candidates, every_offer_of, over
from gpuplan.planner.candidates.configuration_choice import cheapest, cost_micros
from gpuplan.planner.candidates.configurations import Configurations, joined, of_a_share
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.replan.replan_answer import StaysOptimal
from gpuplan.planner.strategies.strategy_choice import cheapest_schedule

#: Rounds of bisection: the point is accurate to a thousandth of the way to where single configurations tie.
_ROUNDS = 10
_CLOSED_ROUNDS = 40
#: Beyond this factor nothing is stated: continuing is the best in any case.
_FURTHEST = 100.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rivals:
    """All configurations except the machines that run (market `number`): whole jobs and shares."""

    candidates: Candidates
    number: int
    table: Configurations
    shares: Configurations

    def alone(self, candidates: Candidates) -> bool:
        """Whether continuing meets all requirements and costs no more than any single rival."""
        stays, table = _stays(candidates, self.number), self._left_from(candidates, self.table)
        job = candidates.question.job
        if not len(stays) or over(stays, job.deadline_hours, job.budget_usd)[0]:
            return False
        best = cheapest(table, over(table, job.deadline_hours, job.budget_usd) == 0)
        return best is None or float(cost_micros(stays)[0]) <= float(cost_micros(table)[best])

    def wins(self, candidates: Candidates) -> bool:
        """Whether continuing is the best of all plans, phases and standbys included."""
        if not self.alone(candidates):
            return False
        stays = _stays(candidates, self.number)
        # Its market is the last: tables stay in the order of their markets.
        table = joined([self._left_from(candidates, self.table), stays])
        shares = joined([self._left_from(candidates, self.shares), stays])
        best = cheapest_schedule(replace(candidates, table=table, shares=shares), len(table) - 1)
        return best is not None and len(best.schedule.phases) == 1

    def _left_from(self, candidates: Candidates, table: Configurations) -> Configurations:
        """Rivals with the cost of leaving the present machines, which write the checkpoint, at their changed price."""
        now, then = self.candidates.question.origin, candidates.question.origin
        extra = 0.0 if now is None or then is None else then.write_usd - now.write_usd
        names = ("cost_usd", "cost_median_usd", "cost_p95_usd", "setup_usd")
        dearer = {name: getattr(table.cost_breakdown, name) + extra for name in names}
        return replace(table, cost_breakdown=replace(table.cost_breakdown, **dearer)) if extra else table


def stays_optimal_until(candidates: Candidates, number: int) -> StaysOptimal:
    """The price and slowdown of market `number`, which is up and best, up to which it stays the best."""
    market = candidates.question.markets[number]
    others, shares = candidates.table.market != number, candidates.shares.market != number
    rivals = _Rivals(
        candidates=candidates, number=number, table=candidates.table.take(others), shares=candidates.shares.take(shares)
    )
    slower = _furthest(rivals, lambda factor: _slowed(candidates, number, factor))
    price = None
    if market.columns.usd_per_hour[0] > 0 and not market.owned:
        apart = _without_its_offer(candidates, rivals)
        dearer = _furthest(apart, lambda factor: _dearer(candidates, number, factor))
        price = None if dearer is None else int(market.columns.offer(0).usd_micros_per_hour * dearer)
    return StaysOptimal(price=price, slower=slower)


def _furthest(rivals: _Rivals, changed: Callable[[float], Candidates]) -> float | None:
    """The largest factor at which continuing still wins; None if it wins at any."""
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


def _stays(candidates: Candidates, number: int) -> Configurations:
    """The job to its end on the machines that run."""
    stays = of_a_share(
        candidates.question, number, candidates.screened[number], candidates.estimated[number], candidates.costs[number]
    )
    return stays.take(stays.broken == 0).whole()


def _slowed(candidates: Candidates, number: int, factor: float) -> Candidates:
    ready = candidates.estimated[number]
    names = ("hours", "hours_with_goodput", "step_seconds")
    estimates = replace(ready.estimates, **{name: getattr(ready.estimates, name) * factor for name in names})
    slow = replace(ready, estimates=estimates)
    return replace(candidates, estimated=(*candidates.estimated[:number], slow, *candidates.estimated[number + 1 :]))


def _dearer(candidates: Candidates, number: int, factor: float) -> Candidates:
    """All candidates at the prices of a catalogue in which this one offer costs `factor` times as much."""
    markets, origin = candidates.question.markets, candidates.question.origin
    offer = markets[number].columns.offer(0)
    question = replace(
        candidates.question,
        markets=tuple(market if market.owned else _at(market, _places(market, offer), factor) for market in markets),
        origin=None if origin is None else replace(origin, write_usd=origin.write_usd * factor),
    )
    return replace(candidates, question=question)


def _at(market: Market, places: NDArray[np.int64], factor: float) -> Market:
    if not len(places):
        return market
    usd = market.snapshot.usd_per_hour.copy()
    usd[places] *= factor
    return replace(market, snapshot=replace(market.snapshot, usd_per_hour=usd))


def _places(market: Market, offer: Offer) -> NDArray[np.int64]:
    """The places of an offer in a market."""
    columns, snapshot = market.columns, market.snapshot
    types = [
        i
        for i, instance_type in enumerate(columns.instance_types)
        if (instance_type.provider, instance_type.name) == (offer.provider, offer.instance_type)
    ]
    regions = [i for i, region in enumerate(columns.regions) if region == (offer.provider, offer.region)]
    matches = np.isin(snapshot.type_index, types) & np.isin(snapshot.region_index, regions)
    places = [i for i in np.flatnonzero(matches).tolist() if columns.offer(int(snapshot.original[i])).key == offer.key]
    return np.array(places, np.int64)


def _without_its_offer(candidates: Candidates, rivals: _Rivals) -> _Rivals:
    """The rivals without the same offer, whose price rises too, but with the offers that it dominated."""
    offer = candidates.question.markets[rivals.number].columns.offer(0)
    parts, shares = [], []
    for number, market in enumerate(candidates.question.markets[: rivals.number]):
        table, shares_left = (rows.take(rows.market == number) for rows in (rivals.table, rivals.shares))
        mine = [] if market.owned else sorted(set(_places(market, offer).tolist()) & set(shares_left.place.tolist()))
        for place in mine:
            again = every_offer_of(candidates, number, place)
            known = set(shares_left.place.tolist())
            again = again.take(np.array([place_again not in known for place_again in again.place.tolist()], np.bool_))
            shares_left, table = joined([shares_left, again]), joined([table, again.whole()])
            shares_left, table = shares_left.take(shares_left.place != place), table.take(table.place != place)
        parts.append(table)
        shares.append(shares_left)
    return replace(rivals, table=joined(parts), shares=joined(shares))
