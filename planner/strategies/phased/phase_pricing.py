"""Exact cost and hours of plans in phases: every phase priced as a run, plus moves, plus waits for windows.

A plan that cannot finish within its windows has infinite cost and hours. This holds if it cannot finish at the job's
confidence, in expectation, or at 95 %: such a plan could not state when it ends.

A plan is a row of columns (`sequence`, the earliest first) with a row of shares in steps. For shares that do not add up
to the whole, the same function gives lower bounds on cost and hours of the phases, since both rise with each share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.availability_windows import elapsed_hours_of_all
from gpuplan.planner.cost.billing_rounding import equally_likely, mean_wait
from gpuplan.planner.cost.cost_breakdown import RISING_UP_TO, CostBreakdown, cost_breakdown, outline, part, z_score
from gpuplan.planner.cost.run_inputs import Run
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.migration_costs import Moves
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, concave_below_sigma

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Micro-dollars and confident hours of each plan."""

    micros: Floats
    hours: Floats

    def take(self, which: NDArray[np.bool_] | slice) -> "Priced":
        """Some of the plans."""
        return Priced(micros=self.micros[which], hours=self.hours[which])


def phase_cost(columns: PhaseColumns, moving: Moves, sequence: Ints, steps: Ints) -> CostBreakdown:
    """The cost breakdown of every phase of every plan, flattened phase by phase within each plan."""
    return cost_breakdown(_phases(columns, moving, sequence, steps), columns.confidence, columns.settings)


def _phases(columns: PhaseColumns, moving: Moves, sequence: Ints, steps: Ints) -> Run:
    """The machines run for every phase of every plan, flattened in the same way."""
    egress, beside = columns.data_usd[sequence], columns.write_hours[sequence]
    if sequence.shape[1] > 1:
        before, after = sequence[:, :-1], sequence[:, 1:]
        moved = egress[:, 1:] + moving.egress_usd(before, after)
        moved[moving.near(before, after)] = 0.0
        egress[:, 1:] = moved
    # The last phase has no successor that needs its checkpoint.
    beside[:, -1] = 0.0
    first = np.zeros(sequence.shape, np.bool_)
    first[:, 0] = True
    return part(
        columns.run,
        sequence.reshape(-1),
        steps.reshape(-1) / STEPS,
        beside_hours=beside.reshape(-1),
        egress_usd=egress.reshape(-1),
        first=first.reshape(-1),
    )


def priced(columns: PhaseColumns, moving: Moves, sequence: Ints, steps: Ints, *, at_least: bool = False) -> Priced:
    """Cost and hours of each plan; with `at_least`, lower bounds for any plan with at least these shares."""
    return priced_together(columns, moving, sequence, [(steps, at_least)])[0]


def priced_together(
    columns: PhaseColumns, moving: Moves, sequence: Ints, shares: list[tuple[Ints, bool]]
) -> list[Priced]:
    """Prices several sets of shares (each with its `at_least`) of the same sequences in one call."""
    count, times = len(sequence), len(shares)
    given, steps = np.concatenate([sequence] * times), np.concatenate([taken for taken, _ in shares])
    run = _phases(columns, moving, given, steps)
    paid = outline(run, columns.confidence, columns.settings)
    busy = paid.hours_at_confidence.reshape(given.shape)
    if abs(z_score(columns.confidence)) > RISING_UP_TO:
        concave = (paid.sigma <= concave_below_sigma(columns.confidence)).reshape(given.shape)
        if columns.intervals.any():
            concave &= run.work_hours.reshape(given.shape) >= columns.intervals[given]
        floor = columns.fixed_hours[given] + columns.slope_hours[given] * (steps / STEPS)
        falls = (
            (columns.run.cluster_rate[given] > 0)
            & ~concave
            & np.repeat([at_least for _, at_least in shares], count)[:, None]
        )
        busy = np.where(falls, np.minimum(busy, floor), busy)
    micros = np.rint(paid.cost_usd * 1e6).reshape(given.shape).sum(axis=1)
    parts = [slice(i * count, (i + 1) * count) for i in range(times)]
    if columns.windowed.any():
        lasting = _lasting(columns, run, given.shape)
        hours = np.concatenate(
            [
                _in_windows(
                    columns, moving, sequence, [hours_busy[mine] for hours_busy in (busy, *lasting)], at_least=at_least
                )
                for mine, (_, at_least) in zip(parts, shares, strict=True)
            ]
        )
        micros[np.isinf(hours).any(axis=1)] = np.inf
    else:
        hours = elapsed(columns, moving, given, busy)
    priced = Priced(micros=micros, hours=hours.sum(axis=1))
    return [priced.take(mine) for mine in parts]


def _lasting(columns: PhaseColumns, run: Run, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Busy hours of each phase of each plan, expected and at 95 %."""
    paid = cost_breakdown(run, columns.confidence, columns.settings)
    return paid.hours.reshape(shape), paid.hours_p95.reshape(shape)


def _in_windows(columns: PhaseColumns, moving: Moves, sequence: Ints, busy: list[Floats], *, at_least: bool) -> Floats:
    """Hours of the first of these busy hours with moves and waits; inf where windows leave too little time for any of them."""
    hours, *others = (elapsed(columns, moving, sequence, busy_hours, at_least=at_least) for busy_hours in busy)
    for other in others:
        hours[np.isinf(other).any(axis=1)] = np.inf
    return hours


def expected_elapsed(columns: PhaseColumns, moving: Moves, sequence: Ints, paid: CostBreakdown) -> Floats:
    """Expected hours of each phase of one plan (the only row of `sequence`), priced as `paid`."""
    hours = elapsed(columns, moving, sequence, paid.hours[None, :])[0]
    if not columns.windowed[sequence].any():
        return np.asarray(hours)
    mean = paid.run_hours + paid.waiting_hours
    runs = equally_likely(paid.hours - mean, mean, paid.log_sigma)
    spent = elapsed(columns, moving, np.repeat(sequence, len(runs), axis=0), runs)
    spent[~np.isfinite(spent).all(axis=1)] = np.inf
    waits = [mean_wait(spent[:, position], runs[:, position]) for position in range(sequence.shape[1])]
    return np.asarray(paid.hours + waits)


def elapsed(columns: PhaseColumns, moving: Moves, sequence: Ints, busy: Floats, *, at_least: bool = False) -> Floats:
    """Hours from the end of the phase before to the end of each phase: moves, waits for windows, and busy hours.

    With `at_least`, a pause between windows costs no restart: only then does a later begin never mean an earlier end.
    """
    hours = busy.copy()
    if columns.run.takeover is not None:
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
            spent = elapsed_hours_of_all(
                machine.windows, columns.start, busy[rows, position], restart_hours=restart, after_hours=begun
            )
            with np.errstate(invalid="ignore"):
                hours[rows, position] += np.where(np.isfinite(spent), spent - busy[rows, position], np.inf)
    return hours
