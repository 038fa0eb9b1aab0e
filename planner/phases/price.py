"""Cost and time of plans in phases: every phase by the bill of a run, moves on top, windows from where a phase begins.

A plan is a row of columns (`sequence`, the earliest first) with a row of shares in steps. The same function gives, for
shares that do not add up to the whole, what the phases cost and take at least: costs and hours rise with each share.
"""

from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from catalog.free_time import elapsed_many
from planner.cost.bill import Bill, bill, part
from planner.phases.columns import PhaseColumns, concave_below_sigma
from planner.phases.moves import Moves
from planner.phases.straight import STEPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Above this many standard deviations, hours at a confidence need not rise with the share of an interruptible phase:
#: the spread of preemption falls faster than the share rises (r / (2 (1 + r) sqrt(ln(1 + r))) is at most 1 / 3.13).
_RISING_UP_TO = 3.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Micro-dollars and confident hours of each plan; `busy` are the hours of each phase without waits and moves.

    `concave` marks phases whose hours rise from here on, the less the longer they are.
    """

    micros: Floats
    hours: Floats
    busy: Floats
    concave: NDArray[np.bool_]

    def take(self, which: NDArray[np.bool_]) -> "Priced":
        """Some of the plans."""
        each = {one.name: getattr(self, one.name)[which] for one in fields(Priced)}
        return Priced(**each)


def phase_bill(columns: PhaseColumns, moving: Moves, sequence: Ints, steps: Ints) -> Bill:
    """The bill of every phase of every plan, flattened phase by phase within each plan."""
    length = sequence.shape[1]
    flat = sequence.reshape(-1)
    egress = columns.data_usd[sequence].copy()
    if length > 1:
        before, after = sequence[:, :-1], sequence[:, 1:]
        stays = moving.near(before, after)
        egress[:, 1:] = np.where(stays, 0.0, egress[:, 1:] + moving.egress_usd(before, after))
    last, first = np.arange(length) == length - 1, np.arange(length) == 0
    beside = np.where(last, 0.0, columns.write_hours[sequence])
    run = part(
        columns.run,
        flat,
        steps.reshape(-1) / STEPS,
        beside_hours=np.asarray(beside, np.float64).reshape(-1),
        egress_usd=egress.reshape(-1),
        first=np.tile(first, len(sequence)),
    )
    return bill(run, columns.confidence, columns.settings)


def priced(columns: PhaseColumns, moving: Moves, sequence: Ints, steps: Ints, *, at_least: bool = False) -> Priced:
    """What each plan costs and takes; with `at_least`, what any plan with at least these shares does."""
    return priced_together(columns, moving, sequence, [(steps, at_least)])[0]


def priced_together(
    columns: PhaseColumns, moving: Moves, sequence: Ints, shares: list[tuple[Ints, bool]]
) -> list[Priced]:
    """The same for several shares (and `at_least`) of the same plans, by one bill."""
    count, length = sequence.shape
    paid = phase_bill(
        columns, moving, np.tile(sequence, (len(shares), 1)), np.concatenate([each[0] for each in shares])
    )
    kept_hours = paid.hours_kept.reshape(len(shares), count, length)
    micros = np.rint(paid.cost_usd.reshape(len(shares), count, length) * 1e6).sum(axis=2)
    sigma = paid.sigma.reshape(len(shares), count, length) <= concave_below_sigma(columns.confidence)
    found = []
    for busy, usd, calm, (steps, at_least) in zip(kept_hours, micros, sigma, shares, strict=True):
        kept, concave = busy, calm & columns.saves(sequence, steps)
        if at_least and NormalDist().inv_cdf(columns.confidence) > _RISING_UP_TO:
            floor = columns.fixed_hours[sequence] + columns.slope_hours[sequence] * (steps / STEPS)
            kept = np.where((columns.run.cluster_rate[sequence] > 0) & ~concave, np.minimum(kept, floor), kept)
        hours = elapsed(columns, moving, sequence, kept, at_least=at_least)
        found.append(Priced(micros=usd, hours=hours.sum(axis=1), busy=kept, concave=concave))
    return found


def elapsed(columns: PhaseColumns, moving: Moves, sequence: Ints, busy: Floats, *, at_least: bool = False) -> Floats:
    """Hours from the end of the phase before to the end of each phase: moves, waits for windows, and busy hours.

    With `at_least` nothing is lost between windows: then, and only then, a later begin never means an earlier end.
    """
    hours = busy.copy()
    hours[:, 0] += columns.first_hours[sequence[:, 0]]
    if sequence.shape[1] > 1:
        hours[:, 1:] += moving.hours(sequence[:, :-1], sequence[:, 1:])
    if not columns.windowed.any():
        return hours
    restart = 0.0 if at_least else columns.settings.restart_hours
    for position in range(sequence.shape[1]):
        for column in np.unique(sequence[columns.windowed[sequence[:, position]], position]).tolist():
            machine, rows = columns.machine[column], np.flatnonzero(sequence[:, position] == column)
            if machine is None:
                raise AssertionError("a column with windows has a machine")
            begun = hours[rows, :position].sum(axis=1) + hours[rows, position] - busy[rows, position]
            spent = elapsed_many(
                machine.windows, columns.start, busy[rows, position], restart_hours=restart, after_hours=begun
            )
            with np.errstate(invalid="ignore"):
                hours[rows, position] += np.where(np.isfinite(spent), spent - busy[rows, position], np.inf)
    return hours
