"""The least cost, time and carbon per group of configurations, collected in one pass."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.verify.configuration_enumeration import Priced, Sweep
from gpuplan.planner.verify.wall_clock_hours import Floats, Ints

#: Requirements that an alternative may break.
SOFT = frozenset(("deadline", "budget_usd"))
#: New points are first compared with at most this many known ones, which leaves few to sort.
MOST_LOOKED_AT = 64
#: Sweeps whose configurations join the frontier at once.
MOST_WAITING = 64
Order = Callable[[Priced], tuple[float, ...]]


def by_cost(priced: Priced) -> tuple[float, ...]:
    """Cheapest first, then fastest."""
    return priced.micros, priced.confident_hours


def by_time(priced: Priced) -> tuple[float, ...]:
    """Fastest first, then cheapest."""
    return priced.confident_hours, priced.micros


def by_carbon(priced: Priced) -> tuple[float, ...]:
    """Least carbon first, unknown last."""
    return math.inf if priced.carbon_kg is None else priced.carbon_kg, priced.micros


def least(sweep: Sweep, first: Floats | Ints, second: Floats | Ints) -> Priced:
    """The configuration with the smallest first column; ties are broken by the second."""
    return sweep.at(int(np.lexsort((second, first))[0]))


def cheapest(sweep: Sweep) -> Priced:
    """The first of a sweep by cost."""
    return least(sweep, sweep.micros, sweep.confident_hours)


def fastest(sweep: Sweep) -> Priced:
    """The first of a sweep by time."""
    return least(sweep, sweep.confident_hours, sweep.micros)


def greenest(sweep: Sweep) -> Priced:
    """The first of a sweep by carbon."""
    return least(sweep, np.nan_to_num(sweep.carbon_kg, nan=np.inf), sweep.micros)


class Least(NamedTuple):
    """The best of a group of configurations by cost, time and carbon among those that meet deadline and budget (None:
    none does, or carbon does not count), and by time and cost among all.
    """

    feasible: Priced | None
    fastest: Priced | None
    greenest: Priced | None
    any_fastest: Priced | None
    any_cheapest: Priced | None


NOTHING = Least(None, None, None, None, None)
_ORDERS: tuple[Order, ...] = (by_cost, by_time, by_carbon, by_time, by_cost)


def least_of(sweep: Sweep, feasible: Sweep, *, with_carbon: bool) -> Least:
    """The best of a non-empty sweep, by carbon only `with_carbon`; `feasible` is the part within deadline and budget."""
    cheap, fast = cheapest(sweep), fastest(sweep)
    if not len(feasible):
        return Least(None, None, None, fast, cheap)
    green = greenest(feasible) if with_carbon else None
    if feasible is sweep:
        return Least(cheap, fast, green, fast, cheap)
    return Least(cheapest(feasible), fastest(feasible), green, fast, cheap)


def joined(one: Least, other: Least) -> Least:
    """The best of both groups."""
    return Least._make(map(_less, one, other, _ORDERS))


def _less(one: Priced | None, other: Priced | None, order: Order) -> Priced | None:
    if one is None or other is None:
        return other if one is None else one
    return other if order(other) < order(one) else one


@dataclass(slots=True, kw_only=True)
class Survey:
    """The best configurations overall, per label and per accelerator vendor, and the frontier of cost and time.

    `best_of_offer_group` is the cheapest of each offer group within deadline and budget. `hours` and `cost_micros`
    are the frontier so far, but for the sweeps in `waiting`. `trades` is the frontier of carbon (milligrams), cost and
    time, filled only `with_carbon`.
    """

    with_carbon: bool = False
    whole: Least = NOTHING
    labels: dict[str, Least] = field(default_factory=dict)
    vendors: dict[str, Least] = field(default_factory=dict)
    hours: Floats = field(default_factory=lambda: np.zeros(0))
    cost_micros: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    waiting: list[Sweep] = field(default_factory=list)
    configurations: int = 0
    best_of_offer_group: dict[int, Priced] = field(default_factory=dict)
    trades: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def add(self, sweep: Sweep) -> None:
        """Add the configurations of an offer group; those that break more than deadline and budget do not count."""
        soft = sweep.within(SOFT)
        if not len(soft):
            return
        self.configurations += len(soft)
        feasible = soft.within(frozenset())
        least_of_sweep = least_of(soft, feasible, with_carbon=self.with_carbon)
        self.whole = joined(self.whole, least_of_sweep)
        machine = sweep.offer_group.machine.type
        for label in (f"best on {machine.provider}", f"best {sweep.offer_group.kind.name}"):
            self.labels[label] = joined(self.labels.get(label, NOTHING), least_of_sweep)
        of_vendor = f"best on {accelerators()[machine.accelerator].vendor} accelerators"
        self.vendors[of_vendor] = joined(self.vendors.get(of_vendor, NOTHING), least_of_sweep)
        self.waiting.append(soft)
        if len(self.waiting) == MOST_WAITING:
            self._compare_waiting()
        if self.with_carbon:
            self._add_trades(soft)
        if least_of_sweep.feasible is not None:
            self.best_of_offer_group[id(sweep.offer_group)] = least_of_sweep.feasible

    def _add_trades(self, sweep: Sweep) -> None:
        known = ~np.isnan(sweep.carbon_kg)
        new = np.stack((np.rint(sweep.carbon_kg * 1e6), sweep.micros, sweep.confident_hours), axis=1)[known]
        for row in self.trades[:: max(1, len(self.trades) // MOST_LOOKED_AT)]:
            new = new[(new < row).any(axis=1)]
        self.trades = unbeaten_in_all(np.concatenate((self.trades, new)))

    def _compare_waiting(self) -> None:
        """Add the sweeps that wait to the frontier of cost and time."""
        self.hours, self.cost_micros = unbeaten(
            np.concatenate((self.hours, *(sweep.confident_hours for sweep in self.waiting))),
            np.concatenate((self.cost_micros, *(sweep.micros for sweep in self.waiting))),
        )
        self.waiting.clear()

    def frontier(self) -> list[tuple[float, int]]:
        """The Pareto frontier as (hours, micro-dollars), fastest first."""
        self._compare_waiting()
        return list(zip(self.hours.tolist(), self.cost_micros.tolist(), strict=True))

    def three_way(self) -> int:
        """Size of the Pareto frontier of carbon, cost and time; equal points count once."""
        return len(self.trades)


def unbeaten(hours: Floats, micros: Ints) -> tuple[Floats, Ints]:
    """The Pareto frontier of hours and cost, fastest first; equal points once."""
    order = np.lexsort((micros, hours))
    hours, micros = hours[order], micros[order]
    cheaper = np.ones(len(micros), np.bool_)
    cheaper[1:] = micros[1:] < np.minimum.accumulate(micros)[:-1]
    return hours[cheaper], micros[cheaper]


def unbeaten_in_all(trades: Floats) -> Floats:
    """The Pareto-optimal rows of three columns; equal rows once.

    In ascending order only an earlier row can dominate a row. The second and third columns of the rows so far form a
    staircase: the second rises, the third falls.
    """
    ordered = trades[np.lexsort(trades.T[::-1])]
    seconds, thirds, unbeaten_rows = list[float](), list[float](), list[int]()
    for number, (_, second, third) in enumerate(ordered.tolist()):
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        unbeaten_rows.append(number)
        begin = bisect_left(seconds, second)
        end = begin
        while end < len(thirds) and thirds[end] >= third:
            end += 1
        seconds[begin:end], thirds[begin:end] = [second], [third]
    return ordered[unbeaten_rows]


def surveyed(sweeps: Iterable[Sweep], *, with_carbon: bool = False) -> Survey:
    """The survey of these configurations."""
    survey = Survey(with_carbon=with_carbon)
    for sweep in sweeps:
        survey.add(sweep)
    return survey


def slope(frontier: list[tuple[float, int]], deadline: float) -> float:
    """USD per hour by which the lower convex hull of the frontier falls at the deadline."""
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
