"""The price per node-hour at which something would win, and the one up to which a plan would use it in part.

The price at which X would win is that of one offer: of the configuration of X that is cheapest within deadline, at any
cost. Cost is linear in the price, cost(p) = other + paid x p / price, so the best node count on that offer costs what the
plan costs at p* = price x (1 - (cost - plan's) / paid), exactly. A plan on X in several phases may still cost less there,
and so win at a higher price: the least cost over plans is concave in p, so steps along the line of the best plan found
climb to the price at which none wins any more, and never past it (Dinkelbach 1967). The same steps, over all machines,
lead to the price up to which a plan would have the offer in one of its phases. Prices are rounded down to a micro-dollar.

The *discount* is the least percentage off all prices of X at which some configuration of X ties, or the best plan of X
in several phases, whose cost falls as linearly.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice, Planned
from planner.candidates.configurations import Configurations, joined, of_a_share
from planner.candidates.gather import Candidates, over
from planner.choice import BEST, cheapest, cost_micros, in_words
from planner.phases.cheapest import cheapest_course
from planner.phases.course import Course

Floats = NDArray[np.float64]

#: Steps up to a price; each plan found is another piece of the concave cost, and few have more than three.
_MOST_STEPS = 16
#: Where steps went too far, prices are told to this part.
_WITHIN = 5e-4
#: Where nothing of X wins alone, the search for a part begins at this share of the price.
_NEXT_TO_NOTHING = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The price at which X would win: of one offer in micro-dollars per node-hour, and as a percentage off all of X.

    `choice` is the configuration on that offer which ties first as its price falls.
    """

    choice: Choice
    price: int
    wins_at: int
    discount_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """Up to which price per node-hour (`joins_at`, micro-dollars) some phase of the plan would be on an offer of X.

    `choice` is the configuration on it of least cost, which need not be in time.
    """

    choice: Choice
    price: int
    joins_at: int


def break_even(found: Candidates, best: Planned | None, chosen: Planned) -> BreakEven | None:
    """The price at which the best plan of `found`, X alone, would win against `chosen`; None where none would make it.

    `best` is that plan at today's prices, if there is one.
    """
    ties = of_one_configuration(found, chosen.cost.expected)
    if ties is None:
        return None
    climb = _Climb(found=found, choice=ties.choice, chosen=chosen)
    wins_at = climb.highest(ties.wins_at, lambda course: course.cost.expected <= climb.most(course))
    off = ties.discount_percent if best is None else min(ties.discount_percent, _off(best, climb.most(best)))
    return replace(ties, wins_at=max(ties.wins_at, wins_at), discount_percent=off)


def joining(found: Candidates, only: Candidates, ties: BreakEven | None, chosen: Planned) -> Joining | None:
    """Up to which price a plan over all machines (`found`) has X in it; None where that is none, or no more than `ties`."""
    if ties is not None:
        choice, low = ties.choice, ties.wins_at
    else:
        index = cheapest(only.table, _paid_by_the_hour(only.table)[0] > 0)
        if index is None:
            return None
        choice = in_words(only, only.table, index)
        low = max(1, round(choice.offer.usd_micros_per_hour * _NEXT_TO_NOTHING))
    climb = _Climb(found=found, choice=choice, chosen=chosen)
    joins_at = climb.highest(low, lambda course: climb.paid(course) > 0)
    if joins_at <= (0 if ties is None else ties.wins_at):
        return None
    return Joining(choice=choice, price=choice.offer.usd_micros_per_hour, joins_at=joins_at)


def of_one_configuration(found: Candidates, target: int) -> BreakEven | None:
    """The price at which a configuration of `found` costs `target` micro-dollars; None where even nothing per hour is too much.

    Only configurations in time count; those over budget do, since at the target they are not.
    """
    table = found.table
    in_time = over(table, found.question.job.deadline_hours, None) == 0
    paid, other = _paid_by_the_hour(table)
    able = in_time & (paid > 0) & (other <= target)
    if not able.any():
        return None
    least = int(np.flatnonzero(in_time)[np.argmin(cost_micros(table)[in_time])])
    share = np.where(able, 1 - np.maximum(0.0, paid + other - target) / np.where(paid > 0, paid, 1.0), -np.inf)
    same = able & (table.market == table.market[least]) & (table.place == table.place[least])
    # Where the cheapest offer cannot win at any price (egress alone is dearer, say), the one that comes nearest is told.
    tied = int(np.argmax(np.where(same, share, -np.inf))) if same.any() else int(np.argmax(share))
    choice = in_words(found, table, tied)
    price = choice.offer.usd_micros_per_hour
    wins_at = int(np.floor(price * float(share[tied])))
    if not wins_at:
        return None
    return BreakEven(
        choice=choice,
        price=price,
        wins_at=wins_at,
        discount_percent=100 * (1 - float(share.max())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Climb:
    """Plans of `found` at ever higher prices of the choice's offer, against the `chosen` plan of today."""

    found: Candidates
    choice: Choice
    chosen: Planned

    def highest(self, low: int, wins: Callable[[Course], bool]) -> int:
        """The highest price, from `low` up, at which the best plan wins; 0 if not even there.

        A plan that wins does so up to the price at which it ties as it is. Costs are whole micro-dollars, so that a step
        there from a price next to nothing may go too far: from then on what is between is halved.
        """
        at, price = _place(self.found, self.choice), self.choice.offer.usd_micros_per_hour
        highest, now, lost = 0, low, price + 1
        for _ in range(_MOST_STEPS if at is not None else 0):
            course = None if at is None else _planned_at(self.found, at, now)
            if course is not None and wins(course):
                highest, paid = now, self.paid(course)
                room = self.most(course) - course.cost.expected
                now = min(price, int(now * (1 + room / paid))) if paid else now
            elif not highest:
                break
            else:
                lost = now
            if now >= lost:
                now = (highest + lost) // 2
            if now <= highest or lost - highest <= highest * _WITHIN:
                break
        return highest

    def most(self, course: Course | Planned) -> int:
        """What a plan may cost to be taken instead of the chosen one: with moves, it must save what a move has to."""
        cost = self.chosen.cost.expected
        if len(course.phases) == 1 or len(self.chosen.phases) > 1:
            return cost
        return int(cost * (1 - self.chosen.settings.least_saving_of_a_move_percent / 100))

    def paid(self, course: Course) -> int:
        """Micro-dollars that a plan pays by the hour for the offer."""
        key = self.choice.offer.key
        costs = [each.choice.cost for each in course.phases if each.choice.offer.key == key]
        return sum(cost.compute + cost.setup for cost in costs)


def _place(found: Candidates, choice: Choice) -> tuple[int, int] | None:
    """Market and place of an offer among candidates of any supply that has it."""
    offer = choice.offer
    for number, market in enumerate(found.question.markets):
        columns, snapshot = market.columns, market.snapshot
        if choice.instance_type not in columns.instance_types or (offer.provider, offer.region) not in columns.regions:
            continue
        here = snapshot.type_index == columns.instance_types.index(choice.instance_type)
        here &= snapshot.region_index == columns.regions.index((offer.provider, offer.region))
        for place in np.flatnonzero(here).tolist():
            if columns.offer(int(snapshot.original[place])) == offer:
                return number, place
    return None


def _planned_at(found: Candidates, at: tuple[int, int], micros: int) -> Course | None:
    """The best plan with one offer at another price."""
    there = _repriced(found, at, micros)
    job = found.question.job
    chosen = BEST[job.objective](there.table, over(there.table, job.deadline_hours, job.budget_usd) == 0)
    best = cheapest_course(there, chosen)
    return None if best is None else best.course


def _repriced(found: Candidates, at: tuple[int, int], micros: int) -> Candidates:
    """The same candidates with one offer at another price, among those worth a look whatever it was before."""
    number, place = at
    market, screened = found.question.markets[number], found.screened[number]
    usd = market.snapshot.usd_per_hour.copy()
    usd[place] = micros / 1e6
    if place not in screened.places:
        screened = replace(
            screened, places=np.append(screened.places, place), broken=np.append(screened.broken, np.uint16(0))
        )
    markets = list(found.question.markets)
    markets[number] = replace(market, snapshot=replace(market.snapshot, usd_per_hour=usd))
    question = replace(found.question, markets=tuple(markets))
    screens = tuple(screened if i == number else each for i, each in enumerate(found.screened))
    ready = zip(screens, found.estimated, found.costs, strict=True)
    shares = joined([of_a_share(question, i, *each) for i, each in enumerate(ready)])
    shares = shares.take(shares.broken == 0)
    return replace(found, question=question, screened=screens, table=shares.whole(), shares=shares)


def _off(best: Planned, most: int) -> float:
    """Per cent off all prices per hour at which a plan, as it is, costs no more than `most`; inf if none is enough."""
    extra, paid = best.cost.expected - most, best.cost.compute + best.cost.setup
    return 100 * extra / paid if paid >= extra and paid > 0 else np.inf


def _paid_by_the_hour(table: Configurations) -> tuple[Floats, Floats]:
    """Micro-dollars of each configuration that follow the price per node-hour, and those that do not."""
    paid = (table.bill.compute_usd + table.bill.setup_usd) * 1e6
    return paid, table.bill.cost_usd * 1e6 - paid
