"""The rule of a standby, replayed preemption by preemption with random draws from a fixed seed.

A run does segments of work, each closed by a checkpoint; an attempt at one is made only while it may fail at its very
end and the standby still be in time. After a preemption it waits for a machine (unpaid) and restarts (paid). The
estimate's error is one factor of both machines, known from the start; where the standby cannot be in time even so, it is
called after the first segment.
"""

import math
import random
from typing import NamedTuple

from planner.spot.net import NetTerms, Pairs

RUNS = 3000
SEED = 20261121
#: The model may differ from the rule by its own approximations.
SIGMAS = 5.0
MODEL_SHARE = 0.01
MODEL_ABSOLUTE = 0.003


class Leg(NamedTuple):
    """The mean of a figure over the runs, and its standard error."""

    mean: float
    error: float

    def allows(self, value: float) -> bool:
        """Whether a value lies within what chance, and the approximations of the model, leave room for."""
        return abs(value - self.mean) <= SIGMAS * self.error + MODEL_SHARE * abs(self.mean) + MODEL_ABSOLUTE

    def of_event(self, chance: float, size: float, runs: int) -> "Leg":
        """With the error at least that of something of this size and chance, which few runs or none may have met."""
        return self._replace(error=max(self.error, size * math.sqrt(max(chance * (1.0 - chance), 0.0) / runs)))


class Simulated(NamedTuple):
    """Hours paid on spot and on the standby, and how often that is called, over so many runs."""

    spot_hours: Leg
    standby_hours: Leg
    called: Leg
    runs: int


class _Pair(NamedTuple):
    """One pair in plain numbers."""

    work: float
    sigma: float
    rate: float
    write: float
    standby: float
    standby_sigma: float
    changeover: float


def simulated(pairs: Pairs, terms: NetTerms, interval_hours: float) -> Simulated:
    """The first pair's runs at an interval between checkpoints."""
    pair = _Pair(
        *(
            float(each[0])
            for each in (
                pairs.work_hours,
                pairs.log_sigma,
                pairs.rate,
                pairs.checkpoint_hours,
                pairs.standby_work_hours,
                pairs.standby_log_sigma,
                pairs.changeover_hours,
            )
        )
    )
    draw = random.Random(SEED)
    rows = [_one(pair, terms, interval_hours, draw) for _ in range(RUNS)]
    spot, standby, called = (_leg([row[i] for row in rows]) for i in range(3))
    return Simulated(spot, standby, called, RUNS)


def _leg(values: list[float]) -> Leg:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Leg(mean, math.sqrt(variance / len(values)))


def _one(pair: _Pair, terms: NetTerms, interval: float, draw: random.Random) -> tuple[float, float, float]:
    """Hours paid on spot, on the standby, and whether that was called, of one run; set-up counts as it is."""
    z = draw.gauss(0, 1)
    spot_factor, standby_factor = math.exp(pair.sigma * z), math.exp(pair.standby_sigma * z)
    work, all_on_standby = pair.work * spot_factor, pair.standby * standby_factor
    count = max(1, math.ceil(work / interval - 1e-9))
    length = work / count + pair.write
    if terms.setup_hours + length + pair.changeover + all_on_standby > terms.deadline_hours:
        return terms.setup_hours + length, pair.changeover + all_on_standby, 1.0
    clock, paid, done = terms.setup_hours, 0.0, 0
    while done < count:
        last = terms.deadline_hours - length - pair.changeover - all_on_standby * (1 - done / count)
        if clock > last + 1e-9:
            break
        until = draw.expovariate(pair.rate)
        clock, paid = clock + min(until, length), paid + min(until, length)
        if until >= length:
            done += 1
            continue
        again = _back(clock, paid, last, terms, (pair.rate, draw))
        if again is None:
            break
        clock, paid = again
    called = done < count
    left = all_on_standby * (1 - done / count)
    return terms.setup_hours + paid, (pair.changeover + left) if called else 0.0, float(called)


def _back(
    clock: float, paid: float, last: float, terms: NetTerms, chance: tuple[float, random.Random]
) -> tuple[float, float] | None:
    """Clock and paid hours once a machine is back and has restarted; None where that would leave the standby too late."""
    rate, draw = chance
    while True:
        wait = draw.expovariate(1 / terms.wait_hours) if terms.wait_hours else 0.0
        if clock + wait + terms.restart_hours > last:
            return None
        clock += wait
        holds = min(draw.expovariate(rate), terms.restart_hours)
        clock, paid = clock + holds, paid + holds
        if holds == terms.restart_hours:
            return clock, paid
