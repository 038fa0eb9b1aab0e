"""Effect of preemption on a run: expected wall time, its spread, and the best checkpoint interval.

Failures arrive as a Poisson process of rate lambda: n^k times that of one node, since nodes are often lost together. A run of w hours writes a checkpoint every tau hours of work, which
takes d hours. Every failure costs the work since the last checkpoint and R hours of restart.

    tau  = sqrt(2 d / lambda)                                     (Young 1974; Daly 2006, first order)
    E[T] = (w / tau) exp(lambda R) (exp(lambda (tau + d)) - 1) / lambda      (Daly 2006, eq. 13)

The formula is within 0.05 % of Monte Carlo at the rates of spot offers. E[T] hours are paid. If a machine comes back
after an unpaid wait of v hours on average, the wall time is (1 + lambda v) E[T]. Mean waits differ between zones and weeks,
which no run averages out: that spreads ln T by `WAIT_LOG_SPREAD` x the share of waiting, lambda v / (1 + lambda v), and by
`MOST_WAIT_LOG_SPREAD` at most.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.interruption_rates import MOST_WAIT_LOG_SPREAD, WAIT_LOG_SPREAD
from gpuplan.planner.model.job import MOMENT_BYTES, Training
from gpuplan.planner.workload.step_work import Work

#: Checkpoints store weights in fp32.
_WEIGHT_BYTES = 4.0
_GB_PER_GIB = 1.073741824


def checkpoint_gb(work: Work, training: Training) -> float:
    """GB (10^9 bytes) of one checkpoint: trained weights and optimizer state; for explicit jobs, all shardable states."""
    if work.fixed_state_gib is not None:
        return work.fixed_state_gib * _GB_PER_GIB
    return work.trainable_parameters * (_WEIGHT_BYTES + MOMENT_BYTES[training.optimizer]) / 1e9


Floats = NDArray[np.float64]

#: Exponents beyond this mean a run that never ends; its hours are inf.
_NEVER = 700.0


def checkpoint_interval(work_hours: Floats, checkpoint_hours: Floats, rate: Floats) -> Floats:
    """Hours of work between checkpoints (Young/Daly), at most the whole work."""
    with np.errstate(divide="ignore"):
        interval = np.sqrt(2.0 * checkpoint_hours / rate)
    return np.minimum(np.maximum(interval, 1e-9), work_hours)


def expected_hours(work_hours: Floats, checkpoint_hours: Floats, restart_hours: float, rate: Floats) -> Floats:
    """Expected wall hours of `work_hours` of work at `rate` failures per hour; `work_hours` where the rate is 0.

    All arrays broadcast. The result is inf where the run makes no progress.
    """
    work, checkpoint, failures = np.broadcast_arrays(work_hours, checkpoint_hours, rate)
    result = work.astype(np.float64, copy=True)
    hit = (failures > 0) & np.isfinite(work) & (work > 0)
    if hit.any():
        w, d, lam = work[hit], checkpoint[hit], failures[hit]
        result[hit] = _hit_hours(w, checkpoint_interval(w, d, lam), d, restart_hours, lam)
    return result


def _hit_hours(work: Floats, interval: Floats, checkpoint: Floats, restart_hours: float, rate: Floats) -> Floats:
    """Expected hours at a positive failure rate, at this checkpoint interval."""
    exponent, restarts = rate * (interval + checkpoint), rate * restart_hours
    with np.errstate(over="ignore"):
        hours = (work / interval) * np.exp(np.minimum(restarts, _NEVER)) * np.expm1(exponent) / rate
    return np.where(exponent + restarts > _NEVER, np.inf, hours)


def waiting_hours(paid_hours: Floats, rate: Floats, wait_hours: Floats) -> Floats:
    """Hours of waiting for machines to come back during `paid_hours`: one wait per preemption."""
    with np.errstate(invalid="ignore"):
        return np.where(rate * wait_hours > 0, rate * paid_hours * wait_hours, 0.0)


def _loss_squared(exposed_hours: Floats, restart_hours: float, wait_hours: Floats) -> Floats:
    """Mean square of the hours that one failure costs; `exposed_hours` go from one checkpoint to the end of the next."""
    squared = restart_hours**2 + restart_hours * exposed_hours + exposed_hours**2 / 3.0
    return np.asarray(squared + 2.0 * wait_hours * (restart_hours + exposed_hours / 2.0 + wait_hours))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interrupted:
    """Paid hours, unpaid hours of waiting, and the variance of the logarithm of their sum and of the paid ones, per run.

    The variance is ln(1 + c^2), where c is the coefficient of variation (0 for runs that never end), and the square of
    `wait_log_spread`; that of paid hours has no part of the waits.
    """

    run_hours: Floats
    waiting_hours: Floats
    log_variance: Floats
    paid_log_variance: Floats


def wait_log_spread(
    rate: Floats, wait_hours: Floats, *, per_share: float = WAIT_LOG_SPREAD, most: float = MOST_WAIT_LOG_SPREAD
) -> Floats:
    """Log-spread of wall hours between zones and weeks: `per_share` times the share that is waiting, `most` at most."""
    return np.asarray(np.minimum(per_share * rate * wait_hours / (1.0 + rate * wait_hours), most))


def interrupted(
    work_hours: Floats, checkpoint_hours: Floats, restart_hours: float, rate: Floats, *, wait_hours: Floats
) -> Interrupted:
    """Hours and spread of runs at `rate` failures per hour; `work_hours` and `rate` must be above 0."""
    interval = checkpoint_interval(work_hours, checkpoint_hours, rate)
    run_hours = _hit_hours(work_hours, interval, checkpoint_hours, restart_hours, rate)
    waiting = waiting_hours(run_hours, rate, wait_hours)
    exposed_hours, losses = interval + checkpoint_hours, rate * run_hours
    in_zone = _log_variance(losses * _loss_squared(exposed_hours, restart_hours, wait_hours), run_hours + waiting)
    return Interrupted(
        run_hours=run_hours,
        waiting_hours=waiting,
        log_variance=in_zone + wait_log_spread(rate, wait_hours) ** 2,
        paid_log_variance=_log_variance(
            losses * _loss_squared(exposed_hours, restart_hours, np.zeros_like(wait_hours)), run_hours
        ),
    )


def _log_variance(variance: Floats, hours: Floats) -> Floats:
    """The variance of the logarithm of lognormal hours with this variance and mean; 0 for runs that never end."""
    with np.errstate(invalid="ignore"):
        variation = np.where(np.isfinite(hours), np.sqrt(variance) / hours, 0.0)
    return np.asarray(np.log1p(variation**2))
