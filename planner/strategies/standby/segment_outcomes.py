"""Outcomes of runs with a standby, segment by segment, with the whole distribution of their losses.

The losses L_i live on a lattice from 0 to the largest slack (`loss_lattice`). They never fall. Where the slack does not
grow either, runs whose losses are within the slack S_i of segment i were within the slack of every segment before. So
P(passed i) = P(L_i <= S_i), and the probability of passing i and then failing beyond the slack of the next segment is
P(L_i <= S_(i+1)) - P(L_(i+1) <= S_(i+1)). These are exact at the end of every block of segments, and linear within. Where
slack grows, runs are followed from block to block (`growing_slack`).
"""

import math
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.growing_slack import followed
from gpuplan.planner.strategies.standby.loss_lattice import (
    POINTS,
    SIZE,
    SUMMED,
    Powers,
    chances_within,
    masses,
    segment_and_waits,
    segment_transform,
)
from gpuplan.planner.strategies.standby.outcome_quantiles import Schedule
from gpuplan.planner.strategies.standby.run_segments import Segments
from gpuplan.planner.strategies.standby.segment_blocks import ends_of_blocks, log_chance_of_a_call, merged
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Complex = NDArray[np.complex128]

#: Runs of growing slack that are followed at once: their powers take 1 MB each.
_TOGETHER = 16
_FIELDS = tuple(field.name for field in fields(Schedule))
#: Masses below this are rounding errors.
_NOISE = 1e-9
#: The log of a probability of calling the standby that counts as zero.
_NEVER_CALLED = math.log(1e-10)


def segment_outcomes_of(runs: Segments, hazard: Hazard) -> Schedule:
    """Outcomes per deviation of runs [z] under this hazard; those that never call the standby get no losses."""
    never = log_chance_of_a_call(runs, hazard) < _NEVER_CALLED
    if not never.any():
        return _called_outcomes(runs, hazard)
    all_passed, rows = _never_called(runs), np.flatnonzero(~never)
    if not len(rows):
        return all_passed
    called = _called_outcomes(runs.at(rows), hazard)
    return Schedule(**{name: _placed(getattr(all_passed, name), rows, getattr(called, name)) for name in _FIELDS})


def with_losses(schedule: Schedule, runs: Segments, hazard: Hazard) -> tuple[Schedule, Floats]:
    """The outcomes of these runs with the losses that were left out, and the mean hours that runs have waited which lost so many.

    The hours waited [z, points] are those of all runs. Where slack does not grow, runs that pass all are those within the last
    slack, so theirs are the same.
    """
    losses, waited = schedule.losses.copy(), np.zeros_like(schedule.losses)
    rows = np.flatnonzero(schedule.without_losses | (runs.wait_hours > 0))
    if len(rows):
        lattice = schedule.lattice[rows]
        segment, waits = segment_and_waits(runs.length[rows], runs.wait_hours[rows], hazard, lattice)
        for i, row in enumerate(rows.tolist()):
            count = int(runs.count[row])
            summed = Powers(segment[i]).of(count) * SUMMED
            every = np.maximum(masses(summed), 0.0)
            if schedule.without_losses[row]:
                losses[row] = every
            waited[row] = masses(count * waits[i] * summed) / np.where(every > _NOISE, every, np.inf)
    waited = np.clip(waited, 0.0, schedule.lattice[:, None] * np.arange(POINTS))
    return replace(schedule, losses=losses, without_losses=np.zeros_like(schedule.without_losses)), waited


def _placed(whole: NDArray[Any], rows: Ints, some: NDArray[Any]) -> NDArray[Any]:
    """An array with these rows in place of its own, wider by leading zeros where they are wider."""
    if some.ndim > 1 and some.shape[1] > whole.shape[1]:
        whole = np.pad(whole, ((0, 0), (some.shape[1] - whole.shape[1], 0)))
    whole[rows] = some
    return whole


def _never_called(runs: Segments) -> Schedule:
    """Outcomes of runs [z] that pass every segment, in a single block."""
    size = len(runs.count)
    return Schedule(
        passed=runs.count.copy(),
        whole=np.ones(size),
        failed=np.zeros(size),
        ends=runs.count[:, None].copy(),
        called=np.zeros((size, 1)),
        losses=np.zeros((size, POINTS)),
        lattice=_lattice(runs),
        without_losses=np.ones(size, np.bool_),
    )


def _lattice(runs: Segments) -> Floats:
    """Hours between points of the lattice of the losses of runs [z], up to their largest slack."""
    largest = np.maximum(runs.slack, runs.slack + (runs.count - 1) * runs.growth)
    return np.asarray(np.maximum(np.minimum(largest, _furthest(runs)), 1e-6) / (POINTS - 1))


def _called_outcomes(runs: Segments, hazard: Hazard) -> Schedule:
    lattice = _lattice(runs)
    segment = segment_transform(runs.length, runs.wait_hours, hazard, lattice)
    ends = merged(ends_of_blocks(runs), runs, hazard)
    counts = np.diff(ends, axis=1)
    falls = runs.growth <= 0
    on_spot, failing, losses = np.ones(ends.shape), np.zeros(ends.shape), np.zeros((len(lattice), POINTS))
    if falls.any():
        cuts, room = _Cuts.of(runs, ends, lattice), np.empty((ends.shape[1], SIZE), np.complex128)
        for row in np.flatnonzero(falls).tolist():
            on_spot[row], failing[row], losses[row] = _passing(segment[row], counts[row], cuts.at(row), room)
    grows = np.flatnonzero(~falls)
    for first in range(0, len(grows), _TOGETHER):
        some = grows[first : first + _TOGETHER]
        on_spot[some], losses[some] = followed(runs.at(some), ends[some], segment[some], lattice[some])
    called = on_spot[:, :-1] - on_spot[:, 1:]
    on_failure = counts * failing[:, :-1] + np.maximum(counts - 1, 0.0) * np.diff(failing, axis=1) / 2
    on_failure = np.clip(on_failure, 0.0, called).sum(axis=1)
    return Schedule(
        passed=(counts * on_spot[:, :-1] - called * (counts + 1) / 2).sum(axis=1),
        whole=on_spot[:, -1],
        # Where slack does not fall from segment to segment, only a failure uses it up.
        failed=np.where(runs.growth < 0, on_failure, 1.0 - on_spot[:, -1]),
        ends=ends[:, 1:],
        called=called,
        losses=losses,
        lattice=lattice,
        without_losses=np.zeros(len(lattice), np.bool_),
    )


class _Cuts(NamedTuple):
    """The last points of the lattice at which losses may be at the ends of blocks [..., blocks + 1], -1 for none.

    `within` is for the slack of the last segment, `left` for the slack before the next.
    """

    within: Ints
    left: Ints

    @staticmethod
    def of(runs: Segments, ends: Floats, lattice: Floats) -> "_Cuts":
        """The cuts of runs [rows] whose slack does not grow."""
        growth, slack, width = (values[:, None] for values in (runs.growth, runs.slack, lattice))

        def points(segments: Floats) -> Ints:
            """The last point within the slack after so many segments."""
            last = np.floor((slack + segments * growth) / width + 1e-6)
            return np.asarray(np.clip(last, -1.0, POINTS - 1.0).astype(np.int64))

        return _Cuts(within=points(ends - 1.0), left=points(ends))

    def at(self, row: int) -> "_Cuts":
        """The cuts of a single run."""
        return _Cuts(within=self.within[row], left=self.left[row])


def _passing(segment: Complex, counts: Floats, cuts: _Cuts, room: Complex) -> tuple[Floats, Floats, Floats]:
    """A run whose slack does not grow, from the transform of one segment's losses; overwrites `room`: [blocks + 1, SIZE].

    Returns the probabilities of being on spot at the end of each block and of failing for good then, both [blocks + 1], and
    the masses of the losses of runs that pass all blocks, [points].
    """
    # Once the slack is gone, no run is on spot.
    gone = np.logical_or.accumulate(np.append(False, (counts > 0) & (cuts.within[1:] < 0)))
    some = np.append(True, counts > 0) & ~gone
    summed = _summed_powers(segment, counts[some[1:]].astype(np.int64).tolist(), room)
    on_spot = chances_within(summed, cuts.within[some])
    on_spot[0] = 1.0
    on_spot = np.minimum.accumulate(np.clip(on_spot, 0.0, 1.0))
    losses = np.zeros(POINTS)
    if cuts.within[-1] >= 0:
        losses[: cuts.within[-1] + 1] = np.maximum(masses(summed[-1]), 0.0)[: cuts.within[-1] + 1]
    summed *= 1.0 - segment
    failing = np.maximum(chances_within(summed, cuts.left[some]), 0.0)
    # A block without segments ends where the one before does.
    every = np.cumsum(some) - 1
    return np.where(gone, 0.0, on_spot[every]), np.where(gone, 0.0, failing[every]), losses


def _summed_powers(segment: Complex, counts: list[int], room: Complex) -> Complex:
    """The transforms, times `SUMMED`, of the losses after none and after each further count of segments: [ends, SIZE]."""
    transforms = room[: len(counts) + 1]
    transforms[0] = SUMMED
    powers = Powers(segment)
    for i, count in enumerate(counts):
        np.multiply(transforms[i], powers.of(count), out=transforms[i + 1])
    return transforms


def _furthest(runs: Segments) -> Floats:
    """Losses whose exceedance is negligible at any slack: the mean plus twelve deviations plus forty single losses."""
    per_loss = runs.losses.mean_hours / np.maximum(np.expm1(np.minimum(-runs.losses.log_lossless, 700.0)), 1e-300)
    return runs.count * runs.losses.mean_hours + 12.0 * np.sqrt(runs.count * runs.losses.variance) + 40.0 * per_loss
