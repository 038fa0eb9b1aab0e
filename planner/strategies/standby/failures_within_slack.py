"""How much of its work a run can do on spot before waits for lost machines use up its slack: a bound by counting losses.

In n segments a run loses its machines at least a Poisson number of times, of mean `rate` x n x length, at even moments, since
a run without a loss is up for that long. After each it is without machines for a restart and an exponential wait of mean v. A run
that passed a segment lost no more until its end than the slack S of that segment, nor at any earlier segment more than its
slack. S is linear in the share x of the work. So given k losses up to x, the chance to have passed it is at most

    h_k(x) = min(P(G_k <= y(x)), g(x)^k),   y = (S - restart) / v,   g(x) the mean of 1 - e^-y up to x

with G_k the sum of k exponential variables of mean 1, since each of k moments is even up to x. Where slack falls from segment to
segment, the first of both is the lesser. With m losses on average in all work, the share of the work that is done on spot is

    q <= sum over k of the integral of e^(-m x) (m x)^k / k! h_k(x) over x

In each of a few parts of the work h_k is taken where it is largest: at the part's end where slack grows, else where it begins. More
than so many losses count as if there were no more, since h_k falls with k. It rises with y, and Poisson variables rise with m: the
bound falls where m rises and slack falls, as both do with the deviation of the estimate's error.
"""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.spot_standby_pairs import AT_ONCE_HOURS, Pairs, StandbyTerms

Floats = NDArray[np.float64]

#: Parts of the work, and losses that are told apart: more of them make the bound less than 0.2 % higher.
_PARTS, _MOST = 4, 8
_SHARES = np.linspace(0.0, 1.0, _PARTS + 1)[:, None]
#: A share of the work after more losses that is not worth telling apart.
_FEW = 1e-5
#: Slack that changes by less in a part, in mean waits, is level.
_LEVEL = 1e-6
#: So many bounds at once stay in the cache of a core.
_CHUNK = 2048


def most_share(pairs: Pairs, terms: StandbyTerms, z: Floats, interval_hours: Floats) -> Floats:
    """An upper bound on q of pairs [...] at deviations [..., z], in segments of at most `interval_hours` of work [...]."""
    hours, left = pairs.work_at(z)
    wall = hours * (1.0 + pairs.checkpoint_hours / interval_hours)[..., None]
    room = (terms.deadline_hours - pairs.setup_hours - pairs.changeover_hours)[..., None] - terms.restart_hours
    wait = np.maximum(pairs.waits_at(z), AT_ONCE_HOURS)
    slack = (np.maximum(room - needed, 0.0) / wait for needed in (left, wall))
    figures = np.broadcast_arrays(pairs.rate[..., None] * wall, *slack)
    flat, share = [values.reshape(-1) for values in figures], np.empty(figures[0].size)
    for first in range(0, share.size, _CHUNK):
        some = slice(first, first + _CHUNK)
        share[some] = _most_share(*(values[some] for values in flat))
    return share.reshape(figures[0].shape)


def _most_share(losses: Floats, begins: Floats, ends: Floats) -> Floats:
    """The bound from m and y before all the work and after it: [elements]; other arrays here are [parts, elements]."""
    waits = begins + (ends - begins) * _SHARES
    beyond, apart = np.exp(-waits), (ends - begins) / _PARTS
    grows, level = apart > 0, np.abs(apart) < _LEVEL
    mean = np.where(level, beyond[1:], (beyond[:-1] - beyond[1:]) / np.where(level, 1.0, apart))
    one_within = np.where(grows, 1.0 - np.cumsum(mean, axis=0) / (_PARTS * _SHARES[1:]), 1.0)
    slack = np.where(grows, waits[1:], waits[:-1])
    # P(G_k > y) grows by e^-y y^(k - 1) / (k - 1)!, `exactly` are the chances of k losses, `further` those of more than k.
    term = np.where(grows, beyond[1:], beyond[:-1])
    sum_within, all_within = 1.0 - term, one_within
    means = losses * _SHARES
    exactly = np.exp(-means)
    further = 1.0 - exactly
    share = np.diff(further, axis=0)
    left = losses / _PARTS - share
    for count in range(1, _MOST + 1):
        chance = np.clip(sum_within, 0.0, all_within)
        if count == _MOST or (left < _FEW * losses).all():
            break
        exactly *= means / count
        further -= exactly
        part = np.diff(further, axis=0)
        left -= part
        share += part * chance
        term *= slack / count
        sum_within = sum_within - term
        all_within = all_within * one_within
    return np.asarray((share + np.maximum(left, 0.0) * chance).sum(axis=0) / losses)
