"""Distributions of losses on a lattice from 0 up, by their transforms: sums of losses are products of transforms.

Where losses are i times the width of the lattice with mass m_i, their transform is sum_i m_i q_k^i at `PERIOD` points q_k
of a circle inside the unit circle, |q_k|^`PERIOD` = e^-`TILT`. Half of the points suffice, since masses are real. Mass
beyond the period wraps around, damped by e^-24. A power of a transform costs one product, and the probability that losses
are within a point of the lattice is one sum over k: less work than an inverse transform where few points are needed.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.spot_standby_pairs import AT_ONCE_HOURS, Hazard

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Complex = NDArray[np.complex128]

#: Points of the lattice: losses beyond it call the standby.
POINTS = 1024
#: Twice as many points, tilted so that wrap-around and rounding error are both below 2e-10.
PERIOD, TILT = 2 * POINTS, 24.0
#: Sums over k are taken in rows of this size: q^k is the product of its power at the row's start and of that in the row.
_ROWS, _PLACES = 33, 32
#: As many k as fill the rows; those beyond half the period have weight zero.
SIZE = _ROWS * _PLACES
_POWERS = np.arange(SIZE)
_TURNS = np.exp(-2j * np.pi * np.arange(PERIOD) / PERIOD)
_SHIFT = np.exp(-TILT / PERIOD) * _TURNS[_POWERS]
#: Each q_k except the two real ones stands for two conjugates.
_WEIGHTS = np.where(_POWERS % POINTS == 0, 1.0, 2.0) / PERIOD * (_POWERS <= POINTS)
#: The transform of cumulated masses is that of the masses divided by 1 - q.
SUMMED = _WEIGHTS / (1.0 - _SHIFT)
_MASSES = (1.0 - _SHIFT)[: POINTS + 1] / _WEIGHTS[: POINTS + 1]
UNTILT = np.exp(TILT * np.arange(POINTS) / PERIOD)
#: Below this probability of a preemption its moment is nearly uniform, and the formula would cancel.
_BRIEF = 1e-6
#: A point so far out that its mass is negligible.
_NOWHERE = 64 * PERIOD


class Powers:
    """Transforms of the losses of several segments, from that of one [...]: products of cached squares."""

    def __init__(self, segment: Complex) -> None:
        self._squares, self._found = [segment], dict[int, Complex]()

    def of(self, count: int) -> Complex:
        """The transform of `count` segments, at least one."""
        if count not in self._found:
            while len(self._squares) < count.bit_length():
                self._squares.append(self._squares[-1] * self._squares[-1])
            power, *others = (square for bit, square in enumerate(self._squares) if count >> bit & 1)
            for square in others:
                power = power * square
            self._found[count] = power
        return self._found[count]


def chances_within(summed: Complex, last: Ints) -> Floats:
    """P(losses <= these points), -1 for no point, from transforms times `SUMMED`: [rows, SIZE]."""
    by_place, by_row = _TURNS[_turns(last, _POWERS[:_PLACES])], _TURNS[_turns(last, _POWERS[::_PLACES])]
    sums = np.matvec(summed.reshape(-1, _ROWS, _PLACES), by_place.conj())
    return np.asarray(np.where(last < 0, 0.0, np.vecdot(by_row, sums).real * UNTILT[last]))


def masses(summed: Complex) -> Floats:
    """The masses on the points of the lattice, from their transform times `SUMMED`: [POINTS]."""
    return np.asarray(np.fft.irfft(summed[: POINTS + 1] * _MASSES, PERIOD)[:POINTS] * UNTILT)


def segment_transform(length: Floats, wait_hours: Floats, hazard: Hazard, lattice: Floats) -> Complex:
    """The transform of the losses of one segment, for rows with waits and lattices of their own: [rows, SIZE]."""
    survives, _, ready, passed = _attempts(length, wait_hours, hazard, lattice)
    return np.asarray(survives * ready / passed)


def segment_and_waits(length: Floats, wait_hours: Floats, hazard: Hazard, lattice: Floats) -> tuple[Complex, Complex]:
    """The transform of the losses of one segment, and the factor that weights it by the hours waited: both [rows, SIZE].

    With phi the transform of a wait w of mean v, that of a segment is F = s (1 - a phi) / (1 - b phi). E[w q^w] is v phi^2, so

        E[(hours waited) q^losses] = v phi^2 dF/dphi = F v phi (1 / (1 - b phi) - 1 / (1 - a phi))

    and that of n segments is n F^n times the same factor.
    """
    survives, over, ready, passed = _attempts(length, wait_hours, hazard, lattice)
    hours = np.maximum(wait_hours, AT_ONCE_HOURS)
    waited = hours[:, None] * _truncated(1 / hours, np.full_like(hours, np.inf), lattice) / _falling(1 / hours, lattice)
    waits = waited * (over / passed - over / ready)
    return np.asarray(survives * ready / passed), np.where(wait_hours[:, None] > 0, waits, 0.0)


def _attempts(
    length: Floats, wait_hours: Floats, hazard: Hazard, lattice: Floats
) -> tuple[Floats, Complex, Complex, Complex]:
    """The probability of no loss in a segment, [rows, 1], and three transforms: [rows, SIZE].

    The common denominator of the others; 1 - a phi and 1 - b phi times it, of restarts that fail and of all that fails.
    """
    rate, restart_hours = hazard
    survives, again = np.exp(-rate * length)[:, None], np.exp(-rate * restart_hours)
    restart = np.full_like(length, restart_hours)
    lost = _truncated(rate, length, lattice) * _point(restart, lattice)
    failed, over = _truncated(rate, restart, lattice), _falling(rate, lattice)
    rows = np.flatnonzero(wait_hours > 0)
    if len(rows):
        waiting = 1.0 / np.maximum(wait_hours[rows], AT_ONCE_HOURS)
        wait = _truncated(waiting, np.full_like(waiting, np.inf), lattice[rows])
        lost[rows] *= wait
        failed[rows] *= wait
        over[rows] *= _falling(waiting, lattice[rows])
    # Restarts fail repeatedly, and so do segments.
    ready = over - (1.0 - again) * failed
    return survives, over, ready, ready - (1.0 - survives) * again * lost


def _turns(points: Ints, powers: Ints) -> Ints:
    """The index of e^(-2 pi i k points / PERIOD) in `_TURNS`, for these k: [points, powers]."""
    return (points[:, None] * powers) & (PERIOD - 1)


def _shifted(points: Floats) -> Complex:
    """The transform of losses that are all at this whole point of the lattice: [rows, SIZE]."""
    turned = _TURNS[_turns(points.astype(np.int64), _POWERS)]
    turned *= np.exp(-TILT / PERIOD * points)[:, None]
    return np.asarray(turned)


def _point(at: Floats, lattice: Floats) -> Complex:
    """All mass at one place per row, split between the two nearest points so that the mean is preserved."""
    whole = np.minimum(np.floor(at / lattice), _NOWHERE)
    part = np.minimum(at / lattice - whole, 1.0)[:, None]
    split = part * _SHIFT
    split += 1.0 - part
    split *= _shifted(whole)
    return np.asarray(split)


def _falling(rate: Floats | float, lattice: Floats) -> Complex:
    """1 - e^(-rate lattice) q: dividing by it sums a series whose masses fall by that factor from point to point."""
    return np.asarray(1.0 - np.exp(-rate * lattice)[:, None] * _SHIFT)


def _truncated(rate: Floats | float, top: Floats, lattice: Floats) -> Complex:
    """An exponential of `rate` truncated at `top`, on each row's lattice with its mean preserved, times `_falling`.

    Each point gets the mass under a triangle of the lattice's width around it. From point 1 on, masses fall by
    e^(-rate lattice) from each to the next, except for the two points around `top`: a division by `_falling` leaves a few
    terms at either end.
    """
    brief = rate * top < _BRIEF
    if brief.all():
        return _point(top / 2, lattice) * _falling(rate, lattice)
    top = np.where(brief, np.inf, top)
    whole, stays, falls = -np.expm1(-rate * top), np.exp(-rate * lattice), -np.expm1(-rate * lattice)
    plain = np.maximum(np.minimum(np.floor(top / lattice), _NOWHERE) - 1.0, 0.0)

    def below(points: Floats) -> Floats:
        """The integral of the survival function up to so many points, in widths of the lattice."""
        at = np.minimum(points * lattice, top)
        return np.asarray((-np.expm1(-rate * at) / rate - at * np.exp(-rate * top)) / whole / lattice)

    first, middle = 1.0 - below(np.ones_like(top)), falls**2 / (rate * lattice * whole)
    begin = first[:, None] + (middle - stays * first)[:, None] * _SHIFT
    if (plain >= _NOWHERE - 1.0).all():
        return np.asarray(begin)
    ends = [below(plain + beyond) for beyond in range(4)]
    one, two = 2.0 * ends[1] - ends[0] - ends[2], 2.0 * ends[2] - ends[1] - ends[3]
    transform = (two - stays * one)[:, None] - (stays * two)[:, None] * _SHIFT
    transform *= _SHIFT
    transform += (one - middle * np.exp(-rate * lattice * plain))[:, None]
    transform *= _shifted(plain + 1.0)
    transform += begin
    if brief.any():
        transform[brief] = _point(top[brief] / 2, lattice[brief]) * _falling(rate, lattice[brief])
    return np.asarray(transform)
