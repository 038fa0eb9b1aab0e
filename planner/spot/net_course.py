"""How runs under the net fare, segment by segment, with the whole distribution of their losses.

The losses L_i live on a lattice from 0 to the largest slack. From segment to segment (from block to block of them,
where there are many) their distribution is convolved with that of one segment's losses, and what lies beyond the slack
S_i is taken off: those runs have called the standby. That is exact where the slack does not grow inside a block; where it
does it is taken at the block's middle. Powers of the transform wrap around at the end of the lattice; all masses are
therefore tilted by e^(-18 i / points), which makes what wraps around 1.5e-8 of itself.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from planner.spot.net import NetTerms
from planner.spot.net_blocks import ends_of_blocks, merged
from planner.spot.net_segments import Segments
from planner.spot.net_spread import POINTS, Course

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

_TILT = 18.0
_AT = np.arange(POINTS)
#: Below this chance of a preemption its moment is as good as uniform, and the formula would cancel.
_BRIEF = 1e-6
#: A chance of still being on spot that is none.
_NOBODY = 1e-13


def course_of(runs: Segments, rate: float, terms: NetTerms) -> Course:
    """How runs [z], whose machines are preempted `rate` times an hour, fare at each deviation."""
    largest = np.maximum(runs.slack, runs.slack + (runs.count - 1) * runs.growth)
    largest = np.maximum(np.minimum(largest, _furthest(runs)), 1e-6)
    lattice = largest / (POINTS - 1)
    untilt = np.exp(_TILT * _AT / POINTS)
    segment = _segment_transform(runs.length, rate, terms, lattice)
    powers = _Powers(segment)
    ends = merged(ends_of_blocks(runs), runs, rate, terms)
    alive = np.zeros((len(lattice), POINTS))
    alive[:, 0] = 1.0
    before, passed, called = alive[:, 0].copy(), np.zeros(len(lattice)), []
    # Where slack does not fall from segment to segment nothing but a failure uses it up.
    falls = bool((runs.growth < 0).any())
    exceeded = _exceeded(np.fft.irfft(segment, POINTS) * untilt) if falls else np.zeros((0, 0, 0))
    cuts = _Cuts.of(runs, ends, lattice)
    failing = [_failing(alive, cuts.left[:, 0], exceeded, np.arange(len(lattice))) if falls else before]
    counts = np.diff(ends, axis=1)
    for block, count in enumerate(counts.T, start=1):
        # Only rows with a segment in this block, and somebody left to run it.
        on = np.flatnonzero((count > 0) & (before > _NOBODY))
        now, fails = before.copy(), failing[-1]
        if len(on):
            some = np.fft.irfft(powers.times(np.fft.rfft(alive[on]), on, count[on]), POINTS)
            np.maximum(some, 0.0, out=some)
            for row, end in enumerate(cuts.within[on, block].tolist()):
                some[row, end:] = 0.0
            now[on] = np.minimum(some @ untilt, before[on])
            if falls:
                fails = fails.copy()
                fails[on] = _failing(some * untilt, cuts.left[on, block], exceeded, on)
            if len(on) == len(alive):
                alive = some
            else:
                alive[on] = some
        passed += count * before + (now - before) * (count + 1) / 2
        called.append(before - now)
        failing.append(fails)
        before = now
    chances = np.stack(failing, axis=1)
    on_failure = counts * chances[:, :-1] + np.maximum(counts - 1, 0.0) * np.diff(chances, axis=1) / 2
    on_failure = np.clip(on_failure, 0.0, np.stack(called, axis=1)).sum(axis=1)
    return Course(
        passed=passed,
        whole=before,
        failed=np.where(runs.growth < 0, on_failure, 1.0 - before),
        ends=ends[:, 1:],
        called=np.stack(called, axis=1),
        losses=alive * untilt,
        lattice=lattice,
    )


class _Cuts(NamedTuple):
    """Where slack ends on the lattice, by row and end of block: points `within` it for a run that ends the block, and those
    `left` before the next segment.
    """

    within: NDArray[np.int64]
    left: NDArray[np.int64]

    @staticmethod
    def of(runs: Segments, ends: Floats, lattice: Floats) -> "_Cuts":
        """The cuts of runs [rows] at the ends of their blocks [rows, blocks + 1]."""
        growth, slack, width = (values[:, None] for values in (runs.growth, runs.slack, lattice))
        counts = np.diff(ends, axis=1, prepend=0.0)
        # Slack that grows in a block is taken at its middle: losses come anywhere in it.
        last = ends - 1 - np.where(growth > 0, (counts - 1) / 2, 0.0)
        within = np.floor(np.maximum(slack + last * growth, -width) / width + 1e-6)
        left = np.floor((slack + ends * growth) / width + 1e-6)
        return _Cuts(
            within=np.minimum(within, POINTS - 1).astype(np.int64) + 1,
            left=np.minimum(np.maximum(left, -1.0), 2.0 * POINTS - 2.0).astype(np.int64),
        )


class _Powers:
    """Transforms of the losses of so many segments, by row, from that of one: products of its squares."""

    def __init__(self, segment: Complex) -> None:
        self.squares = [segment]

    def times(self, transforms: Complex, rows: NDArray[np.int64], counts: Floats) -> Complex:
        """These transforms [rows, points / 2 + 1] times those for so many more segments, one at least, in place."""
        product = np.empty_like(transforms[0])
        for each, row, count in zip(transforms, rows.tolist(), counts.tolist(), strict=True):
            bits = [bit for bit in range(int(count).bit_length()) if int(count) >> bit & 1]
            while bits[-1] >= len(self.squares):
                self.squares.append(self.squares[-1] * self.squares[-1])
            power = self.squares[bits[0]][row]
            for bit in bits[1:]:
                power = np.multiply(power, self.squares[bit][row], out=product)
            np.multiply(each, power, out=each)
        return transforms


def _furthest(runs: Segments) -> Floats:
    """Losses beyond which there is nothing worth counting, whatever the slack: the mean, twelve deviations, forty losses."""
    each = runs.losses.mean_hours / np.maximum(np.expm1(np.minimum(-runs.losses.log_lossless, 700.0)), 1e-300)
    return runs.count * runs.losses.mean_hours + 12.0 * np.sqrt(runs.count * runs.losses.variance) + 40.0 * each


def _exceeded(mass: Floats) -> Floats:
    """The chance that one segment loses more than what is left of some slack, along the lattice: windows [rows, slack, points].

    Window w of a row holds it for losses so far of 0, 1, ... points where the slack is 2 `POINTS` - 2 - w of them: none
    where nothing is left any more, and that of the whole lattice where more is left.
    """
    chance = 1.0 - np.cumsum(mass, axis=1)
    more = np.repeat(chance[:, -1:], POINTS - 1, axis=1)
    return sliding_window_view(np.concatenate((more, chance[:, ::-1], np.zeros_like(chance)), axis=1), POINTS, axis=1)


def _failing(alive: Floats, left: NDArray[np.int64], exceeded: Floats, rows: NDArray[np.int64]) -> Floats:
    """The chance, in these rows, that the next segment, which leaves so many points of slack, loses more than these."""
    return np.asarray(np.einsum("ij,ij->i", alive, exceeded[rows, 2 * POINTS - 2 - left]))


def _segment_transform(length: Floats, rate: float, terms: NetTerms, lattice: Floats) -> Complex:
    """The transform of one segment's losses, tilted, for rows with lattices of their own: [rows, points / 2 + 1]."""
    survives = np.exp(-rate * length)[:, None]
    lost = _transform(_truncated(rate, length, lattice))
    restart = np.full_like(length, terms.restart_hours)
    wait: Complex | float = 1.0
    if terms.wait_hours > 0:
        wait = _transform(_truncated(1.0 / terms.wait_hours, np.full_like(length, np.inf), lattice))
    again = np.exp(-rate * terms.restart_hours)
    failed = _transform(_truncated(rate, restart, lattice)) * wait
    lost = lost * wait * _transform(_point(restart, lattice)) * again / (1.0 - (1.0 - again) * failed)
    return np.asarray(survives / (1.0 - (1.0 - survives) * lost))


def _transform(mass: Floats) -> Complex:
    return np.fft.rfft(mass * np.exp(-_TILT * np.arange(POINTS) / POINTS))


def _truncated(rate: float, top: Floats, lattice: Floats) -> Floats:
    """An exponential of `rate` below `top`, on each row's lattice with its mean kept; what lies beyond is left out."""
    brief = rate * top < _BRIEF
    edges = np.minimum(np.arange(-1, POINTS + 1) * lattice[:, None], top[:, None])
    whole = np.where(brief, 1.0, -np.expm1(-rate * top))[:, None]
    rises = -np.expm1(-rate * np.maximum(edges, 0.0)) / rate
    tail = (rises - np.maximum(edges, 0.0) * np.exp(-rate * top)[:, None]) / whole
    tail[:, 0] = -lattice
    mass = np.maximum((2.0 * tail[:, 1:-1] - tail[:, :-2] - tail[:, 2:]) / lattice[:, None], 0.0)
    return np.where(brief[:, None], _point(np.where(brief, top / 2, 0.0), lattice), mass)


def _point(at: Floats, lattice: Floats) -> Floats:
    """All mass at one place per row, split between the two next points so that the mean is kept."""
    mass = np.zeros((len(at), POINTS))
    whole = np.floor(at / lattice).astype(np.int64)
    part, rows = at / lattice - whole, np.arange(len(at))
    for place, share in ((whole, 1.0 - part), (whole + 1, part)):
        here = place < POINTS
        mass[rows[here], place[here]] += share[here]
    return mass
