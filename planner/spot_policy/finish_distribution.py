"""The finish time of a run on interruptible machines: its whole distribution, not only the mean.

The run of w hours is N segments of tau hours of work (the last may be shorter), each closed by a checkpoint of d
hours. Preemptions are Poisson with the rate lambda of all nodes together. A preemption in a segment of length L = tau + d
loses the time since the segment's start. Then R hours of restart pass, which another preemption starts anew. So

    T = w + N d + sum of all losses,   losses of a segment = sum_{i=1}^{K} (X_i + Y_i)
    K geometric, P(K = 0) = exp(-lambda L);        X exponential given X < L
    Y = V + R + sum_{j=1}^{J} (V_j + Z_j),   J geometric, P(J = 0) = exp(-lambda R);   Z exponential given Z < R

where V, exponential of mean v, is the wait until the lost machine is back (0: at once). Segments are independent, so the
transform of the losses is a product of compound geometrics in closed form, and one inverse FFT gives their distribution
on a lattice. Masses are placed on the lattice so that means are preserved. The expected time then equals exactly
(w / tau) e^(lambda R) (e^(lambda L) - 1) / lambda (Daly 2006, eq. 13), times 1 + lambda v for the waits. The uncertainty
of the estimate itself, a lognormal of `log_sigma`, is integrated over w by Gauss-Hermite quadrature.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.errors import UnusableInput

Floats = NDArray[np.float64]

#: Points of the lattice. The horizon beyond which losses wrap around is far beyond their mean (see `_horizon`).
_POINTS = 1 << 15
_QUADRATURE = 15
#: With more preemptions than this per segment, on average, the run makes no useful progress.
_HOPELESS = 20.0
#: Below this probability of a preemption its moment is nearly uniform, and the formula would cancel.
_BRIEF = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRun:
    """A run under preemption: hours of work, between checkpoints, to write one and to restart; preemptions per hour.

    `preemptions_per_hour` is for all nodes together: n nodes with rate r each have n r, since losing one stops all.
    `wait_hours` is the mean wait after each preemption until a machine is available to restart on.
    """

    work_hours: float
    interval_hours: float
    checkpoint_hours: float
    restart_hours: float
    preemptions_per_hour: float
    wait_hours: float = 0.0

    def checked(self) -> "SpotRun":
        """This run, if it ends in reasonable time; else raises `UnusableInput`."""
        for name in ("work_hours", "interval_hours"):
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise UnusableInput.at(name, message=f"{value:g} is not accepted; write a number above 0")
        for name in ("checkpoint_hours", "restart_hours", "preemptions_per_hour", "wait_hours"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise UnusableInput.at(name, message=f"{value:g} is not accepted; write a number of at least 0")
        longest = max(min(self.interval_hours, self.work_hours) + self.checkpoint_hours, self.restart_hours)
        if self.preemptions_per_hour * longest > _HOPELESS:
            message = (
                f"{self.preemptions_per_hour:g} leave no stretch of {longest:.3g} h without a preemption, so the run "
                "never ends; give fewer nodes, shorter intervals, or on-demand machines"
            )
            raise UnusableInput.at("preemptions_per_hour", message=message)
        return self

    @property
    def segments(self) -> tuple[int, float]:
        """The number of whole segments, and the work of the last, shorter one (0: there is none)."""
        whole = math.floor(self.work_hours / self.interval_hours + 1e-9)
        rest = self.work_hours - whole * self.interval_hours
        return whole, (rest if rest > 1e-9 * self.interval_hours else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finish:
    """The distribution of the hours from start to end: `mass[i]` at `hours[i]`, ascending."""

    hours: Floats
    mass: Floats

    @property
    def mean(self) -> float:
        """The expected hours."""
        return float(self.hours @ self.mass)

    def probability_by(self, hours: float) -> float:
        """The probability that the run ends within `hours`."""
        return float(min(self.mass[: np.searchsorted(self.hours, hours + 1e-9, side="right")].sum(), 1.0))

    def quantile(self, probability: float) -> float:
        """The hours that are not exceeded with `probability`."""
        summed = np.cumsum(self.mass)
        return float(self.hours[min(int(np.searchsorted(summed, probability - 1e-12)), len(summed) - 1)])


def finish(run: SpotRun, *, log_sigma: float = 0.0) -> Finish:
    """The distribution of the finish time. Raises `UnusableInput` for a run that never ends."""
    run.checked()
    if log_sigma <= 0:
        return _finish(run)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE)
    weights = weights / weights.sum()
    parts = [_finish(_longer(run, math.exp(log_sigma * float(node)))) for node in nodes]
    hours = np.concatenate([part.hours for part in parts])
    mass = np.concatenate([weight * part.mass for weight, part in zip(weights, parts, strict=True)])
    order = np.argsort(hours, kind="stable")
    return Finish(hours=hours[order], mass=mass[order])


def _longer(run: SpotRun, factor: float) -> SpotRun:
    return replace(run, work_hours=run.work_hours * factor)


def _finish(run: SpotRun) -> Finish:
    whole, rest = run.segments
    least = run.work_hours + (whole + (rest > 0)) * run.checkpoint_hours
    rate = run.preemptions_per_hour
    if rate == 0:
        return Finish(hours=np.array([least]), mass=np.ones(1))
    lattice = _horizon(run) / _POINTS
    transform = np.ones(_POINTS // 2 + 1, np.complex128)
    for length, count in ((run.interval_hours, whole), (rest, 1 if rest else 0)):
        if count:
            transform *= segment_transform(length + run.checkpoint_hours, run, lattice, _POINTS) ** count
    mass = np.maximum(np.fft.irfft(transform, _POINTS), 0.0)
    return Finish(hours=np.arange(_POINTS, dtype=np.float64) * lattice + least, mass=mass / mass.sum())


def segment_transform(length: float, run: SpotRun, lattice: float, points: int) -> NDArray[np.complex128]:
    """The discrete Fourier transform of the losses of one segment of `length` hours, on a lattice: [points / 2 + 1]."""
    rate, restart = run.preemptions_per_hour, run.restart_hours
    survives = math.exp(-rate * length)
    lost = np.fft.rfft(_truncated(rate, length, lattice, points))
    wait: NDArray[np.complex128] | float = 1.0
    if run.wait_hours > 0:
        wait = np.fft.rfft(_truncated(1.0 / run.wait_hours, math.inf, lattice, points))
        lost = lost * wait
    if restart > 0:
        again = math.exp(-rate * restart)
        failed = np.fft.rfft(_truncated(rate, restart, lattice, points)) * wait
        pause = np.fft.rfft(_point(restart, lattice, points))
        lost = lost * pause * again / (1.0 - (1.0 - again) * failed)
    return np.asarray(survives / (1.0 - (1.0 - survives) * lost))


def _truncated(rate: float, top: float, lattice: float, points: int) -> Floats:
    """An exponential of `rate`, given that it is below `top`, on the lattice, with its mean preserved.

    Each point gets the mass under a triangle of the lattice's width around it, so both the mass and the mean of every
    cell are exact: the mass at i is (2 M(i) - M(i-1) - M(i+1)) / lattice with M the integral of the tail.
    """
    if rate * top < _BRIEF:
        return _point(top / 2, lattice, points)
    edges = np.minimum(np.arange(-1, points + 1) * lattice, top)
    whole = -math.expm1(-rate * top)
    # The integral from 0 of P(X > x), with X below top.
    rises = -np.expm1(-rate * np.maximum(edges, 0.0)) / rate
    tail = (rises - np.maximum(edges, 0.0) * math.exp(-rate * top)) / whole
    tail[0] = -lattice
    return np.asarray(np.maximum((2.0 * tail[1:-1] - tail[:-2] - tail[2:]) / lattice, 0.0))


def _point(at: float, lattice: float, points: int) -> Floats:
    """All mass at one place, split between the two nearest points so that the mean is preserved."""
    mass = np.zeros(points)
    whole = int(at / lattice)
    part = at / lattice - whole
    mass[whole % points] += 1.0 - part
    mass[(whole + 1) % points] += part
    return mass


def _horizon(run: SpotRun) -> float:
    """Hours of loss whose exceedance is negligible: the mean, twelve deviations, and forty losses."""
    rate, restart = run.preemptions_per_hour, run.restart_hours
    length = min(run.interval_hours, run.work_hours) + run.checkpoint_hours
    whole, rest = run.segments
    failures = math.expm1(rate * length)
    loss = (restart + run.wait_hours) * math.exp(rate * restart) + length
    count = whole + (rest > 0)
    mean = count * failures * loss
    deviation = math.sqrt(count * failures * (1.0 + failures)) * loss
    return mean + 12.0 * deviation + 40.0 * loss * (1.0 + failures)
