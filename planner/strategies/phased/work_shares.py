"""The best shares of many pairs of columns at once, by branch and bound on the share of the first phase.

A range gives the first phase from `low` to `high` steps of the work; the second phase does the rest. Cost and hours of a
phase rise with its share. So the least shares of both phases cost and take no more than any plan in the range, and by the
linear bounds on cost and hours, at any price of an hour, the rest of the work costs at least the cheaper rate. A range
in which these bounds leave no better plan is dropped. In every other range one plan is priced, the one with most work on
the faster phase, and the range is split. Where few plans are left, all are priced. The result is the exact best over all
shares in steps. All ranges of a level are one array.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.migration_costs import Moves
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns
from gpuplan.planner.strategies.phased.phase_pricing import Priced, priced, priced_together
from gpuplan.planner.strategies.phased.sequence_linear_bounds import (
    SequenceLinearBounds,
    may_win,
    sequence_linear_bounds,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Ranges compared before ties within the rounding of bills are left unresolved.
_EXACT = 300_000
#: Ranges compared together: enough for arrays to pay, few enough for memory.
_TOGETHER = 16_384
#: Plans that are priced one by one rather than by ranges: pricing so many takes about as long as one more split.
_FEW_PLANS = 1_024
#: Parts that a range is split into: more than two, since a step takes about as long for twenty ranges as for one.
_PARTS = 16
#: Parts that the ranges of a few sequences are split into at first: mostly leaves few enough plans to price them all.
_PARTS_OF_FEW = 64
#: Steps left to the faster phase beyond what the linear bounds require, tried first.
_NEARBY = np.array([0, 1, 3, 10, 30, 100, 300, 1_000, 3_000])


@dataclass(frozen=True, slots=True, kw_only=True)
class BestShares:
    """A plan of two phases: columns in order, steps of the work of each, micro-dollars and confident hours in total.

    `unsaved` is an upper bound, in micro-dollars, on what another plan may save: 0 except where ties were left unresolved.
    """

    sequence: tuple[int, ...]
    steps: tuple[int, ...]
    micros: float
    hours: float
    unsaved: float = 0.0


class _Ranges(NamedTuple):
    """Ranges of the steps of the first phase, from `low` to `high`; `which` numbers their sequences."""

    which: Ints
    low: Ints
    high: Ints

    def take(self, some: NDArray[np.bool_] | slice) -> "_Ranges":
        """Some of the ranges."""
        return _Ranges(self.which[some], self.low[some], self.high[some])

    @property
    def least(self) -> Ints:
        """The least steps of both phases."""
        return np.stack((self.low, STEPS - self.high), axis=1)


def best_shares(columns: PhaseColumns, moving: Moves, sequences: Ints, most_micros: float) -> BestShares | None:
    """The cheapest plan within the deadline on any of the sequences, if one costs less than `most_micros`, else None.

    Each sequence is two columns in order. Of plans that cost the same to the micro-dollar the first one stays, of those
    priced together the fastest. Which one that is depends only on the job and the prices.
    """
    if not len(sequences):
        return None
    linear_bounds = sequence_linear_bounds(columns, moving, sequences)
    low, high = np.ones_like(sequences), np.minimum(columns.most_steps[sequences], STEPS - 1)
    alive = may_win(linear_bounds, np.arange(len(sequences)), low, most_micros)
    if not alive.all():
        sequences, linear_bounds, low, high = sequences[alive], linear_bounds.take(alive), low[alive], high[alive]
    if not len(sequences):
        return None
    best = _first(columns, moving, sequences, high, linear_bounds=linear_bounds, most_micros=most_micros)
    least = most_micros if best is None else best.micros
    whole = _of_first_phase(low, high)
    stack = [whole]
    if best is not None and len(sequences) <= _PARTS:
        # One of these ranges holds the best plan so far, so they cannot all be dropped unsplit.
        stack = _split(whole, into=_PARTS_OF_FEW)
    looked, unsaved = 0, 0.0
    while stack:
        go_on()
        ranges = stack.pop()
        looked += len(ranges.which)
        tied = linear_bounds.rounding[ranges.which] if looked > _EXACT and best is not None else None
        alive = may_win(linear_bounds, ranges.which, ranges.least, least if tied is None else least - tied)
        if tied is not None:
            unsaved = max(unsaved, float(tied.max(initial=0.0)))
        ranges = ranges.take(alive)
        if not len(ranges.which):
            continue
        given = sequences[ranges.which]
        if (ranges.high - ranges.low + 1).sum() <= _FEW_PLANS:
            given, steps = _every_plan(given, ranges)
            tried = priced(columns, moving, given, steps)
            better = _better(tried, columns.deadline_hours, least)
            if better is not None:
                best, least = _plan_at(given, steps, tried, better), float(tried.micros[better])
            continue
        inside = _fastest(columns, given, ranges)
        shares = [(inside, False), (ranges.least, True)]
        tried, floor = priced_together(columns, moving, given, shares)
        better = _better(tried, columns.deadline_hours, least)
        if better is not None:
            best, least = _plan_at(given, inside, tried, better), float(tried.micros[better])
        alive = (ranges.high > ranges.low) & (floor.hours <= columns.deadline_hours) & (floor.micros < least)
        stack += _split(ranges.take(alive))
    return None if best is None else replace(best, unsaved=unsaved)


def _of_first_phase(low: Ints, high: Ints) -> _Ranges:
    """The ranges of the first phase in which both phases have from `low` to `high` steps, without empty ones."""
    first_low, first_high = np.maximum(low[:, 0], STEPS - high[:, 1]), np.minimum(high[:, 0], STEPS - low[:, 1])
    ranges = _Ranges(np.arange(len(low)), first_low, first_high)
    return ranges.take(first_low <= first_high)


def _every_plan(given: Ints, ranges: _Ranges) -> tuple[Ints, Ints]:
    """Every plan of each range: its sequence (`given` for the range) and the steps of both phases."""
    count = ranges.high - ranges.low + 1
    row = np.repeat(np.arange(len(count)), count)
    first = ranges.low[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return given[row], np.stack((first, STEPS - first), axis=1)


def _first(
    columns: PhaseColumns,
    moving: Moves,
    sequences: Ints,
    high: Ints,
    *,
    linear_bounds: SequenceLinearBounds,
    most_micros: float,
) -> BestShares | None:
    """The best of some plans near the share at which the linear bounds just meet the deadline, as a first upper bound."""
    if not np.isfinite(linear_bounds.deadline_hours):
        return None
    # More work on the cheaper phase is better, up to the deadline; costs above the linear bounds need a little less.
    cheap = np.argmin(linear_bounds.slope_usd, axis=1)[:, None]
    slow, fast = (np.take_along_axis(linear_bounds.slope_hours, at, axis=1)[:, 0] for at in (cheap, 1 - cheap))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(slow > fast, (linear_bounds.deadline_hours - linear_bounds.hours - fast) / (slow - fast), 1.0)
    most, least = (
        np.take_along_axis(limits, at, axis=1)[:, 0] for limits, at in ((high, cheap), (STEPS - high, 1 - cheap))
    )
    at = np.floor(np.clip(share, 0.0, 1.0) * STEPS).astype(np.int64)
    steps = np.clip(at[:, None] - _NEARBY, np.maximum(least, 1)[:, None], np.minimum(most, STEPS - 1)[:, None])
    possible = np.repeat(np.maximum(least, 1) <= np.minimum(most, STEPS - 1), len(_NEARBY))
    of_cheap, given = steps.reshape(-1, 1), np.repeat(sequences, len(_NEARBY), axis=0)
    tried_steps = np.where(np.arange(2) == np.repeat(cheap, len(_NEARBY), axis=0), of_cheap, STEPS - of_cheap)
    given, tried_steps = given[possible], tried_steps[possible]
    if not len(given):
        return None
    tried = priced(columns, moving, given, tried_steps)
    better = _better(tried, columns.deadline_hours, most_micros)
    return None if better is None else _plan_at(given, tried_steps, tried, better)


def _better(tried: Priced, deadline_hours: float, least_micros: float) -> int | None:
    """The cheapest plan within the deadline below `least_micros`; of equal cost the fastest, then the first."""
    good = (tried.hours <= deadline_hours) & (tried.micros < least_micros)
    return int(np.lexsort((tried.hours, np.where(good, tried.micros, np.inf)))[0]) if good.any() else None


def _plan_at(sequences: Ints, steps: Ints, tried: Priced, at: int) -> BestShares:
    return BestShares(
        sequence=tuple(sequences[at].tolist()),
        steps=tuple(steps[at].tolist()),
        micros=float(tried.micros[at]),
        hours=float(tried.hours[at]),
    )


def _fastest(columns: PhaseColumns, sequences: Ints, ranges: _Ranges) -> Ints:
    """The steps of both phases in the plan of each range that gives the faster phase as much as the range allows."""
    hours = columns.slope_hours[sequences]
    first = np.where(hours[:, 0] <= hours[:, 1], ranges.high, ranges.low)
    return np.stack((first, STEPS - first), axis=1)


def _split(ranges: _Ranges, into: int = _PARTS) -> list[_Ranges]:
    """Each range split into parts, in batches for the stack; the batch that is compared next comes last."""
    if not len(ranges.which):
        return []
    wide = ranges.high - ranges.low + 1
    cuts = ranges.low[:, None] + wide[:, None] * np.arange(into + 1) // into
    part, row = np.nonzero((cuts[:, 1:] > cuts[:, :-1]).T)
    parts = _Ranges(ranges.which[row], cuts[row, part], cuts[row, part + 1] - 1)
    return [parts.take(slice(first, first + _TOGETHER)) for first in range(0, len(row), _TOGETHER)]
