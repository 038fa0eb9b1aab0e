"""How likely the losses of many interruptible runs stay within their slack: two moments, closed form, thousands at once.

`finish` has the whole distribution of one run by FFT. For arrays of runs the losses L of n segments (n need not be
whole: a sum of compound geometrics is infinitely divisible) are described by

    P(L = 0) = e^(-lambda (tau + d) n)      the run of good luck
    E L = n E K E A,   Var L = n (E K Var A + Var K (E A)^2)      with K, A = X + Y as in `finish`

and, given that there is any, by R plus a gamma of the two moments left, whose distribution function is taken by
Wilson and Hilferty (1931). What that is off by is measured in `benchmarks/spot_in_plan.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Below this chance of a failure its moment is as good as uniform, and the formulas would cancel.
_BRIEF = 1e-3
#: exp() beyond this is a run that never ends.
_NEVER = 700.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentLosses:
    """Hours that one segment loses, per run: mean, variance, the log of the chance to lose nothing, the least loss.

    `paid_hours` is the mean of its whole time that is paid for: work, checkpoint, lost attempts and restarts, not the
    waits. `pause_hours` and `paid_pause_hours` are the mean time from a preemption to the next attempt.
    """

    mean_hours: Floats
    variance: Floats
    log_lossless: Floats
    least_hours: Floats
    paid_hours: Floats
    pause_hours: Floats
    paid_pause_hours: Floats


def segment_losses(length_hours: Floats, rate: Floats, restart_hours: float, wait_hours: float) -> SegmentLosses:
    """The losses of segments of `length_hours` (work and checkpoint) under `rate` preemptions per hour, all above 0."""
    length, lam = np.broadcast_arrays(length_hours, rate)
    failures = np.expm1(np.minimum(lam * length, _NEVER))
    lost, lost_square = _truncated(length, lam)
    again = np.expm1(np.minimum(lam * restart_hours, _NEVER))
    failed, failed_square = _truncated(np.full_like(lam, restart_hours), lam)
    pause = wait_hours + restart_hours + again * (failed + wait_hours)
    pause_variance = (
        wait_hours**2
        + again * (failed_square - failed**2 + wait_hours**2)
        + again * (1.0 + again) * (failed + wait_hours) ** 2
    )
    each = lost + pause
    return SegmentLosses(
        mean_hours=failures * each,
        variance=failures * (lost_square - lost**2 + pause_variance) + failures * (1.0 + failures) * each**2,
        log_lossless=-lam * length,
        least_hours=np.full_like(lam, restart_hours),
        paid_hours=length + failures * (lost + pause - wait_hours * (1.0 + again)),
        pause_hours=pause,
        paid_pause_hours=pause - wait_hours * (1.0 + again),
    )


def _truncated(top: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square of an exponential of `rate` given that it is below `top`."""
    exponent = np.minimum(rate * top, _NEVER)
    brief = exponent < _BRIEF
    odds = np.where(brief, 1.0, np.expm1(np.where(brief, 1.0, exponent)))
    mean = np.where(brief, top / 2 * (1 - exponent / 6), 1 / rate - top / odds)
    square = np.where(brief, top**2 / 3 * (1 - exponent / 4), 2 / rate**2 - (top**2 + 2 * top / rate) / odds)
    return mean, square


def chance_within(losses: SegmentLosses, segments: Floats, slack_hours: Floats) -> Floats:
    """P(losses of so many segments <= slack), broadcast; 0 where the slack is negative."""
    mean = segments * losses.mean_hours
    none = np.exp(losses.log_lossless * segments)
    some = np.maximum(1.0 - none, 1e-300)
    given = mean / some
    variance = np.maximum((segments * losses.variance + mean**2) / some - given**2, 1e-300)
    # The least loss is taken off; rounding may leave a hair less than nothing.
    beyond = np.maximum(given - losses.least_hours, 1e-9 * given + 1e-300)
    shape = beyond**2 / variance
    room = np.maximum(slack_hours - losses.least_hours, 0.0)
    ninth = 1.0 / (9.0 * np.maximum(shape, 1e-12))
    within = normal_cdf((np.cbrt(room / beyond) - 1.0 + ninth) / np.sqrt(ninth))
    within = np.where(room > 0, within, 0.0)
    return np.where(slack_hours < 0, 0.0, none + some * within)


def normal_cdf(z: Floats) -> Floats:
    """The standard normal distribution function, within 7.5e-8 (Abramowitz and Stegun 26.2.17)."""
    at = np.abs(z)
    t = 1.0 / (1.0 + 0.2316419 * at)
    tail = np.exp(-0.5 * np.minimum(at, 38.0) ** 2) * 0.3989422804014327
    tail *= t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    return np.where(z >= 0, 1.0 - tail, tail)
