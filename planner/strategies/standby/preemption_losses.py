"""The probability that the losses of many interruptible runs stay within their slack: two moments, in closed form.

`loss_lattice` has the whole distribution of one run by FFT. For arrays of runs, the losses L of n segments (n need not be
whole: a sum of compound geometrics is infinitely divisible) are described by

    P(L = 0) = e^(-lambda (tau + d) n)      the probability of no loss
    E L = n E K E A,   Var L = n (E K Var A + Var K (E A)^2)

with K the failures of a segment and A = X + Y the hours lost and paused by each. Given any loss, L is R plus a gamma
variable with the two remaining moments, whose distribution function is that of Wilson and Hilferty (1931).
`test_standby_switching` compares it with the exact distribution.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Below this probability of a failure its moment is nearly uniform, and the formulas would cancel.
_BRIEF = 1e-3
#: exp() beyond this is a run that never ends.
_NEVER = 700.0
#: From this many deviations on, the normal distribution function is 1 to the last digit of a float.
CERTAIN = 8.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentLosses:
    """Hours that one segment loses, per run: mean, variance, log of the probability of no loss, the least loss.

    `paid_hours` is the mean of its billed time: work, checkpoint, lost attempts and restarts, without waits. `pause_hours`
    and `paid_pause_hours` are the mean time from a preemption to the next attempt.
    """

    mean_hours: Floats
    variance: Floats
    log_lossless: Floats
    least_hours: Floats
    paid_hours: Floats
    pause_hours: Floats
    paid_pause_hours: Floats

    def at(self, which: Any) -> "SegmentLosses":
        """The losses at these elements."""
        return SegmentLosses(
            mean_hours=self.mean_hours[which],
            variance=self.variance[which],
            log_lossless=self.log_lossless[which],
            least_hours=self.least_hours[which],
            paid_hours=self.paid_hours[which],
            pause_hours=self.pause_hours[which],
            paid_pause_hours=self.paid_pause_hours[which],
        )


#: The fields of the losses of each run.
LOSSES = tuple(field.name for field in fields(SegmentLosses))


def segment_losses(length_hours: Floats, rate: Floats, restart_hours: float, wait_hours: Floats) -> SegmentLosses:
    """The losses of segments of `length_hours` (work and checkpoint) at `rate` preemptions per hour, all above 0.

    `wait_hours` has the shape of the rate.
    Figures that depend on the rate alone keep the rate's shape; the two shapes broadcast.
    """
    exponent = np.minimum(rate * length_hours, _NEVER)
    failures = np.expm1(exponent)
    lost, lost_square = _truncated(length_hours, rate, exponent, failures)
    exponent = np.minimum(rate * restart_hours, _NEVER)
    again = np.expm1(exponent)
    failed, failed_square = _truncated(restart_hours, rate, exponent, again)
    failed_restart_hours = failed + wait_hours
    pause = wait_hours + restart_hours + again * failed_restart_hours
    pause_variance = (
        wait_hours**2
        + again * (failed_square - failed**2 + wait_hours**2)
        + again * (1.0 + again) * failed_restart_hours**2
    )
    per_failure, waits = lost + pause, wait_hours * (1.0 + again)
    return SegmentLosses(
        mean_hours=failures * per_failure,
        variance=failures * (lost_square - lost**2 + pause_variance) + failures * (1.0 + failures) * per_failure**2,
        log_lossless=-rate * length_hours,
        least_hours=np.full_like(rate, restart_hours),
        paid_hours=length_hours + failures * (per_failure - waits),
        pause_hours=pause,
        paid_pause_hours=pause - waits,
    )


def _truncated(top: Floats | float, rate: Floats, exponent: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square of an exponential of `rate` given that it is below `top`; `odds` are e^(rate top) - 1."""
    brief = exponent < _BRIEF
    if not brief.any():
        return 1 / rate - top / odds, 2 / rate**2 - (top**2 + 2 * top / rate) / odds
    odds = np.where(brief, 1.0, odds)
    mean = np.where(brief, top / 2 * (1 - exponent / 6), 1 / rate - top / odds)
    square = np.where(brief, top**2 / 3 * (1 - exponent / 4), 2 / rate**2 - (top**2 + 2 * top / rate) / odds)
    return mean, square


def chance_within(losses: SegmentLosses, segments: Floats, slack_hours: Floats) -> Floats:
    """P(losses of so many segments <= slack), broadcast; 0 where the slack is negative."""
    # In place where possible: moving arrays takes most of the time.
    mean = segments * losses.mean_hours
    none = losses.log_lossless * segments
    none = np.exp(none, out=none)
    some = 1.0 - none
    some = np.maximum(some, 1e-300, out=some)
    given = mean / some
    variance = segments * losses.variance
    mean *= mean
    variance += mean
    variance /= some
    variance -= given * given
    variance = np.maximum(variance, 1e-300, out=variance)
    # The least loss is subtracted; rounding may leave slightly less than zero.
    hair = given * 1e-9
    hair += 1e-300
    given -= losses.least_hours
    beyond = np.maximum(given, hair, out=given)
    shape = np.multiply(beyond, beyond, out=hair)
    shape /= variance
    room = np.asarray(slack_hours - losses.least_hours)
    room = np.maximum(room, 0.0, out=room)
    ninth = np.maximum(shape, 1e-12, out=shape)
    ninth *= 9.0
    ninth = np.divide(1.0, ninth, out=ninth)
    z = np.asarray(room / beyond)
    z = np.cbrt(z, out=z)
    z -= 1.0
    z += ninth
    z /= np.sqrt(ninth, out=ninth)
    within = normal_cdf(z)
    # No slack leaves no room either.
    scarce = bool(room.min(initial=np.inf) <= 0)
    if scarce:
        within[np.broadcast_to(room <= 0, within.shape)] = 0.0
    within *= some
    within += none
    if scarce:
        within[np.broadcast_to(slack_hours < 0, within.shape)] = 0.0
    return within


def normal_cdf(z: Floats) -> Floats:
    """The standard normal distribution function, within 7.5e-8 (Abramowitz and Stegun 26.2.17)."""
    if np.min(z, initial=np.inf) >= CERTAIN:
        return np.ones_like(z)
    at = np.abs(np.atleast_1d(z))
    t = at * 0.2316419
    t += 1.0
    t = np.divide(1.0, t, out=t)
    series = t * 1.330274429
    for coefficient in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        series += coefficient
        series *= t
    # Beyond 37, densities are denormal floats, and arithmetic on them takes ten times as long.
    tail = np.minimum(at, 37.0, out=at)
    tail *= tail
    tail *= -0.5
    tail = np.exp(tail, out=tail)
    tail *= 0.3989422804014327
    tail *= series
    return np.subtract(1.0, tail, out=tail, where=np.atleast_1d(z) >= 0).reshape(np.shape(z))
