"""Runs that do all their work on spot, since their slack is so large that the standby is never called: closed form."""

import math

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.preemption_losses import CERTAIN
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard, Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import (
    FINE_NODES,
    FINE_WEIGHTS,
    FURTHEST,
    Legs,
    Priced,
    cut,
    intervals,
    priced_finely,
    total_usd,
)

Floats = NDArray[np.float64]

#: The log of a probability of calling the standby that is zero to the last digit of a float.
_NEVER = math.log(1e-18)
#: Exponents of the losses' exponential moments, per hour that a failure may take.
_SLOPES = (0.9, 0.5, 0.25)
#: exp() beyond this is a run that never ends.
_NEVER_ENDS = 700.0
#: The estimate's error where every deviation considered is in time.
_EVERY = cut(np.full(1, 100.0), FINE_NODES, FINE_WEIGHTS)


def priced_alone(pair: Pairs, terms: StandbyTerms) -> Priced:
    """A single pair at every interval tried, as `standby_switching.priced_finely` prices it."""
    tried = intervals(pair)
    return _on_spot(pair, terms, tried) if never_called(pair, terms, tried[0].tolist()) else priced_finely(pair, terms)


def never_called(pair: Pairs, terms: StandbyTerms, interval_hours: list[float]) -> bool:
    """Whether no run of the pair calls its standby at any of these intervals, at any deviation of the estimate considered.

    By Chernoff's bound, for the number of segments at the largest deviation, each of the greatest length, the longest
    waits, and the least slack: S_1 >= room - I - f U and S_n >= room - (f W + n d) - f U / n, with U / n <= I U / W.
    """
    work, write, standby, sigma, standby_sigma = (
        float(values[0])
        for values in (
            pair.work_hours,
            pair.checkpoint_hours,
            pair.standby_work_hours,
            pair.log_sigma,
            pair.standby_log_sigma,
        )
    )
    room = terms.deadline_hours - float(pair.setup_hours[0]) - float(pair.changeover_hours[0])
    wait = float(pair.waits_at(np.full(1, FURTHEST))[0, 0])
    longest, slowest = work * math.exp(FURTHEST * sigma), standby * math.exp(FURTHEST * standby_sigma)
    apart = standby / work * math.exp(FURTHEST * abs(standby_sigma - sigma))
    if room <= max(interval_hours) + write + standby * math.exp(CERTAIN * standby_sigma):
        return False
    for interval in interval_hours:
        count = max(math.ceil(longest / interval - 1e-9), 1)
        slack = room - max(interval + write + slowest, longest + count * write + interval * apart)
        if _log_chance(count, interval + write, slack, wait, Hazard.of(pair, terms)) >= _NEVER:
            return False
    return True


def _log_chance(count: int, length: float, slack: float, wait_hours: float, hazard: Hazard) -> float:
    """The log of an upper bound on the probability that `count` segments of `length` lose more than the slack.

    E[e^(t losses)] e^(-t slack) at the best of a few t, where each failure loses a whole segment and a whole restart.
    """
    rate, restart_hours = hazard
    least, fails, again = 0.0, -math.expm1(-rate * length), -math.expm1(-rate * restart_hours)
    for slope in _SLOPES:
        per_hour = slope / (length + restart_hours + wait_hours)
        pause = math.exp(per_hour * restart_hours) / (1.0 - per_hour * wait_hours)
        if again * pause >= 1.0:
            continue
        lost = fails * math.exp(per_hour * length) * pause * (1.0 - again) / (1.0 - again * pause)
        if lost < 1.0:
            least = min(least, count * (-rate * length - math.log1p(-lost)) - per_hour * slack)
    return least


def _on_spot(pair: Pairs, terms: StandbyTerms, tried: Floats) -> Priced:
    """The pair at these intervals [1, tried], where the standby is never called: each segment takes the time of Daly (2006)."""
    rate, sigma = float(pair.rate[0]), float(pair.log_sigma[0])
    work = pair.work_hours * np.exp(sigma * _EVERY.z)
    count = np.maximum(np.ceil(work / tried[0][:, None] - 1e-9), 1.0)
    segment = np.expm1(np.minimum(rate * (work / count + pair.checkpoint_hours), _NEVER_ENDS))
    restarts = math.exp(min(rate * terms.restart_hours, _NEVER_ENDS)) / rate
    paid = count * segment * restarts
    setup_hours = float(pair.setup_hours[0])
    spot_hours = setup_hours + np.vecdot(paid, _EVERY.weights)[None]
    # Waiting for preempted machines takes time but is not billed.
    wall_hours = setup_hours + np.vecdot(paid * (1.0 + rate * pair.waits_at(_EVERY.z)), _EVERY.weights)[None]
    nothing = np.zeros_like(spot_hours)
    usd = total_usd(pair, spot_hours, wall_hours, nothing, nothing)
    legs = Legs(
        spot_hours=spot_hours, wall_hours=wall_hours, standby_hours=nothing, switch_probability=nothing, usd=usd
    )
    return Priced(interval_hours=tried, in_time=np.ones_like(spot_hours), legs=legs)
