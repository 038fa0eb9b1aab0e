"""Straight lines under the cost and time of sequences of columns, moves included: what shares may hold a better plan.

A plan with shares x of a sequence costs at least `usd` + sum of slopes x and takes at least `hours` + sum of slopes x; so
at any price of an hour, a plan in time costs at least both together less what the hours up to the deadline are worth.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.phases.columns import PhaseColumns
from planner.phases.moves import Moves
from planner.phases.straight import STEPS, least_of_few

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LONGEST_ROUNDING_HOURS = 1 / 60
#: What the arithmetic of a bound may be off by, relatively to its largest part.
_ROUNDING = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceLines:
    """Per sequence: what is fixed, the slopes of its columns, and prices of an hour to weigh them by (one per row).

    `rounding` are the micro-dollars that bills of its phases may add to the lines by rounding up, those aside that are not
    `even`: billed by long steps, by the term, or for a minimum that is longer than a set-up.
    """

    usd: Floats
    hours: Floats
    slope_usd: Floats
    slope_hours: Floats
    prices: Floats
    rounding: Floats
    even: NDArray[np.bool_]
    deadline_hours: float

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.usd)

    def take(self, which: NDArray[np.bool_] | Ints) -> "SequenceLines":
        """The lines of some of the sequences."""
        return SequenceLines(
            usd=self.usd[which],
            hours=self.hours[which],
            slope_usd=self.slope_usd[which],
            slope_hours=self.slope_hours[which],
            prices=self.prices[:, which],
            rounding=self.rounding[which],
            even=self.even[which],
            deadline_hours=self.deadline_hours,
        )


def sequence_lines(columns: PhaseColumns, moving: Moves, sequences: Ints) -> SequenceLines:
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
    return SequenceLines(
        usd=usd,
        hours=hours,
        slope_usd=slope_usd,
        slope_hours=slope_hours,
        prices=np.stack(prices),
        rounding=_rounding(columns)[sequences].sum(axis=1),
        even=_even(columns)[sequences].all(axis=1),
        deadline_hours=columns.deadline_hours,
    )


def _rounding(columns: PhaseColumns) -> Floats:
    """Micro-dollars that rounding up to a step of the bill may add to a phase, where steps are short."""
    run = columns.run
    steps = np.where(run.billing_step_hours <= _LONGEST_ROUNDING_HOURS, run.billing_step_hours, 0.0)
    return np.ceil(run.nodes * run.usd_per_node_hour * steps * 1e6) + 1.0


def _even(columns: PhaseColumns) -> NDArray[np.bool_]:
    """Configurations whose bills rise with their hours but for that rounding."""
    run = columns.run
    short = (run.billing_step_hours <= _LONGEST_ROUNDING_HOURS) & (run.term_hours == 0)
    return np.asarray(short & (run.billing_minimum_hours <= run.setup_hours(columns.settings)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FromLow:
    """Per box: USD (-inf where unknown) and hours of the plan at its low end, and the slopes of the hours from there."""

    usd: Floats
    hours: Floats
    slope_hours: Floats


def may_win(
    lines: SequenceLines,
    which: Ints,
    low: Ints,
    least_micros: float | Floats,
    from_low: FromLow | None = None,
) -> NDArray[np.bool_]:
    """Boxes in which, by straight lines, a plan in time may cost less than `least_micros`.

    With `from_low` the lines begin at the low ends of the boxes, where more is known of these.
    """
    deadline, share = lines.deadline_hours, low / STEPS
    left = 1.0 - share.sum(axis=1)
    slope_usd, slope_hours = lines.slope_usd[which], lines.slope_hours[which]
    usd = lines.usd[which] + (slope_usd * share).sum(axis=1)
    if from_low is None:
        hours = lines.hours[which] + (slope_hours * share).sum(axis=1)
    else:
        usd = np.maximum(usd, from_low.usd)
        hours, slope_hours = from_low.hours, from_low.slope_hours
    mu = lines.prices[:, which]
    bound = usd + left * least_of_few(slope_usd + mu[:, :, None] * slope_hours)
    if np.isfinite(deadline):
        bound += mu * (hours - deadline)
    # Half a micro-dollar: plans cost whole ones, up to the rounding of each phase.
    may = ((bound - 1e-12 * np.abs(bound)) * 1e6 < least_micros + 0.5 * low.shape[1]).all(axis=0)
    return np.asarray(may & (hours + left * least_of_few(slope_hours) <= deadline * (1 + 1e-12)))


def within_lines(lines: SequenceLines, low: Ints, high: Ints, least_micros: float) -> tuple[Ints, Ints]:
    """Boxes, one per sequence, less the ends at which no plan in time costs less than `least_micros`.

    With x of the work on one phase and the rest on the cheapest of the others, the lines rise or fall with x; where they
    reach the limit its share ends. A step is left on either side, which is more than arithmetic takes.
    """
    cost = lines.usd + lines.prices * (lines.hours - lines.deadline_hours if lines.prices.any() else 0.0)
    slopes = lines.slope_usd + lines.prices[:, :, None] * lines.slope_hours
    limit = np.full((len(cost) + 1, 1), (least_micros + 0.5 * low.shape[1]) / 1e6)
    limit[-1] = lines.deadline_hours
    fixed, slopes = np.concatenate((cost, lines.hours[None])), np.concatenate((slopes, lines.slope_hours[None]))
    low, high = low.copy(), high.copy()
    for phase in range(low.shape[1]):
        others = least_of_few(slopes, phase)
        rise, room = slopes[:, :, phase] - others, limit - fixed - others
        room += _ROUNDING * (np.abs(limit) + np.abs(fixed) + np.abs(others))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = room / rise
        most = np.where(rise > 0, ends, 1.0).min(axis=0)
        least = np.where(rise < 0, ends, 0.0).max(axis=0)
        high[:, phase] = np.minimum(high[:, phase], np.floor(np.clip(most, 0.0, 1.0) * STEPS) + 1)
        low[:, phase] = np.maximum(low[:, phase], np.ceil(np.clip(least, 0.0, 1.0) * STEPS) - 1)
    return low, high
