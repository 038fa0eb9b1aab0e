"""Corrections of estimates from the user's past runs: a Bayesian random-effects model that shrinks towards no shift.

For the runs of one class of work, y = ln(measured / predicted) on accelerator a is

    y = c + d_a + e       c ~ N(0, rho tau^2)    d_a ~ N(0, (1 - rho) tau^2 + u_a)    e ~ N(0, s^2)

c is common to all of a user's machines (software, data, habits), d_a is the effect of one accelerator, e the variation
between runs. tau^2 is the part of the class's spread sigma^2 that is not between runs, so that without runs the estimate
is the uncorrected one. u_a is the variance that the estimate adds for an unmeasured chip or fabric. The posterior of
c + d_a is normal and has a closed form: its mean is the shift, and the prior variance less the posterior variance is
removed from the band. For an accelerator without runs, only c is corrected.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpuplan.planner.model.learned import NOTHING, AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.performance.prediction_bands import sigma_of

#: s as a share of sigma: runs of one source on one accelerator spread by 0.12 where all runs of the class spread by
#: 0.15 (language, 395 degrees of freedom), 0.32 of 0.31 (mixtures), 0.24 of 0.35 (encoders), 0.15 of 0.25
#: (convolutional): at least half of the variance is between jobs, about which runs of other jobs give no information.
RUN_SHARE = math.sqrt(0.5)
#: Least s: the difference between identical MLPerf configurations, 6 % in the median, over 0.6745.
REPEATS = 0.09
#: rho: variance between sources / (between sources + between accelerators of one source) is 0.39 for language,
#: 0.35 for mixtures, 0.48 for convolutional, 0.75 for encoders in the measured runs.
COMMON_SHARE = 0.5
#: Spread of ln(measured / predicted peak): 82 measured peaks differ by 8.6 % in the median if the job does not state
#: which projections have adapters (tools/fitting/memory_facts.py), over 0.6745.
SIGMA_MEMORY = 0.13
#: Limits of one run's shift: beyond a factor of ten in time or two in memory, the run was not the planned one.
MOST_LOG_HOURS = math.log(10.0)
MOST_LOG_MEMORY = math.log(2.0)


def least_sigma(task: str) -> float:
    """The spread that remains with any number of runs: the variation between runs."""
    return run_sigma(sigma_of(task))


def run_sigma(sigma: float) -> float:
    """s: standard deviation between runs of one user on one accelerator, for a class with spread `sigma`."""
    return max(REPEATS, RUN_SHARE * sigma)


@lru_cache(maxsize=64)
def learned_from(runs: tuple[PastRun, ...], task: str) -> LearnedCorrections:
    """The corrections from the runs of this class of work; `NOTHING` without any run."""
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
    return LearnedCorrections(task=task, corrections=tuple(corrections[:-1]), others=corrections[-1])


def _noise_of(run: PastRun, noise: float) -> float:
    """Standard deviation of a run's training time: that of its wall time over the share spent on training."""
    return math.hypot(noise, run.extra_sigma) / run.training_share


def _unmeasured(timed: Sequence[PastRun], sigma: float) -> dict[str, float]:
    """u_a: variance of the estimates of each accelerator beyond that of its class."""
    least: dict[str, float] = {}
    for run in timed:
        least[run.accelerator] = min(run.log_sigma, least.get(run.accelerator, math.inf))
    return {accelerator: max(0.0, spread**2 - sigma**2) for accelerator, spread in least.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """Per accelerator: the weighted mean of its runs' logarithms, and the variance of that mean."""

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
        # math.fsum makes the sums independent of the order of the reports.
        total = np.array([math.fsum(weight) for weight in weights.values()])
        return cls(
            names=tuple(weights),
            mean=np.array([math.fsum(terms) for terms in weighted.values()]) / total,
            variance=1.0 / total,
        )


#: (posterior mean, variance removed) per accelerator; key "" holds that of accelerators without runs.
_Posterior = dict[str, tuple[float, float]]


def _posterior(readings: _Readings, *, prior: float, unmeasured: dict[str, float], most: float) -> _Posterior:
    """Posterior mean and removed variance of c + d_a; means are limited to +-`most`."""
    if not readings.names:
        return {}
    order = np.argsort(readings.names)
    names = [readings.names[i] for i in order]
    accelerator_variance = np.array([(1 - COMMON_SHARE) * prior + unmeasured.get(name, 0.0) for name in names])
    covariance = COMMON_SHARE * prior + np.diag(accelerator_variance)
    across = np.vstack((covariance, np.full(len(names), COMMON_SHARE * prior)))
    weights = np.linalg.solve(covariance + np.diag(readings.variance[order]), across.T).T
    mean = np.clip(weights @ np.clip(readings.mean[order], -most, most), -most, most)
    removed = np.sum(weights * across, axis=1)
    return {name: (float(mean[i]), float(removed[i])) for i, name in enumerate([*names, ""])}


def _correction(
    name: str, timed: Sequence[PastRun], weighed: Sequence[PastRun], hours: _Posterior, memory: _Posterior
) -> AcceleratorCorrection:
    of_hours = hours.get(name, hours.get("", (0.0, 0.0)))
    return AcceleratorCorrection(
        accelerator=name,
        hours=_shift(name, timed, hours),
        memory=_shift(name, weighed, memory),
        variance_removed=of_hours[1],
    )


def _shift(name: str, runs: Sequence[PastRun], posterior: _Posterior) -> Shift:
    own_runs = sum(run.accelerator == name for run in runs)
    log, _ = posterior.get(name, posterior.get("", (0.0, 0.0)))
    return Shift(log=log, runs=own_runs or len(runs), elsewhere=not own_runs)
