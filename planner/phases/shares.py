"""The best shares of many sequences of columns at once: boxes of shares, cut up until none can hold a better plan.

A box gives each phase from `low` to `high` steps of the work. Costs and hours of phases rise with their shares, so the
plan at `low` costs and takes no more than any in the box; and by the straight lines below them, for any price of an
hour, what is left to share out costs at least the cheapest line's rate. A box that these bounds leave no better plan
is dropped; of the others one plan inside is priced (what is left goes to the fastest), and they are cut up. A box of
one plan is priced as it is. Ends with the exact best over all shares in steps; all boxes of a level are one array.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.phases.columns import PhaseColumns
from planner.phases.moves import Moves
from planner.phases.price import Priced, priced, priced_together
from planner.phases.sequence_lines import FromLow, SequenceLines, may_win, sequence_lines, within_lines
from planner.phases.straight import STEPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Boxes after which ties within the rounding of bills are left as they are.
_EXACT = 300_000
#: Boxes looked at together: enough for arrays to pay, few enough for memory.
_TOGETHER = 16_384
#: Plans that are priced one by one rather than by boxes: as many as take about as long as one more cut.
_FEW_PLANS = 1_024
#: Parts that a box is cut into: more than two, since a step takes about as long for twenty boxes as for one.
_PARTS = 16
#: Parts that the boxes of a few sequences are cut into at first, which mostly leaves few enough plans to price them all.
_PARTS_OF_FEW = 64
#: Steps to leave to the faster phase beyond what straight lines ask for, tried before all else.
_NEARBY = np.array([0, 1, 3, 10, 30, 100, 300, 1_000, 3_000])


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


def best_shares(
    columns: PhaseColumns, moving: Moves, sequences: Ints, most_micros: float, *, any_will_do: bool = False
) -> Found | None:
    """The cheapest plan in time on any of the sequences, if one costs less than `most_micros`, else None.

    With `any_will_do` the first found that costs less. All sequences have the same length. Of plans that cost the same to
    the micro-dollar the first found stays, of those priced together the fastest: which that is rests on the job and the
    prices alone.
    """
    if not len(sequences):
        return None
    lines = sequence_lines(columns, moving, sequences)
    low, high = _all_shares(columns, sequences)
    alive = may_win(lines, np.arange(len(sequences)), low, most_micros)
    if not alive.all():
        sequences, lines, low, high = sequences[alive], lines.take(alive), low[alive], high[alive]
    if not len(sequences):
        return None
    best = _first(columns, moving, sequences, high, lines=lines, most_micros=most_micros)
    least = most_micros if best is None else best.micros
    low, high, alive = _tightened(*within_lines(lines, low, high, least))
    stack = [(np.flatnonzero(alive), low[alive], high[alive])]
    if best is not None and len(sequences) <= _PARTS:
        # One of these boxes holds the best plan so far, so that as they are they cannot all be dropped.
        stack = _parts(*stack[0], into=_PARTS_OF_FEW)
    looked, unsaved = 0, 0.0
    while stack and not (any_will_do and best is not None):
        go_on()
        which, low, high = stack.pop()
        looked += len(which)
        low, high, alive = _tightened(low, high)
        which, low, high = which[alive], low[alive], high[alive]
        tied = lines.rounding[which] if looked > _EXACT and best is not None else None
        alive = may_win(lines, which, low, least if tied is None else least - tied)
        if tied is not None:
            unsaved = max(unsaved, float(tied.max(initial=0.0)))
        which, low, high = which[alive], low[alive], high[alive]
        if not len(which):
            continue
        if _plans(low, high) <= _FEW_PLANS:
            which, steps = _every_plan(which, low, high)
            tried = priced(columns, moving, sequences[which], steps)
            better = _better(tried, columns.deadline_hours, least)
            if better is not None:
                best, least = _found(sequences[which], steps, tried, better), float(tried.micros[better])
            continue
        given, inside = sequences[which], _fastest(columns, sequences[which], low, high)
        tried, floor, top = priced_together(columns, moving, given, [(inside, False), (low, True), (high, True)])
        better = _better(tried, columns.deadline_hours, least)
        if better is not None:
            best, least = _found(given, inside, tried, better), float(tried.micros[better])
        alive = (high > low).any(axis=1) & (floor.hours <= columns.deadline_hours) & (floor.micros < least)
        which, low, high = which[alive], low[alive], high[alive]
        if not len(which):
            continue
        floor, top = floor.take(alive), top.take(alive)
        usd = _usd_from(columns, lines.take(which), sequences[which], floor, low)
        hours, slope_hours = _rising(columns, sequences[which], floor, top, (low, high))
        alive = may_win(lines, which, low, least, FromLow(usd=usd, hours=hours, slope_hours=slope_hours))
        stack += _parts(which[alive], low[alive], high[alive])
    return None if best is None else replace(best, unsaved=unsaved)


def _all_shares(columns: PhaseColumns, sequences: Ints) -> tuple[Ints, Ints]:
    """The box of all shares of each sequence."""
    length = sequences.shape[1]
    return np.ones_like(sequences), np.minimum(columns.most_steps[sequences], STEPS - length + 1)


def _plans(low: Ints, high: Ints) -> float:
    """How many plans these boxes hold at most."""
    return float((high - low + 1.0)[:, :-1].prod(axis=1).sum())


def _every_plan(which: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Every plan of each box: the sequence that it is of, and its steps."""
    wide = (high - low + 1)[:, :-1]
    count = wide.prod(axis=1)
    row = np.repeat(np.arange(len(which)), count)
    left, steps = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count), low[row]
    for phase in range(wide.shape[1]):
        steps[:, phase] += left % wide[row, phase]
        left //= wide[row, phase]
    steps[:, -1] = STEPS - steps[:, :-1].sum(axis=1)
    fits = (steps[:, -1] >= low[row, -1]) & (steps[:, -1] <= high[row, -1])
    return which[row[fits]], steps[fits]


def _first(
    columns: PhaseColumns, moving: Moves, sequences: Ints, high: Ints, *, lines: SequenceLines, most_micros: float
) -> Found | None:
    """The best of some plans of two phases next to where their straight lines are just in time, to begin with."""
    if sequences.shape[1] != 2 or not np.isfinite(lines.deadline_hours):
        return None
    # The more of the cheaper phase the better, up to the deadline; what the lines leave out costs a little of it.
    cheap = np.argmin(lines.slope_usd, axis=1)[:, None]
    slow, fast = (np.take_along_axis(lines.slope_hours, at, axis=1)[:, 0] for at in (cheap, 1 - cheap))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(slow > fast, (lines.deadline_hours - lines.hours - fast) / (slow - fast), 1.0)
    most, least = (
        np.take_along_axis(each, at, axis=1)[:, 0] for each, at in ((high, cheap), (STEPS - high, 1 - cheap))
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
    return None if better is None else _found(given, tried_steps, tried, better)


def _better(tried: Priced, deadline_hours: float, least_micros: float) -> int | None:
    """The cheapest plan in time that costs less than `least_micros`; of the cheapest the fastest, of those the first."""
    good = (tried.hours <= deadline_hours) & (tried.micros < least_micros)
    return int(np.lexsort((tried.hours, np.where(good, tried.micros, np.inf)))[0]) if good.any() else None


def _found(sequences: Ints, steps: Ints, tried: Priced, at: int) -> Found:
    return Found(
        sequence=tuple(sequences[at].tolist()),
        steps=tuple(steps[at].tolist()),
        micros=float(tried.micros[at]),
        hours=float(tried.hours[at]),
    )


def _tightened(low: Ints, high: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The same boxes without what cannot add up to the whole, and which of them hold anything."""
    others = high.sum(axis=1, keepdims=True) - high
    low = np.maximum(low, STEPS - others)
    others = low.sum(axis=1, keepdims=True) - low
    high = np.minimum(high, STEPS - others)
    return low, high, np.asarray((low <= high).all(axis=1))


def _rising(
    columns: PhaseColumns, sequences: Ints, floor: Priced, top: Priced, box: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    """Hours of the plan at the low end of each box, and by how much each phase's grow with its share, at least.

    `floor` and `top` are what either end of the box costs and takes at least.

    Hours of interruptible phases are concave in the share from the first checkpoint interval on, so above the chord of
    their box; before that, their straight line counts. A phase that may wait for its window afterwards adds nothing for
    certain.
    """
    low, high = box
    slope, hours = columns.slope_hours[sequences], floor.hours
    spot = columns.run.cluster_rate[sequences] > 0
    if spot.any() and np.isfinite(columns.deadline_hours):
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = (top.busy - floor.busy) / ((high - low) / STEPS)
        known = floor.concave & np.isfinite(chord)
        line = columns.fixed_hours[sequences] + slope * (low / STEPS)
        hours = hours - np.where(spot & ~known, np.maximum(floor.busy - line, 0.0), 0.0).sum(axis=1)
        slope = np.where(spot & known, chord, slope)
    later = np.cumsum(columns.windowed[sequences][:, ::-1], axis=1)[:, ::-1] - columns.windowed[sequences]
    return hours, np.where(later > 0, 0.0, slope)


def _usd_from(columns: PhaseColumns, lines: SequenceLines, sequences: Ints, floor: Priced, low: Ints) -> Floats:
    """What the cost of each box rises from with the slopes of its `lines`, at least, in USD; -inf where no more is known.

    `floor` is what the low end of each box costs. Even bills rise so from any share on, rounding aside; those of
    interruptible phases from the first checkpoint interval on, since every hour of work beyond costs as much.
    """
    saves = columns.run.work_hours[sequences] * (low / STEPS) >= columns.intervals[sequences]
    return np.where(lines.even & saves.all(axis=1), (floor.micros - lines.rounding) / 1e6, -np.inf)


def _fastest(columns: PhaseColumns, sequences: Ints, low: Ints, high: Ints) -> Ints:
    """The plan of each box that gives what is left to the fastest of its columns, as far as the box allows."""
    steps = low.copy()
    rows = np.arange(len(steps))
    for column in np.argsort(columns.slope_hours[sequences], axis=1, kind="stable").T:
        left = STEPS - steps.sum(axis=1)
        steps[rows, column] += np.minimum(left, high[rows, column] - low[rows, column])
    return steps


def _parts(which: Ints, low: Ints, high: Ints, into: int = _PARTS) -> list[tuple[Ints, Ints, Ints]]:
    """Each box cut along its widest side, in lots for the stack; the lot that is worked on next comes last."""
    if not len(which):
        return []
    side = np.argmax(high - low, axis=1)
    rows = np.arange(len(which))
    begins, wide = low[rows, side], (high - low)[rows, side] + 1
    cuts = begins[:, None] + wide[:, None] * np.arange(into + 1) // into
    some = (cuts[:, 1:] > cuts[:, :-1]).T
    part, row = np.nonzero(some)
    which, low, high, side = which[row], low[row], high[row], side[row]
    at = np.arange(len(row))
    low[at, side], high[at, side] = cuts[row, part], cuts[row, part + 1] - 1
    return [
        (which[first : first + _TOGETHER], low[first : first + _TOGETHER], high[first : first + _TOGETHER])
        for first in range(0, len(which), _TOGETHER)
    ]
