"""Linear bounds on cost and hours of two phases in order, their move included: which shares may hold a better plan.

A plan with shares x of a sequence costs at least `usd` + sum of slopes x and takes at least `hours` + sum of slopes x. So
at any price of an hour, a plan that meets the deadline costs at least both together less the value of the hours up to
the deadline.

A lower bound on the cost of two phases that ignores the deadline: it ends the search for most jobs.

A plan gives both of its configurations a share x_k of the work. The shares add up to 1. With the linear bounds
cost_k(x) >= A_k + B_k x of `linear_bounds` and the data egress e_k, the plan costs at least

    sum_k A_k + sum_k B_k x_k + max_k e_k  >=  min_k (A_k + B_k + e_k) + the start of the other phase

over its configurations, since the work costs no less than on the one of least B. Where no deadline excludes the cheapest
configuration, that is about the cost of one phase, and a second phase only adds to it. The bound needs no hours.

Interruptible work of w <= W hours takes E[T] >= r w - (r - r_0) min(tau, W) wall hours: all the work takes r W of them,
from the first checkpoint interval tau on any takes r w, and none takes less than r_0 w. That least is
e^(lambda R) / (1 - y) with l = lambda d and -ln(1 - y) = y + l. As the series of the logarithm lies below
y + y^2 / (2 (1 - y)), y >= sqrt(l (l + 2)) - l, and so 1 / (1 - y) >= 1 + l + sqrt(l (l + 2)), which this module uses.
Costs count the expected hours of an uncertain estimate, a factor on both sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.strategies.phased.linear_bounds import Lined, usd_by_the_hour
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.migration_costs import Moves
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def least_usd(some: Lined) -> float:
    """A lower bound in USD on any plan of two phases on these configurations, of which there is at least one."""
    run, setup_hours = some.run, some.run.setup_hours
    per_hour, once_usd = usd_by_the_hour(run)
    start_usd = per_hour * (setup_hours - _spared_hours(some)) + once_usd
    whole_usd = start_usd + per_hour * some.table.cost_breakdown.run_hours + run.egress_usd
    return float(whole_usd.min()) + float(start_usd.min())


def _spared_hours(some: Lined) -> Floats:
    """(r - r_0) min(tau, W) of each configuration, expected; 0 without preemption."""
    run, spared = some.run, np.zeros(len(some))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    work, rate, write = run.work_hours[hit], run.cluster_rate[hit], run.checkpoint_hours[hit]
    lost = rate * write
    restarts = np.exp(rate * some.candidates.question.settings.restart_hours)
    least = restarts * (1.0 + lost + np.sqrt(lost * (lost + 2.0)))
    # The cost breakdown has expected hours, so it is compared with expected work.
    expected_work = work * mean_factor(run.log_sigma[hit])
    beyond = np.maximum(some.table.cost_breakdown.run_hours[hit] - least * expected_work, 0.0)
    spared[hit] = beyond * np.minimum(np.sqrt(2 * write / rate) / work, 1.0)
    return spared


_LONGEST_ROUNDING_HOURS = 1 / 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceLinearBounds:
    """Per sequence: the fixed terms, the slopes of its columns, and prices of an hour used as weights (one per row).

    `rounding` is the largest amount in micro-dollars that rounding up adds to the bills of its phases.
    """

    usd: Floats
    hours: Floats
    slope_usd: Floats
    slope_hours: Floats
    prices: Floats
    rounding: Floats
    deadline_hours: float

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.usd)

    def take(self, which: NDArray[np.bool_] | Ints) -> "SequenceLinearBounds":
        """The lines of some of the sequences."""
        return SequenceLinearBounds(
            usd=self.usd[which],
            hours=self.hours[which],
            slope_usd=self.slope_usd[which],
            slope_hours=self.slope_hours[which],
            prices=self.prices[:, which],
            rounding=self.rounding[which],
            deadline_hours=self.deadline_hours,
        )


def sequence_linear_bounds(columns: PhaseColumns, moving: Moves, sequences: Ints) -> SequenceLinearBounds:
    """The linear bounds of each sequence of two columns, move included, at price 0 of an hour and where both tie."""
    first, second = sequences.T
    usd = columns.fixed_usd[sequences].sum(axis=1) + columns.data_usd[first]
    moved = moving.egress_usd(first, second) + columns.data_usd[second]
    usd += np.where(moving.near(first, second), 0.0, moved)
    usd += columns.first_usd[first]
    hours = columns.fixed_hours[sequences].sum(axis=1) + moving.hours(first, second)
    hours += columns.first_hours[first]
    hours += columns.write_hours[first]
    slope_usd, slope_hours = columns.slope_usd[sequences], columns.slope_hours[sequences]
    prices = [np.zeros(len(sequences))]
    if np.isfinite(columns.deadline_hours):
        with np.errstate(divide="ignore", invalid="ignore"):
            tie = (slope_usd[:, 1] - slope_usd[:, 0]) / (slope_hours[:, 0] - slope_hours[:, 1])
        prices.append(np.where(np.isfinite(tie) & (tie > 0), tie, 0.0))
    return SequenceLinearBounds(
        usd=usd,
        hours=hours,
        slope_usd=slope_usd,
        slope_hours=slope_hours,
        prices=np.stack(prices),
        rounding=_rounding(columns)[sequences].sum(axis=1),
        deadline_hours=columns.deadline_hours,
    )


def _rounding(columns: PhaseColumns) -> Floats:
    """The most micro-dollars that rounding up to a billing step adds to a phase, where steps are short."""
    run = columns.run
    steps = np.where(run.billing_step_hours <= _LONGEST_ROUNDING_HOURS, run.billing_step_hours, 0.0)
    return np.ceil(run.nodes * run.usd_per_node_hour * steps * 1e6) + 1.0


def may_win(
    linear_bounds: SequenceLinearBounds, which: Ints, low: Ints, least_micros: float | Floats
) -> NDArray[np.bool_]:
    """Ranges in which, by the linear bounds, a plan within the deadline may cost less than `least_micros`.

    `low` are the least shares of both phases.
    """
    deadline, share = linear_bounds.deadline_hours, low / STEPS
    left = 1.0 - share.sum(axis=1)
    slope_usd, slope_hours = linear_bounds.slope_usd[which], linear_bounds.slope_hours[which]
    usd = linear_bounds.usd[which] + (slope_usd * share).sum(axis=1)
    hours = linear_bounds.hours[which] + (slope_hours * share).sum(axis=1)
    mu = linear_bounds.prices[:, which]
    bound = usd + left * _lesser(slope_usd + mu[:, :, None] * slope_hours)
    if np.isfinite(deadline):
        bound += mu * (hours - deadline)
    # Half a micro-dollar per phase: plans cost whole micro-dollars, rounded per phase.
    may = ((bound - 1e-12 * np.abs(bound)) * 1e6 < least_micros + 1.0).all(axis=0)
    return np.asarray(may & (hours + left * _lesser(slope_hours) <= deadline * (1 + 1e-12)))


def _lesser(values: Floats) -> Floats:
    """The lesser of both phases' figures (the last axis): numpy is slow over axes of length two."""
    return np.minimum(values[..., 0], values[..., 1])
