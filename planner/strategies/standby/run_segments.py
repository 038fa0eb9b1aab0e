"""Runs with a standby as segments of work, thousands at once, and by moments how many segments they pass.

`standby_switching` defines the slack left for losses before each segment, and the probability that losses stay within it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.preemption_losses import LOSSES, SegmentLosses, chance_within, segment_losses
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)
_LEVEL, _LEVEL_WEIGHTS = np.polynomial.legendre.leggauss(4)
#: Deviations of the losses within which slack runs out.
_DEVIATIONS = 3.5
#: The log of the inverse of a probability that counts as none.
_UNLIKELY = 6.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Runs cut into equal segments: arrays that broadcast to [pairs, tried, z].

    `count` segments of `length` hours each (work and checkpoint) with `losses`. `standby_hours` is all work on the standby,
    `slack` is S_1, and `growth` is the change of the slack with each further segment. `wait_hours` follow each preemption.
    """

    count: Floats
    length: Floats
    losses: SegmentLosses
    wait_hours: Floats
    standby_hours: Floats
    slack: Floats
    growth: Floats

    @staticmethod
    def of(pairs: Pairs, terms: StandbyTerms, interval_hours: Floats, z: Floats) -> "Segments":
        """The segments of every pair at intervals [pairs, tried] and deviations `z` [pairs, tried, z]."""

        def over(values: Floats) -> Floats:
            return values[:, None, None]

        rate, sigma = over(pairs.rate), over(pairs.log_sigma)
        work = over(pairs.work_hours) * np.exp(sigma * z)
        count = np.maximum(np.ceil(work / interval_hours[:, :, None] - 1e-9), 1.0)
        length = work / count + over(pairs.checkpoint_hours)
        wait = pairs.waits_at(z)
        standby = over(pairs.standby_work_hours) * np.exp(over(pairs.standby_log_sigma) * z)
        room = terms.deadline_hours - over(pairs.setup_hours) - over(pairs.changeover_hours)
        return Segments(
            count=count,
            length=length,
            losses=segment_losses(length, rate, terms.restart_hours, wait),
            wait_hours=wait,
            standby_hours=standby,
            slack=room - length - standby,
            growth=standby / count - length,
        )

    def where(self, some: NDArray[np.bool_]) -> "Segments":
        """The runs marked [pairs, tried, z], concatenated."""

        def marked(values: Floats) -> Floats:
            return np.broadcast_to(values, some.shape)[some]

        return Segments(
            count=marked(self.count),
            length=marked(self.length),
            losses=SegmentLosses(**{name: marked(getattr(self.losses, name)) for name in LOSSES}),
            wait_hours=marked(self.wait_hours),
            standby_hours=marked(self.standby_hours),
            slack=marked(self.slack),
            growth=marked(self.growth),
        )

    def at(self, which: Ints) -> "Segments":
        """The runs at these indices of the first axis."""
        return Segments(
            count=self.count[which],
            length=self.length[which],
            losses=self.losses.at(which),
            wait_hours=self.wait_hours[which],
            standby_hours=self.standby_hours[which],
            slack=self.slack[which],
            growth=self.growth[which],
        )


def passed_by_moments(runs: Segments) -> tuple[Floats, Floats]:
    """The expected number of segments passed, and the probability of passing all.

    Runs whose total losses fit, to the last digit, into the least slack that ever occurs pass every segment.
    """
    least = runs.slack + np.minimum((runs.count - 1.0) * runs.growth, 0.0)
    passed, whole = runs.count, chance_within(runs.losses, runs.count, least)
    some = whole < 1.0
    if some.any():
        passed = np.broadcast_to(passed, whole.shape).copy()
        passed[some], whole[some] = _passed(runs.where(some))
    return passed, whole


def _passed(runs: Segments) -> tuple[Floats, Floats]:
    count = runs.count[..., None]
    # Sums over many segments become integrals by the midpoint rule, evaluated by Gauss-Legendre: up to where slack begins
    # to run out, and from there to where it is surely gone.
    begins, ends = running_out(runs)
    falling = begins + (ends - begins) * (1.0 + _GAUSS) / 2
    level = 0.5 + (begins - 0.5) * (1.0 + _LEVEL) / 2
    points = np.concatenate((level, falling), axis=-1)
    weight = np.concatenate(((begins - 0.5) * _LEVEL_WEIGHTS / 2, (ends - begins) * _GAUSS_WEIGHTS / 2), axis=-1)
    whole = np.arange(1.0, points.shape[-1] + 1)
    few = count <= len(whole)
    weight = np.where(few, whole <= count, weight)
    at = np.concatenate((np.minimum(np.where(few, whole, points), count), count), axis=-1)
    losses = runs.losses.at((..., None))
    start, growth = runs.slack[..., None], runs.growth[..., None]
    chance = chance_within(losses, at, start + (at - 1.0) * growth)
    chance = np.minimum.accumulate(chance, axis=-1)
    return (chance[..., :-1] * weight).sum(axis=-1), chance[..., -1]


def failed_by_moments(runs: Segments, switch: Floats) -> Floats:
    """The probability that the standby is called after a failure, from that of a call (`switch`).

    Slack that falls by g per segment and by jumps of mean `mean_hours` is used up by a jump in the share mean / (mean + g) of
    runs, and by no jump in the runs that lose nothing until it is gone.
    """
    falls = np.maximum(-runs.growth, 0.0)
    by_jumps = runs.losses.mean_hours / np.maximum(runs.losses.mean_hours + falls, 1e-300)
    until = np.floor(np.maximum(runs.slack, 0.0) / np.maximum(falls, 1e-300)) + 1.0
    lost = np.where(until < runs.count, -np.expm1(runs.losses.log_lossless * np.minimum(until, runs.count)), 1.0)
    return switch * np.minimum(by_jumps, lost)


def running_out(runs: Segments) -> tuple[Floats, Floats]:
    """Segments after which slack may begin to run out, and after which it is gone: [pairs, tried, z, 1].

    Pauses longer than the slack use it up at once: it is gone where a run without a loss is unlikely.
    """
    drift = np.maximum(runs.losses.mean_hours - runs.growth, 1e-12)
    last = runs.count + 0.5
    middle = np.clip((runs.slack - runs.growth) / drift, 0.5, last)
    spread = _DEVIATIONS * np.sqrt(runs.losses.variance * middle) / drift + 1.0
    lossless = np.where(runs.losses.pause_hours > runs.slack, -_UNLIKELY / runs.losses.log_lossless, 0.0)
    gone = np.maximum(middle + spread, lossless)
    return np.clip(middle - spread, 0.5, last)[..., None], np.clip(gone, 0.5, last)[..., None]
