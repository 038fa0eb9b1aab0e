"""One pass over every configuration, keeping what the answers of a plan rest on: least cost, time and carbon by group."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from planner.verify.clock import Floats, Ints
from planner.verify.enumeration import Priced, Sweep

#: What a plan may break and still be an alternative.
SOFT = frozenset(("deadline", "budget_usd"))
#: Of the trades known so far as many are held against all new ones first, which leaves few to sort.
MOST_LOOKED_AT = 64
Order = Callable[[Priced], tuple[float, ...]]


def by_cost(each: Priced) -> tuple[float, ...]:
    """Cheapest first, then fastest."""
    return each.micros, each.kept_hours


def by_time(each: Priced) -> tuple[float, ...]:
    """Fastest first, then cheapest."""
    return each.kept_hours, each.micros


def by_carbon(each: Priced) -> tuple[float, ...]:
    """Least carbon first, unknown last."""
    return math.inf if each.carbon_kg is None else each.carbon_kg, each.micros


def least(sweep: Sweep, first: Floats | Ints, second: Floats | Ints) -> Priced:
    """The configuration of a sweep with the least of the first column, and of those the least of the second."""
    smallest = np.flatnonzero(first == first.min())
    return sweep.at(int(smallest[np.argmin(second[smallest])]))


def cheapest(sweep: Sweep) -> Priced:
    """The first of a sweep by cost."""
    return least(sweep, sweep.micros, sweep.kept_hours)


def fastest(sweep: Sweep) -> Priced:
    """The first of a sweep by time."""
    return least(sweep, sweep.kept_hours, sweep.micros)


def greenest(sweep: Sweep) -> Priced:
    """The first of a sweep by carbon."""
    return least(sweep, np.nan_to_num(sweep.carbon_kg, nan=np.inf), sweep.micros)


class Least(NamedTuple):
    """The least of some configurations that meet deadline and budget by cost, time and carbon (None: none does), and of
    all of them by time and cost.
    """

    feasible: Priced | None
    fastest: Priced | None
    greenest: Priced | None
    any_fastest: Priced | None
    any_cheapest: Priced | None


NOTHING = Least(None, None, None, None, None)
_ORDERS: tuple[Order, ...] = (by_cost, by_time, by_carbon, by_time, by_cost)


def least_of(sweep: Sweep, feasible: Sweep) -> Least:
    """The least of one sweep that is not empty, of which so much is feasible."""
    some = len(feasible) > 0
    return Least(
        cheapest(feasible) if some else None,
        fastest(feasible) if some else None,
        greenest(feasible) if some else None,
        fastest(sweep),
        cheapest(sweep),
    )


def joined(one: Least, other: Least) -> Least:
    """The least of both."""
    return Least(*(_less(first, second, order) for first, second, order in zip(one, other, _ORDERS, strict=True)))


def _less(one: Priced | None, other: Priced | None, order: Order) -> Priced | None:
    if one is None or other is None:
        return other if one is None else one
    return other if order(other) < order(one) else one


@dataclass(slots=True, kw_only=True)
class Survey:
    """What one pass found: overall, per label, and the least cost for each length of time.

    `best_of_lot` is the cheapest within deadline and budget of each lot; `hours` and `cost_micros` are the trades of time
    against cost that nothing beats so far; `trades` those of carbon (milligrams), cost and time, kept `with_carbon` alone.
    """

    with_carbon: bool = False
    whole: Least = NOTHING
    labels: dict[str, Least] = field(default_factory=dict)
    hours: Floats = field(default_factory=lambda: np.zeros(0))
    cost_micros: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    configurations: int = 0
    best_of_lot: dict[int, Priced] = field(default_factory=dict)
    trades: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def add(self, sweep: Sweep) -> None:
        """The configurations of one more lot; those that break more than deadline and budget do not count."""
        soft = sweep.within(SOFT)
        if not len(soft):
            return
        self.configurations += len(soft)
        feasible = soft.within(frozenset())
        found = least_of(soft, feasible)
        self.whole = joined(self.whole, found)
        for label in (f"best on {sweep.lot.machine.type.provider}", f"best {sweep.lot.kind.name}"):
            self.labels[label] = joined(self.labels.get(label, NOTHING), found)
        self.hours, self.cost_micros = unbeaten(
            np.concatenate((self.hours, soft.kept_hours)), np.concatenate((self.cost_micros, soft.micros))
        )
        if self.with_carbon:
            self._add_trades(soft)
        if found.feasible is not None:
            self.best_of_lot[id(sweep.lot)] = found.feasible

    def _add_trades(self, sweep: Sweep) -> None:
        known = ~np.isnan(sweep.carbon_kg)
        new = np.stack((np.rint(sweep.carbon_kg * 1e6), sweep.micros, sweep.kept_hours), axis=1)[known]
        for row in self.trades[:: max(1, len(self.trades) // MOST_LOOKED_AT)]:
            new = new[(new < row).any(axis=1)]
        self.trades = unbeaten_in_all(np.concatenate((self.trades, new)))

    def frontier(self) -> list[tuple[float, int]]:
        """(hours, micro-dollars) that nothing beats in both, fastest first."""
        return list(zip(self.hours.tolist(), self.cost_micros.tolist(), strict=True))

    def three_way(self) -> int:
        """How many configurations nothing beats in carbon, cost and time at once; equals count once."""
        return len(self.trades)


def unbeaten(hours: Floats, micros: Ints) -> tuple[Floats, Ints]:
    """The trades that nothing beats in both, fastest first; equals once."""
    order = np.lexsort((micros, hours))
    hours, micros = hours[order], micros[order]
    cheaper = np.ones(len(micros), np.bool_)
    cheaper[1:] = micros[1:] < np.minimum.accumulate(micros)[:-1]
    return hours[cheaper], micros[cheaper]


def unbeaten_in_all(trades: Floats) -> Floats:
    """The rows of three columns that no other row is at most equal to in all; equals once.

    In ascending order a row is beaten by one before it: of those, second and third columns that nothing beats are kept
    as a staircase, the second rising and the third falling.
    """
    ordered = trades[np.lexsort(trades.T[::-1])]
    seconds, thirds, kept = list[float](), list[float](), list[int]()
    for number, (_, second, third) in enumerate(ordered.tolist()):
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        kept.append(number)
        begin = bisect_left(seconds, second)
        end = begin
        while end < len(thirds) and thirds[end] >= third:
            end += 1
        seconds[begin:end], thirds[begin:end] = [second], [third]
    return ordered[kept]


def surveyed(sweeps: Iterable[Sweep], *, with_carbon: bool = False) -> Survey:
    """The survey of these configurations."""
    survey = Survey(with_carbon=with_carbon)
    for sweep in sweeps:
        survey.add(sweep)
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
