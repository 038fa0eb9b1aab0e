"""One pass over every configuration, keeping what the answers of a plan rest on: least cost, time and carbon by group."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from planner.verify.enumeration import Priced

#: What a plan may break and still be an alternative.
SOFT = frozenset(("deadline", "budget_usd"))
Order = Callable[[Priced], tuple[float, ...]]


def by_cost(each: Priced) -> tuple[float, ...]:
    """Cheapest first, then fastest."""
    return each.micros, each.clock.kept


def by_time(each: Priced) -> tuple[float, ...]:
    """Fastest first, then cheapest."""
    return each.clock.kept, each.micros


def by_carbon(each: Priced) -> tuple[float, ...]:
    """Least carbon first, unknown last."""
    return math.inf if each.carbon_kg is None else each.carbon_kg, each.micros


@dataclass(slots=True, kw_only=True)
class Group:
    """The least of one group: `feasible` by cost, `fastest` and `greenest` of the feasible, `any_fastest` whatever the
    deadline and the budget.
    """

    feasible: Priced | None = None
    fastest: Priced | None = None
    greenest: Priced | None = None
    any_fastest: Priced | None = None
    any_cheapest: Priced | None = None

    def add(self, each: Priced) -> None:
        """One more of the group."""
        self.any_fastest = _less(self.any_fastest, each, by_time)
        self.any_cheapest = _less(self.any_cheapest, each, by_cost)
        if not each.broken:
            self.feasible = _less(self.feasible, each, by_cost)
            self.fastest = _less(self.fastest, each, by_time)
            self.greenest = _less(self.greenest, each, by_carbon)


def _less(one: Priced | None, other: Priced, order: Order) -> Priced:
    return other if one is None or order(other) < order(one) else one


@dataclass(slots=True, kw_only=True)
class Survey:
    """What one pass found: overall, per label, and the least cost for each length of time.

    `best_of_lot` is the cheapest within deadline and budget of each lot; `trades` the least hours for each amount of
    carbon (milligrams) and money.
    """

    whole: Group = field(default_factory=Group)
    labels: dict[str, Group] = field(default_factory=dict)
    least_by_hours: dict[float, int] = field(default_factory=dict)
    configurations: int = 0
    best_of_lot: dict[int, Priced] = field(default_factory=dict)
    trades: dict[tuple[float, int], float] = field(default_factory=dict)

    def add(self, each: Priced) -> None:
        """One more configuration that breaks nothing but deadline and budget."""
        self.configurations += 1
        self.whole.add(each)
        for label in (f"best on {each.lot.machine.type.provider}", f"best {each.lot.kind.name}"):
            self.labels.setdefault(label, Group()).add(each)
        kept = each.clock.kept
        if each.micros < self.least_by_hours.get(kept, 1 << 62):
            self.least_by_hours[kept] = each.micros
        if each.carbon_kg is not None:
            trade = (round(each.carbon_kg * 1e6), each.micros)
            self.trades[trade] = min(kept, self.trades.get(trade, math.inf))
        if not each.broken:
            number = id(each.lot)
            if number not in self.best_of_lot or each.micros < self.best_of_lot[number].micros:
                self.best_of_lot[number] = each

    def frontier(self) -> list[tuple[float, int]]:
        """(hours, micro-dollars) that nothing beats in both, fastest first."""
        found: list[tuple[float, int]] = []
        for kept, micros in sorted(self.least_by_hours.items()):
            if not found or micros < found[-1][1]:
                found.append((kept, micros))
        return found

    def three_way(self) -> int:
        """How many configurations nothing beats in carbon, cost and time at once; equals count once."""
        found: list[tuple[int, float]] = []
        count = 0
        for (_, micros), kept in sorted(self.trades.items(), key=lambda trade: (*trade[0], trade[1])):
            if not any(one <= micros and other <= kept for one, other in found):
                count += 1
                found = [each for each in found if not (micros <= each[0] and kept <= each[1])] + [(micros, kept)]
        return count


def surveyed(configurations: Iterable[Priced]) -> Survey:
    """The survey of those that break nothing but deadline and budget."""
    survey = Survey()
    for each in configurations:
        if each.broken <= SOFT:
            survey.add(each)
    return survey


def slope(frontier: list[tuple[float, int]], deadline: float) -> float:
    """USD per hour that the lower convex hull of the frontier falls by at the deadline."""
    hull: list[tuple[float, float]] = []
    for hours, micros in frontier:
        point = (hours, micros / 1e6)
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    falls = [(c0 - c1) / (t1 - t0) for (t0, c0), (t1, c1) in pairwise(hull) if t0 <= deadline < t1]
    return max(0.0, falls[0]) if falls else 0.0


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
