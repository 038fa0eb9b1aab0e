"""Estimates shifted and narrowed by the user's own runs, shrunk towards no shift where the runs are few.

For the runs of one class of work, y = ln(measured / predicted) on accelerator a is

    y = c + d_a + e       c ~ N(0, rho tau^2)    d_a ~ N(0, (1 - rho) tau^2 + u_a)    e ~ N(0, s^2)

c is what all of a user's machines share (software, data, habits), d_a what is left of one accelerator, e what
differs from run to run. tau^2 is the part of the class's spread sigma^2 that is not from run to run, so that an
estimate that learned nothing is the plain one; u_a is what the estimate adds for a chip or a fabric that nobody
measured. The posterior of c + d_a (normal, in closed form) gives the shift, its mean, and by how much its variance
falls short of the prior, which the band loses. An accelerator without runs learns of c alone.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.estimate.bands import sigma_of
from planner.estimate.machines import Floats
from planner.past_runs import PastRun

#: s as a share of sigma: runs of one source on one accelerator spread by 0.12 where all runs of the class spread by
#: 0.15 (language, 395 degrees of freedom), 0.32 of 0.31 (mixtures), 0.24 of 0.35 (encoders), 0.15 of 0.25
#: (convolutional): at least half of the variance is between jobs, which no run of another job can tell.
RUN_SHARE = math.sqrt(0.5)
#: and never less than what identical MLPerf configurations differ by: 6 % in the median, over 0.6745.
REPEATS = 0.09
#: rho: variance between sources / (between sources + between accelerators of one source) is 0.39 for language,
#: 0.35 for mixtures, 0.48 for convolutional, 0.75 for encoders in the measured runs.
COMMON_SHARE = 0.5
#: Spread of ln(measured / predicted peak): 82 measured peaks lie 8.6 % off in the median where a job does not tell
#: which projections carry adapters (benchmarks/memory_facts.py), over 0.6745.
SIGMA_MEMORY = 0.13
#: What one run may say at most: past tenfold in time or twofold in memory, the run was another than the plan's.
MOST_LOG_HOURS = math.log(10.0)
MOST_LOG_MEMORY = math.log(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """By what a prediction is multiplied (`log` of it), and how many `runs` say so: those `elsewhere` if none are here."""

    log: float = 0.0
    runs: int = 0
    elsewhere: bool = False

    @property
    def factor(self) -> float:
        """The multiplier itself."""
        return math.exp(self.log)

    def phrase(self, what: str, task: str, accelerator: str) -> str:
        """As it is said under an estimate on this accelerator."""
        runs = "1 of your runs" if self.runs == 1 else f"{self.runs} of your runs"
        where = "other accelerators" if self.elsewhere else accelerator
        return f"{what} scaled by {self.factor:.2f} from {runs} of {task} work on {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is learned of one accelerator (`accelerator` empty: of those without runs).

    `variance_removed` is what the band of the hours loses, in terms of `log_sigma` squared.
    """

    accelerator: str
    hours: Shift = Shift()
    memory: Shift = Shift()
    variance_removed: float = 0.0


NO_CORRECTION = Correction(accelerator="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is learned of one class of work: a correction per accelerator with runs, and one for all others."""

    task: str = ""
    corrections: tuple[Correction, ...] = ()
    others: Correction = NO_CORRECTION

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.corrections)

    def of(self, accelerator: str) -> Correction:
        """The correction of this accelerator."""
        return next((each for each in self.corrections if each.accelerator == accelerator), self.others)

    def sentences(self, accelerator: str) -> tuple[str, ...]:
        """What is said under an estimate on this accelerator; nothing where nothing is learned."""
        found = self.of(accelerator)
        shifts = (("hours", found.hours), ("peak memory", found.memory))
        return tuple(
            f"{shift.phrase(what, self.task, accelerator)}; forget them with gpuplan actuals --forget, "
            "or leave them out with the setting learning: off"
            for what, shift in shifts
            if shift.runs
        )


NOTHING = Learned()


def least_sigma(task: str) -> float:
    """The spread that stays however many runs there are: from one run to the next."""
    return run_sigma(sigma_of(task))


def run_sigma(sigma: float) -> float:
    """s: how far runs of one user on one accelerator lie apart, where a class spreads by `sigma`."""
    return max(REPEATS, RUN_SHARE * sigma)


@lru_cache(maxsize=64)
def learned_from(runs: tuple[PastRun, ...], task: str) -> Learned:
    """What the runs of this class of work teach; `NOTHING` without any."""
    mine = [run for run in runs if run.task == task]
    if not mine:
        return NOTHING
    sigma = sigma_of(task)
    noise, noise_memory = run_sigma(sigma), run_sigma(SIGMA_MEMORY)
    timed = [run for run in mine if run.log_hours is not None]
    hours = _posterior(
        _Readings.of(timed, [_noise_of(run, noise) for run in timed], [run.log_hours or 0.0 for run in timed]),
        prior=(1 - RUN_SHARE**2) * sigma**2,
        unmeasured=_unmeasured(timed, sigma),
        most=MOST_LOG_HOURS,
    )
    weighed = [run for run in mine if run.log_memory is not None]
    memory = _posterior(
        _Readings.of(weighed, [noise_memory] * len(weighed), [run.log_memory or 0.0 for run in weighed]),
        prior=(1 - RUN_SHARE**2) * SIGMA_MEMORY**2,
        unmeasured={},
        most=MOST_LOG_MEMORY,
    )
    names = sorted({run.accelerator for run in mine})
    corrections = [_correction(name, timed, weighed, hours, memory) for name in (*names, "")]
    return Learned(task=task, corrections=tuple(corrections[:-1]), others=corrections[-1])


def _noise_of(run: PastRun, noise: float) -> float:
    """The noise of what a run says of training: that of its time, over the share of it that trained."""
    return math.hypot(noise, run.extra_sigma) / run.training_share


def _unmeasured(timed: Sequence[PastRun], sigma: float) -> dict[str, float]:
    """u_a: by how much the estimates of each accelerator spread more than its class, in variance."""
    least: dict[str, float] = {}
    for run in timed:
        least[run.accelerator] = min(run.log_sigma, least.get(run.accelerator, math.inf))
    return {accelerator: max(0.0, spread**2 - sigma**2) for accelerator, spread in least.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """Per accelerator the weighted mean of what its runs say, and the variance of that mean."""

    names: tuple[str, ...]
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, runs: Sequence[PastRun], noise: Sequence[float], values: Sequence[float]) -> "_Readings":
        weights: dict[str, list[float]] = defaultdict(list)
        weighted: dict[str, list[float]] = defaultdict(list)
        for run, sigma, value in zip(runs, noise, values, strict=True):
            weights[run.accelerator].append(sigma**-2)
            weighted[run.accelerator].append(value * sigma**-2)
        # math.fsum: the order in which runs were reported changes nothing.
        total = np.array([math.fsum(each) for each in weights.values()])
        return cls(
            names=tuple(weights),
            mean=np.array([math.fsum(each) for each in weighted.values()]) / total,
            variance=1.0 / total,
        )


#: Per accelerator, and for "" those without runs: (posterior mean, variance removed).
_Posterior = dict[str, tuple[float, float]]


def _posterior(readings: _Readings, *, prior: float, unmeasured: dict[str, float], most: float) -> _Posterior:
    """Mean and lost variance of c + d_a, every run's word bounded by `most`."""
    if not readings.names:
        return {}
    order = np.argsort(readings.names)
    names = [readings.names[i] for i in order]
    own = np.array([(1 - COMMON_SHARE) * prior + unmeasured.get(name, 0.0) for name in names])
    covariance = COMMON_SHARE * prior + np.diag(own)
    across = np.vstack((covariance, np.full(len(names), COMMON_SHARE * prior)))
    weights = np.linalg.solve(covariance + np.diag(readings.variance[order]), across.T).T
    mean = np.clip(weights @ np.clip(readings.mean[order], -most, most), -most, most)
    removed = np.sum(weights * across, axis=1)
    return {name: (float(mean[i]), float(removed[i])) for i, name in enumerate([*names, ""])}


def _correction(
    name: str, timed: Sequence[PastRun], weighed: Sequence[PastRun], hours: _Posterior, memory: _Posterior
) -> Correction:
    here = hours.get(name, hours.get("", (0.0, 0.0)))
    return Correction(
        accelerator=name,
        hours=_shift(name, timed, hours),
        memory=_shift(name, weighed, memory),
        variance_removed=here[1],
    )


def _shift(name: str, runs: Sequence[PastRun], posterior: _Posterior) -> Shift:
    own = sum(run.accelerator == name for run in runs)
    log, _ = posterior.get(name, posterior.get("", (0.0, 0.0)))
    return Shift(log=log, runs=own or len(runs), elsewhere=not own)
