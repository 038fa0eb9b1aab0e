"""The best shares of many sequences of columns at once: boxes of shares, halved until none can hold a better plan.

A box gives each phase from `low` to `high` steps of the work. Costs and hours of phases rise with their shares, so the
plan at `low` costs and takes no more than any in the box; and by the straight lines below them, for any price of an
hour, what is left to share out costs at least the cheapest line's rate. A box that these bounds leave no better plan
is dropped; of the others one plan inside is priced (what is left goes to the fastest), and they are halved. A box of
one plan is priced as it is. Ends with the exact best over all shares in steps; all boxes of a level are one array.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.phases.columns import STEPS, PhaseColumns
from planner.phases.moves import Moves
from planner.phases.price import Priced, priced

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Boxes after which ties within the rounding of bills are left as they are.
_EXACT = 300_000
_LONGEST_ROUNDING_HOURS = 1 / 60
#: Boxes looked at together: enough for arrays to pay, few enough for memory.
_TOGETHER = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan in phases: columns in order, steps of the work for each, micro-dollars and confident hours in all.

    `unsaved` are the micro-dollars by which another plan may undercut it at most: 0 but where ties were left.
    """

    sequence: tuple[int, ...]
    steps: tuple[int, ...]
    micros: float
    hours: float
    unsaved: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lines:
    """Per sequence: what is fixed, the slopes of its columns, and prices of an hour to weigh them by (one per row)."""

    usd: Floats
    hours: Floats
    slope_usd: Floats
    slope_hours: Floats
    prices: Floats
    rounding: Floats
    deadline_hours: float


def best_shares(columns: PhaseColumns, moving: Moves, sequences: Ints, most_micros: float) -> Found | None:
    """The cheapest plan in time on any of the sequences, if one costs less than `most_micros`, else None.

    All sequences have the same length. Of plans that cost the same the first found stays.
    """
    count, length = sequences.shape
    if not count:
        return None
    lines = _lines(columns, moving, sequences)
    high = np.minimum(columns.most_steps[sequences], STEPS - length + 1)
    stack = [(np.arange(count), np.ones_like(high), high)]
    best, least = None, most_micros
    looked, unsaved = 0, 0.0
    while stack:
        go_on()
        which, low, high = stack.pop()
        looked += len(which)
        low, high, alive = _tightened(low, high)
        which, low, high = which[alive], low[alive], high[alive]
        tied = lines.rounding[which] if looked > _EXACT and best is not None else None
        alive = _may_win(lines, which, low, least if tied is None else least - tied)
        if tied is not None:
            unsaved = max(unsaved, float(tied.max(initial=0.0)))
        which, low, high = which[alive], low[alive], high[alive]
        if not len(which):
            continue
        inside = _fastest(columns, sequences[which], low, high)
        tried = priced(columns, moving, sequences[which], inside)
        good = (tried.hours <= columns.deadline_hours) & (tried.micros < least)
        if good.any():
            # Of the cheapest the fastest; of those the first.
            at = int(np.lexsort((tried.hours, np.where(good, tried.micros, np.inf)))[0])
            least = float(tried.micros[at])
            best = Found(
                sequence=tuple(sequences[which[at]].tolist()),
                steps=tuple(inside[at].tolist()),
                micros=least,
                hours=float(tried.hours[at]),
            )
        open_ = (high > low).any(axis=1)
        which, low, high = which[open_], low[open_], high[open_]
        if not len(which):
            continue
        floor = priced(columns, moving, sequences[which], low, at_least=True)
        alive = (floor.hours <= columns.deadline_hours) & (floor.micros < least)
        which, low, high = which[alive], low[alive], high[alive]
        if not len(which):
            continue
        rising = _rising(columns, moving, sequences[which], floor.take(alive), (low, high))
        alive = _may_win(lines, which, low, least, rising)
        stack += _halved(which[alive], low[alive], high[alive])
    return None if best is None else replace(best, unsaved=unsaved)


def _lines(columns: PhaseColumns, moving: Moves, sequences: Ints) -> _Lines:
    """The straight lines under each sequence, moves included, and the prices of an hour at which two of its lines tie."""
    length = sequences.shape[1]
    before, after = sequences[:, :-1], sequences[:, 1:]
    usd = columns.fixed_usd[sequences].sum(axis=1) + columns.data_usd[sequences[:, 0]]
    moved = moving.egress_usd(before, after) + columns.data_usd[after]
    usd += np.where(moving.near(before, after), 0.0, moved).sum(axis=1)
    usd += columns.first_usd[sequences[:, 0]]
    hours = columns.fixed_hours[sequences].sum(axis=1) + moving.hours(before, after).sum(axis=1)
    hours += columns.first_hours[sequences[:, 0]]
    hours += columns.write_hours[before].sum(axis=1)
    slope_usd, slope_hours = columns.slope_usd[sequences], columns.slope_hours[sequences]
    prices = [np.zeros(len(sequences))]
    for i in range(length if np.isfinite(columns.deadline_hours) else 0):
        for j in range(i):
            with np.errstate(divide="ignore", invalid="ignore"):
                tie = (slope_usd[:, i] - slope_usd[:, j]) / (slope_hours[:, j] - slope_hours[:, i])
            prices.append(np.where(np.isfinite(tie) & (tie > 0), tie, 0.0))
    return _Lines(
        usd=usd,
        hours=hours,
        slope_usd=slope_usd,
        slope_hours=slope_hours,
        prices=np.stack(prices),
        rounding=_rounding(columns)[sequences].sum(axis=1),
        deadline_hours=columns.deadline_hours,
    )


def _rounding(columns: PhaseColumns) -> Floats:
    """Micro-dollars that rounding up to a step of the bill may add to a phase, where steps are short."""
    run = columns.run
    steps = np.where(run.billing_step_hours <= _LONGEST_ROUNDING_HOURS, run.billing_step_hours, 0.0)
    return np.ceil(run.nodes * run.usd_per_node_hour * steps * 1e6) + 1.0


def _tightened(low: Ints, high: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The same boxes without what cannot add up to the whole, and which of them hold anything."""
    others = high.sum(axis=1, keepdims=True) - high
    low = np.maximum(low, STEPS - others)
    others = low.sum(axis=1, keepdims=True) - low
    high = np.minimum(high, STEPS - others)
    return low, high, np.asarray((low <= high).all(axis=1))


def _rising(
    columns: PhaseColumns, moving: Moves, sequences: Ints, floor: Priced, box: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    """Hours of the plan at the low end of each box, and by how much each phase's grow with its share, at least.

    Hours of interruptible phases are concave in the share from the first checkpoint interval on, so above the chord of
    their box; before that, their straight line counts. A phase that may wait for its window afterwards adds nothing for
    certain.
    """
    low, high = box
    slope, hours = columns.slope_hours[sequences], floor.hours
    spot = columns.run.cluster_rate[sequences] > 0
    if spot.any() and np.isfinite(columns.deadline_hours):
        top = priced(columns, moving, sequences, high, at_least=True).busy
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = (top - floor.busy) / ((high - low) / STEPS)
        straight = low / STEPS * columns.run.work_hours[sequences] >= columns.intervals[sequences]
        known = straight & np.isfinite(chord) & columns.concave
        line = columns.fixed_hours[sequences] + slope * (low / STEPS)
        hours = hours - np.where(spot & ~known, np.maximum(floor.busy - line, 0.0), 0.0).sum(axis=1)
        slope = np.where(spot & known, chord, slope)
    later = np.cumsum(columns.windowed[sequences][:, ::-1], axis=1)[:, ::-1] - columns.windowed[sequences]
    return hours, np.where(later > 0, 0.0, slope)


def _may_win(
    lines: _Lines, which: Ints, low: Ints, least_micros: float | Floats, from_low: tuple[Floats, Floats] | None = None
) -> NDArray[np.bool_]:
    """Boxes in which, by straight lines, a plan in time may cost less than `least_micros`.

    `from_low` are the hours of the plan at `low` and the slopes from there, where they are known better.
    """
    deadline, share = lines.deadline_hours, low / STEPS
    left = 1.0 - share.sum(axis=1)
    slope_usd, slope_hours = lines.slope_usd[which], lines.slope_hours[which]
    hours = lines.hours[which] + (slope_hours * share).sum(axis=1)
    if from_low is not None:
        hours, slope_hours = from_low
    may = hours + left * slope_hours.min(axis=1) <= deadline * (1 + 1e-12)
    usd = lines.usd[which] + (slope_usd * share).sum(axis=1)
    for price in lines.prices:
        mu = price[which]
        rate = (slope_usd + mu[:, None] * slope_hours).min(axis=1)
        bound = usd + left * rate
        if np.isfinite(deadline):
            bound += mu * (hours - deadline)
        # Half a micro-dollar: plans cost whole ones, up to the rounding of each phase.
        may &= (bound - 1e-12 * np.abs(bound)) * 1e6 < least_micros + 0.5 * low.shape[1]
    return np.asarray(may)


def _fastest(columns: PhaseColumns, sequences: Ints, low: Ints, high: Ints) -> Ints:
    """The plan of each box that gives what is left to the fastest of its columns, as far as the box allows."""
    steps = low.copy()
    rows = np.arange(len(steps))
    for column in np.argsort(columns.slope_hours[sequences], axis=1, kind="stable").T:
        left = STEPS - steps.sum(axis=1)
        steps[rows, column] += np.minimum(left, high[rows, column] - low[rows, column])
    return steps


def _halved(which: Ints, low: Ints, high: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Each box in two along its widest side, in lots for the stack; the lot that is worked on next comes last."""
    if not len(which):
        return []
    rows = np.arange(len(which))
    side = np.argmax(high - low, axis=1)
    middle = (low[rows, side] + high[rows, side]) // 2
    less, more = high.copy(), low.copy()
    less[rows, side] = middle
    more[rows, side] = middle + 1
    which, low, high = np.concatenate((which, which)), np.concatenate((low, more)), np.concatenate((less, high))
    return [
        (which[first : first + _TOGETHER], low[first : first + _TOGETHER], high[first : first + _TOGETHER])
        for first in range(0, len(which), _TOGETHER)
    ]
