"""How runs under the net fare, segment by segment, with the whole distribution of their losses.

The losses L_i live on a lattice from 0 to the largest slack (`net_lattice`). They never fall. Where the slack does not grow
either, runs whose losses are within the slack S_i of segment i have been within that of every segment before: so P(passed i)
= P(L_i <= S_i), whatever came before, and that it is followed by a failure that uses up the slack of the next segment is
P(L_i <= S_(i+1)) - P(L_(i+1) <= S_(i+1)). These are exact at the end of every block of segments, and taken by straight lines
within. Where slack grows runs are followed from block to block (`net_growing`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.spot.net import NetTerms
from planner.spot.net_blocks import ends_of_blocks, merged
from planner.spot.net_growing import followed
from planner.spot.net_lattice import POINTS, SIZE, SUMMED, Powers, chances_within, masses, segment_transform
from planner.spot.net_segments import Segments
from planner.spot.net_spread import Course

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Complex = NDArray[np.complex128]


def course_of(runs: Segments, rate: float, terms: NetTerms) -> Course:
    """How runs [z], whose machines are preempted `rate` times an hour, fare at each deviation."""
    largest = np.maximum(runs.slack, runs.slack + (runs.count - 1) * runs.growth)
    largest = np.maximum(np.minimum(largest, _furthest(runs)), 1e-6)
    lattice = largest / (POINTS - 1)
    segment = segment_transform(runs.length, rate, terms, lattice)
    ends = merged(ends_of_blocks(runs), runs, rate, terms)
    counts = np.diff(ends, axis=1)
    falls = runs.growth <= 0
    on_spot, failing, losses = np.ones(ends.shape), np.zeros(ends.shape), np.zeros((len(lattice), POINTS))
    if falls.any():
        cuts, room = _Cuts.of(runs, ends, lattice), np.empty((ends.shape[1], SIZE), np.complex128)
        for row in np.flatnonzero(falls).tolist():
            on_spot[row], failing[row], losses[row] = _passing(segment[row], counts[row], cuts.at(row), room)
    if not falls.all():
        grows = np.flatnonzero(~falls)
        on_spot[grows], losses[grows] = followed(runs.at(grows), ends[grows], segment[grows], lattice[grows])
    called = on_spot[:, :-1] - on_spot[:, 1:]
    on_failure = counts * failing[:, :-1] + np.maximum(counts - 1, 0.0) * np.diff(failing, axis=1) / 2
    on_failure = np.clip(on_failure, 0.0, called).sum(axis=1)
    return Course(
        passed=(counts * on_spot[:, :-1] - called * (counts + 1) / 2).sum(axis=1),
        whole=on_spot[:, -1],
        # Where slack does not fall from segment to segment nothing but a failure uses it up.
        failed=np.where(runs.growth < 0, on_failure, 1.0 - on_spot[:, -1]),
        ends=ends[:, 1:],
        called=called,
        losses=losses,
        lattice=lattice,
    )


class _Cuts(NamedTuple):
    """The last points of the lattice at which losses may be at the ends of blocks [..., blocks + 1], -1 for none: `within` the
    slack of the last segment, and that `left` before the next.
    """

    within: Ints
    left: Ints

    @staticmethod
    def of(runs: Segments, ends: Floats, lattice: Floats) -> "_Cuts":
        """The cuts of runs [rows] whose slack does not grow."""
        growth, slack, width = (values[:, None] for values in (runs.growth, runs.slack, lattice))

        def points(segments: Floats) -> Ints:
            """The last within the slack after so many segments."""
            last = np.floor((slack + segments * growth) / width + 1e-6)
            return np.asarray(np.clip(last, -1.0, POINTS - 1.0).astype(np.int64))

        return _Cuts(within=points(ends - 1.0), left=points(ends))

    def at(self, row: int) -> "_Cuts":
        """Those of a single run."""
        return _Cuts(within=self.within[row], left=self.left[row])


def _passing(segment: Complex, counts: Floats, cuts: _Cuts, room: Complex) -> tuple[Floats, Floats, Floats]:
    """A run whose slack does not grow, of the transform of what a segment loses; `room` is written over: [blocks + 1, SIZE].

    The chances to be on spot at the end of each block of so many segments, and to fail then for good: [blocks + 1], and the
    masses of the losses of those that pass all of them: [points].
    """
    some = np.append(True, counts > 0)
    summed = _summed_powers(segment, counts[counts > 0].astype(np.int64).tolist(), room)
    on_spot = chances_within(summed, cuts.within[some])
    on_spot[0] = 1.0
    on_spot = np.minimum.accumulate(np.clip(on_spot, 0.0, 1.0))
    losses = np.maximum(masses(summed[-1]), 0.0)
    losses[cuts.within[-1] + 1 :] = 0.0
    summed *= 1.0 - segment
    # Blocks without segments end where the one before does.
    every = np.cumsum(some) - 1
    return on_spot[every], np.maximum(chances_within(summed, cuts.left[some]), 0.0)[every], losses


def _summed_powers(segment: Complex, counts: list[int], room: Complex) -> Complex:
    """The transforms, times `SUMMED`, of the losses of none and after each so many more segments: [ends, SIZE]."""
    found = room[: len(counts) + 1]
    found[0] = SUMMED
    powers = Powers(segment)
    for i, count in enumerate(counts):
        np.multiply(found[i], powers.of(count), out=found[i + 1])
    return found


def _furthest(runs: Segments) -> Floats:
    """Losses beyond which there is nothing worth counting, whatever the slack: the mean, twelve deviations, forty losses."""
    each = runs.losses.mean_hours / np.maximum(np.expm1(np.minimum(-runs.losses.log_lossless, 700.0)), 1e-300)
    return runs.count * runs.losses.mean_hours + 12.0 * np.sqrt(runs.count * runs.losses.variance) + 40.0 * each
