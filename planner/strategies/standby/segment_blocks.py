"""The blocks of segments in which a run with a standby is followed: short where calls are likely, one where none are."""

import math

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.run_segments import Segments, running_out
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard

Floats = NDArray[np.float64]

#: Blocks with evenly spread ends, and blocks whose ends grow by a constant factor, since slack may be gone soon.
_EVEN, _FACTORS = 16, 16
#: A probability of having called the standby that counts as zero.
_NEVER_CALLED = math.log(1e-11)
#: Exponents of the losses' exponential moments, per hour that a failure may take: Chernoff's bound is the least.
_SLOPES = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0])


def ends_of_blocks(runs: Segments) -> Floats:
    """Segments at the ends of blocks, ascending: [rows, blocks + 1]. Closest where calls are likely.

    Ends are even where losses use up the slack, and geometric from the first to the last segment. They are geometric, too, in
    the rest of falling slack, or in growing slack.
    """
    count = runs.count[:, None]
    gone = np.floor(runs.slack / np.maximum(-runs.growth, 1e-300)) + 1.0
    gone = np.where(runs.growth < 0, np.clip(gone, 0.0, runs.count), runs.count)[:, None]
    busy = np.minimum(np.ceil(running_out(runs)[1]), gone)
    by_factor = np.arange(_FACTORS) / _FACTORS
    growth = np.maximum(runs.growth, 1e-300)[:, None]
    slack = np.maximum(runs.slack[:, None], growth)
    grown = slack / growth * np.expm1(np.log1p((count - 1.0) * growth / slack) * by_factor) + 1.0
    close = np.where(runs.growth[:, None] < 0, gone - gone**by_factor, grown)
    ends = (busy * np.arange(_EVEN + 1) / _EVEN, gone**by_factor, close, gone, np.minimum(gone + 1.0, count), count)
    ends_ = np.clip(np.floor(np.concatenate(ends, axis=1) + 1e-9), 0.0, count)
    return np.sort(ends_, axis=1)


def merged(ends: Floats, runs: Segments, hazard: Hazard) -> Floats:
    """The ends, with the leading blocks in which no run calls the standby merged into one.

    A convolution that removes nothing can be combined with the next. By Chernoff, P(L_n > S_n) <= E[e^(tL)]^n e^(-t S_n)
    for every t, and where slack does not grow the probability is largest at the end of a block.
    """
    wait = runs.wait_hours[:, None]
    slope = _SLOPES / ((runs.length + hazard.restart_hours)[:, None] + wait)
    slack = runs.slack[:, None] + (ends - 1.0) * runs.growth[:, None]
    grown = np.maximum(ends, 1.0)[..., None] * _log_moment(runs.length[:, None], wait, slope, hazard)[:, None]
    chance = (grown - slope[:, None] * slack[..., None]).min(axis=-1)
    never = (chance < _NEVER_CALLED) & (runs.growth <= 0)[:, None]
    never[:, 0] = True
    leading = np.logical_and.accumulate(never, axis=1)
    leading[:, :-1] &= leading[:, 1:]
    leading[:, -1] = False
    return np.where(leading, 0.0, ends)


def log_chance_of_a_call(runs: Segments, hazard: Hazard) -> Floats:
    """The log of an upper bound on the probability that a run [rows] calls the standby at all.

    A call in segment n means L_n - n g > S_1 - g for the growth g. With m = E[e^(t(L - g))] of one segment, e^(t(L_n - n g)) / m^n
    is a martingale, so by Doob's inequality the probability is at most max(m, 1)^N e^(-t(S_1 - g)) for every t.
    """
    wait = runs.wait_hours[:, None]
    slope = _SLOPES / ((runs.length + hazard.restart_hours)[:, None] + wait)
    growth = runs.growth[:, None]
    by_segment = np.maximum(_log_moment(runs.length[:, None], wait, slope, hazard) - slope * growth, 0.0)
    return np.asarray((runs.count[:, None] * by_segment - slope * (runs.slack[:, None] - growth)).min(axis=1))


def _log_moment(length: Floats, wait_hours: Floats, slope: Floats, hazard: Hazard) -> Floats:
    """ln E[e^(slope L)] of one segment's losses L (see `loss_lattice`): [rows, slopes]; inf where it does not exist."""

    rate = hazard.rate

    def below(top: Floats | float) -> Floats:
        """E[e^(slope t)] of the moment t of a failure, given that it comes within `top` hours."""
        beyond = np.where(slope == rate, 1e-12, slope - rate)
        return rate * np.expm1(beyond * top) / beyond / -np.expm1(-rate * top)

    survives, again = np.exp(-rate * length), math.exp(-rate * hazard.restart_hours)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wait = np.where(slope * wait_hours < 1.0, 1.0 / (1.0 - slope * wait_hours), np.inf)
        fails_again = (1.0 - again) * below(max(hazard.restart_hours, 1e-12)) * wait
        pause = wait * np.exp(slope * hazard.restart_hours) * again / (1.0 - fails_again)
        fails = (1.0 - survives) * below(length) * pause
        moment = np.log(survives / (1.0 - fails))
    return np.where((fails_again < 1.0) & (fails < 1.0) & (fails >= 0.0), moment, np.inf)
