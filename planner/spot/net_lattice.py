"""Distributions of losses on a lattice from 0 up, by their transforms: sums of losses are products of these.

Where losses are i times the width of the lattice with mass m_i, their transform is sum_i m_i q_k^i at `PERIOD` points q_k of a
circle inside the unit circle, |q_k|^`PERIOD` = e^-`TILT`; half of these do, as masses are real. What lies beyond the period
comes back within it, but for e^-24 taken off. Powers of a transform cost a product each, and the chance that losses are within
a point of the lattice is one sum over k: less than a transform back where few points are asked for.
"""

import numpy as np
from numpy.typing import NDArray

from planner.spot.net import NetTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Complex = NDArray[np.complex128]

#: Points of the lattice on which losses count: what is beyond has called the standby.
POINTS = 1024
#: Twice as many, tilted by so much that what comes back, and what rounding leaves, are both below 2e-10.
PERIOD, TILT = 2 * POINTS, 24.0
#: Sums over k are taken in rows of so many: q^k is a product of its power to the row's first and to the place in it.
_ROWS, _PLACES = 33, 32
#: As many k as fill the rows; those beyond half the period count for nothing.
SIZE = _ROWS * _PLACES
_EACH = np.arange(SIZE)
_TURNS = np.exp(-2j * np.pi * np.arange(PERIOD) / PERIOD)
_SHIFT = np.exp(-TILT / PERIOD) * _TURNS[_EACH]
#: Each q_k but the two real ones stands for two.
_WEIGHTS = np.where(_EACH % POINTS == 0, 1.0, 2.0) / PERIOD * (_EACH <= POINTS)
#: Sums over the points up to each have the transform of the masses by 1 - q.
SUMMED = _WEIGHTS / (1.0 - _SHIFT)
_MASSES = (1.0 - _SHIFT)[: POINTS + 1] / _WEIGHTS[: POINTS + 1]
UNTILT = np.exp(TILT * np.arange(POINTS) / PERIOD)
#: Below this chance of a preemption its moment is as good as uniform, and the formula would cancel.
_BRIEF = 1e-6
#: Points so far out that nothing is left of what lies there.
_NOWHERE = 64 * PERIOD


class Powers:
    """The transforms of what several segments lose, from that of one [...]: products of its squares, each made once."""

    def __init__(self, segment: Complex) -> None:
        self._squares, self._found = [segment], dict[int, Complex]()

    def of(self, count: int) -> Complex:
        """That of so many segments, one at least."""
        if count not in self._found:
            while len(self._squares) < count.bit_length():
                self._squares.append(self._squares[-1] * self._squares[-1])
            power, *others = (square for bit, square in enumerate(self._squares) if count >> bit & 1)
            for square in others:
                power = power * square
            self._found[count] = power
        return self._found[count]


def chances_within(summed: Complex, last: Ints) -> Floats:
    """The chances that losses lie no further than these points, -1 for none, of transforms times `SUMMED`: [rows, SIZE]."""
    by_place, by_row = _TURNS[_turns(last, _EACH[:_PLACES])], _TURNS[_turns(last, _EACH[::_PLACES])]
    sums = np.matvec(summed.reshape(-1, _ROWS, _PLACES), by_place.conj())
    return np.asarray(np.where(last < 0, 0.0, np.vecdot(by_row, sums).real * UNTILT[last]))


def masses(summed: Complex) -> Floats:
    """The masses on the points of the lattice of which these are the transform, times `SUMMED`: [POINTS]."""
    return np.asarray(np.fft.irfft(summed[: POINTS + 1] * _MASSES, PERIOD)[:POINTS] * UNTILT)


def segment_transform(length: Floats, rate: float, terms: NetTerms, lattice: Floats) -> Complex:
    """The transform of what one segment loses (see `finish`), for rows with lattices of their own: [rows, SIZE]."""
    survives, again = np.exp(-rate * length)[:, None], np.exp(-rate * terms.restart_hours)
    restart = np.full_like(length, terms.restart_hours)
    lost = _truncated(rate, length, lattice) * _point(restart, lattice)
    failed, over = _truncated(rate, restart, lattice), _falling(rate, lattice)
    if terms.wait_hours > 0:
        waiting = 1.0 / terms.wait_hours
        wait = _truncated(waiting, np.full_like(length, np.inf), lattice)
        lost, failed, over = lost * wait, failed * wait, over * _falling(waiting, lattice)
    # All three are times `over`. Restarts fail again and again, and segments.
    ready = over - (1.0 - again) * failed
    return np.asarray(survives * ready / (ready - (1.0 - survives) * again * lost))


def _turns(points: Ints, powers: Ints) -> Ints:
    """Where e^(-2 pi i k points / PERIOD) stands for these k, among `_TURNS`: [points, powers]."""
    return (points[:, None] * powers) & (PERIOD - 1)


def _shifted(points: Floats) -> Complex:
    """The transform of losses that are all at this whole point of the lattice: [rows, SIZE]."""
    turned = _TURNS[_turns(points.astype(np.int64), _EACH)]
    turned *= np.exp(-TILT / PERIOD * points)[:, None]
    return np.asarray(turned)


def _point(at: Floats, lattice: Floats) -> Complex:
    """All mass at one place per row, split between the two next points so that the mean is kept."""
    whole = np.minimum(np.floor(at / lattice), _NOWHERE)
    part = np.minimum(at / lattice - whole, 1.0)[:, None]
    split = part * _SHIFT
    split += 1.0 - part
    split *= _shifted(whole)
    return np.asarray(split)


def _falling(rate: float, lattice: Floats) -> Complex:
    """1 - e^(-rate lattice) q, by which a series divides whose masses fall by that factor from point to point."""
    return np.asarray(1.0 - np.exp(-rate * lattice)[:, None] * _SHIFT)


def _truncated(rate: float, top: Floats, lattice: Floats) -> Complex:
    """An exponential of `rate` below `top`, on each row's lattice with its mean kept, times `_falling`.

    Each point takes what a triangle of the lattice's width around it covers. From point 1 on masses fall by e^(-rate lattice)
    from each to the next, but for the two points around `top`: what is left of them after a division by `_falling` is a
    few terms at either end.
    """
    brief = rate * top < _BRIEF
    if brief.all():
        return _point(top / 2, lattice) * _falling(rate, lattice)
    top = np.where(brief, np.inf, top)
    whole, stays, falls = -np.expm1(-rate * top), np.exp(-rate * lattice), -np.expm1(-rate * lattice)
    plain = np.maximum(np.minimum(np.floor(top / lattice), _NOWHERE) - 1.0, 0.0)

    def below(points: Floats) -> Floats:
        """The integral of the chance to lie beyond, up to so many points, in widths of the lattice."""
        at = np.minimum(points * lattice, top)
        return np.asarray((-np.expm1(-rate * at) / rate - at * np.exp(-rate * top)) / whole / lattice)

    first, each = 1.0 - below(np.ones_like(top)), falls**2 / (rate * lattice * whole)
    ends = [below(plain + more) for more in range(4)]
    one, two = 2.0 * ends[1] - ends[0] - ends[2], 2.0 * ends[2] - ends[1] - ends[3]
    found = (two - stays * one)[:, None] - (stays * two)[:, None] * _SHIFT
    found *= _SHIFT
    found += (one - each * np.exp(-rate * lattice * plain))[:, None]
    found *= _shifted(plain + 1.0)
    found += first[:, None] + (each - stays * first)[:, None] * _SHIFT
    if brief.any():
        found[brief] = _point(top[brief] / 2, lattice[brief]) * _falling(rate, lattice[brief])
    return np.asarray(found)
