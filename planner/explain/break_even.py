"""The price per node-hour at which a named supply X would win, and the one up to which a plan would use it in part.

The price at which X would win is that of one offer: the offer of the cheapest configuration of X within the deadline, at
any cost. Cost is linear in the price, cost(p) = other + paid x p / price, so the best node count on that offer costs as
much as the plan at p* = price x (1 - (cost - plan's) / paid), exactly. A plan on X in several phases may still cost less
at p*, and so win at a higher price. The least cost over plans is concave in p, so steps along the line of the best plan
climb to the price at which none wins any more, and never past it (Dinkelbach 1967). The same steps over all machines lead
to the price up to which a plan would use the offer in one of its phases. Prices are rounded down to a micro-dollar.

Each step searches below the cost of the chosen plan. Over all machines it searches no pair of spot and standby without the
offer: those cost what they cost today, when none replaced the chosen plan. A step needs some plan that wins. Where more pairs
are left below the limit than the standby search could price exactly, it prices the likeliest only. The price is then not
proven: a plan is known to use the offer at it, and a higher price may do.

The *discount* is the least percentage off all prices of X at which some configuration of X ties, or the best plan of X
in several phases, whose cost falls linearly too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import BEST, cheapest, cost_micros, in_words
from gpuplan.planner.candidates.configurations import Configurations, joined, of_a_share
from gpuplan.planner.model.outcome import Choice, Planned
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.strategies.strategy_choice import cheapest_below

Floats = NDArray[np.float64]

#: The most steps up to a price: each plan is another piece of the concave cost, and few jobs have more than three.
_MOST_STEPS = 16
#: Where steps went too far, prices are accurate to this part.
_WITHIN = 5e-4
#: Where nothing of X wins alone, the search for a part starts at this share of the price.
_NEXT_TO_NOTHING = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The price at which X would win: of one offer in micro-dollars per node-hour, and as a percentage off all of X.

    `choice` is the configuration on that offer that ties first as its price falls.
    """

    choice: Choice
    price: int
    wins_at: int
    discount_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """The price per node-hour (`joins_at`, micro-dollars) up to which some phase of the plan would use an offer of X.

    `choice` is the configuration on it of least cost, which need not meet the deadline.
    """

    choice: Choice
    price: int
    joins_at: int


def break_even(candidates: Candidates, best: Planned | None, chosen: Planned) -> tuple[BreakEven | None, bool]:
    """The price at which the best plan of `candidates`, X alone, would win against `chosen`; None if no price is low enough.

    `best` is that plan at today's prices, if there is one. The second value says whether no higher price is proven to do.
    """
    ties = of_one_configuration(candidates, chosen.cost.expected)
    if ties is None:
        return None, True
    climb = _Climb(candidates=candidates, choice=ties.choice, chosen=chosen)
    wins_at, proven = climb.highest(ties.wins_at, climb.wins_alone)
    off = ties.discount_percent if best is None else min(ties.discount_percent, _off(best, climb.most(best)))
    return replace(ties, wins_at=max(ties.wins_at, wins_at), discount_percent=off), proven


def joining(
    candidates: Candidates, only: Candidates, ties: BreakEven | None, chosen: Planned
) -> tuple[Joining | None, bool]:
    """The price up to which a plan over all machines (`candidates`) uses X; None if there is none, or none above `ties`.

    The second value says whether it is proven that no higher price does.
    """
    if ties is not None:
        choice, low = ties.choice, ties.wins_at
    else:
        index = cheapest(only.table, _paid_by_the_hour(only.table)[0] > 0)
        if index is None:
            return None, True
        choice = in_words(only, only.table, index)
        low = max(1, round(choice.offer.usd_micros_per_hour * _NEXT_TO_NOTHING))
    climb = _Climb(candidates=candidates, choice=choice, chosen=chosen)
    joins_at, proven = climb.highest(low, climb.joins, among_others=True)
    if joins_at <= (0 if ties is None else ties.wins_at):
        return None, proven
    return Joining(choice=choice, price=choice.offer.usd_micros_per_hour, joins_at=joins_at), proven


def of_one_configuration(candidates: Candidates, target: int) -> BreakEven | None:
    """The price at which one configuration costs `target` micro-dollars; None if it is too dear even at zero per hour.

    Only configurations within the deadline count. Those over budget count too, since at the target they are within it.
    """
    table = candidates.table
    in_time = over(table, candidates.question.job.deadline_hours, None) == 0
    paid, other = _paid_by_the_hour(table)
    able = in_time & (paid > 0) & (other <= target)
    if not able.any():
        return None
    least = int(np.flatnonzero(in_time)[np.argmin(cost_micros(table)[in_time])])
    share = np.where(able, 1 - np.maximum(0.0, paid + other - target) / np.where(paid > 0, paid, 1.0), -np.inf)
    same = able & (table.market == table.market[least]) & (table.place == table.place[least])
    # If the cheapest offer cannot win at any price (for instance, its egress alone is dearer), the closest one is reported.
    tied = int(np.argmax(np.where(same, share, -np.inf))) if same.any() else int(np.argmax(share))
    choice = in_words(candidates, table, tied)
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
    """Plans of `candidates` at ever higher prices of the choice's offer, against the `chosen` plan of today."""

    candidates: Candidates
    choice: Choice
    chosen: Planned

    def highest(self, low: int, wins: Callable[[Schedule], bool], *, among_others: bool = False) -> tuple[int, bool]:
        """The highest price, from `low` up, at which the best plan wins, 0 if not even at `low`; and whether that is proven.

        `among_others` says that the chosen plan is one of these candidates. The search that ended the climb is the proof: at the
        price above at which no plan wins, or at the highest itself if the plan there already ties.

        A winning plan wins up to the price at which it ties unchanged. Costs are whole micro-dollars, so a step from a very low
        price may go too far: from then on the interval is halved.
        """
        at, price = _place(self.candidates, self.choice), self.choice.offer.usd_micros_per_hour
        if at is None:
            return 0, True
        highest, now, lost, proven = 0, low, price + 1, False
        for _ in range(_MOST_STEPS):
            schedule, compared = self._planned_at(at, now, among_others=among_others)
            if schedule is not None and wins(schedule):
                highest, paid = now, self.paid(schedule)
                room = self.most(schedule) - schedule.cost.expected
                now = min(price, int(now * (1 + room / paid))) if paid else now
            elif not highest:
                return 0, compared
            else:
                lost, proven = now, compared
            if now >= lost:
                now = (highest + lost) // 2
            if now <= highest or lost - highest <= highest * _WITHIN:
                return highest, proven if lost <= price else compared
        return highest, False

    def _planned_at(self, at: tuple[int, int], micros: int, *, among_others: bool) -> tuple[Schedule | None, bool]:
        """The best plan with the offer at another price, if one wins, and whether that is proven.

        No other plan wins, so the chosen plan's cost limits the search. Among others, no plan without the offer has become
        cheaper: those that cost less than the chosen one, but have too little gain from a move, still have too little.
        """
        candidates = repriced(self.candidates, at, micros)
        table, job = candidates.table, candidates.question.job
        chosen = BEST[job.objective](table, over(table, job.deadline_hours, job.budget_usd) == 0)
        if among_others:
            using = (table.market == at[0]) & (table.place == at[1])
            return cheapest_below(candidates, chosen, float(self.chosen.cost.expected), using=using)
        return cheapest_below(candidates, chosen, self.chosen.cost.expected + 1.0)

    def wins_alone(self, schedule: Schedule) -> bool:
        """Whether a plan of X alone replaces the chosen one."""
        return schedule.cost.expected <= self.most(schedule)

    def joins(self, schedule: Schedule) -> bool:
        """Whether the best plan uses the offer: `schedule`, or the chosen one if only that has moves and gains enough by them."""
        if (
            len(schedule.phases) == 1 < len(self.chosen.phases)
            and self.most_moving(schedule) > self.chosen.cost.expected
        ):
            return False
        return self.paid(schedule) > 0

    def most(self, schedule: Schedule | Planned) -> int:
        """The cost at which a plan replaces the chosen one: a plan with moves must also save what a move has to."""
        if len(schedule.phases) == 1 or len(self.chosen.phases) > 1:
            return self.chosen.cost.expected
        return int(self.most_moving(self.chosen))

    def most_moving(self, without_moves: Schedule | Planned) -> float:
        """The cost below which a plan with moves replaces one without."""
        return without_moves.cost.expected * (1 - self.chosen.settings.least_saving_of_a_move_percent / 100)

    def paid(self, schedule: Schedule) -> int:
        """Micro-dollars that a plan pays for the offer by the hour."""
        key = self.choice.offer.key
        costs = [phase.choice.cost for phase in schedule.phases if phase.choice.offer.key == key]
        return sum(cost.compute + cost.setup for cost in costs)


def _place(candidates: Candidates, choice: Choice) -> tuple[int, int] | None:
    """Market and place of an offer among candidates of any supply that has it."""
    offer = choice.offer
    for number, market in enumerate(candidates.question.markets):
        columns, snapshot = market.columns, market.snapshot
        if choice.instance_type not in columns.instance_types or (offer.provider, offer.region) not in columns.regions:
            continue
        matches = snapshot.type_index == columns.instance_types.index(choice.instance_type)
        matches &= snapshot.region_index == columns.regions.index((offer.provider, offer.region))
        for place in np.flatnonzero(matches).tolist():
            if columns.offer(int(snapshot.original[place])) == offer:
                return number, place
    return None


def repriced(candidates: Candidates, at: tuple[int, int], micros: int) -> Candidates:
    """The same candidates with one offer at another price, included even if it was screened out before."""
    number, place = at
    market, screened = candidates.question.markets[number], candidates.screened[number]
    usd = market.snapshot.usd_per_hour.copy()
    usd[place] = micros / 1e6
    if place not in screened.places:
        screened = replace(
            screened, places=np.append(screened.places, place), broken=np.append(screened.broken, np.uint32(0))
        )
    markets = list(candidates.question.markets)
    markets[number] = replace(market, snapshot=replace(market.snapshot, usd_per_hour=usd))
    question = replace(candidates.question, markets=tuple(markets))
    screens = tuple(screened if i == number else old for i, old in enumerate(candidates.screened))
    ready = zip(screens, candidates.estimated, candidates.costs, strict=True)
    shares = joined([of_a_share(question, i, *parts) for i, parts in enumerate(ready)])
    shares = shares.take(shares.broken == 0)
    return replace(candidates, question=question, screened=screens, table=shares.whole(), shares=shares)


def _off(best: Planned, most: int) -> float:
    """Per cent off all prices per hour at which an unchanged plan costs at most `most`; inf if no discount is enough."""
    extra, paid = best.cost.expected - most, best.cost.compute + best.cost.setup
    return 100 * extra / paid if paid >= extra and paid > 0 else np.inf


def _paid_by_the_hour(table: Configurations) -> tuple[Floats, Floats]:
    """Micro-dollars of each configuration that scale with the price per node-hour, and those that do not."""
    paid = (table.cost_breakdown.compute_usd + table.cost_breakdown.setup_usd) * 1e6
    return paid, table.cost_breakdown.cost_usd * 1e6 - paid
