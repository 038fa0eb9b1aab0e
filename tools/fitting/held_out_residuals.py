"""Residuals of measured runs under constants that were fitted with them, without their source, without their family."""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import Key, value
from tools.fitting.least_squares_fit import fit, fitted_keys, groups, linearised, scored, solved
from tools.fitting.stacked_runs import Sample

#: Rounds of a fit that leaves a family out; the constants then move less than their own uncertainty.
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutConstants:
    """ln(predicted rate / measured rate) of every run of a sample; nan where there is nothing to compare with."""

    in_sample: Floats
    without_source: Floats
    without_family: Floats


def current() -> dict[Key, float]:
    """The constants as they stand."""
    return {key: value(*key) for key in fitted_keys()}


def families(sample: Sample) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """The family of every run: sources that share a stack or an organiser."""
    return np.array([run.row["family"] for run in sample.runs])


def left_out_runs(sample: Sample) -> HeldOutConstants:
    """All three; a source is left out by one step from the constants as they stand, a family by fits of its own."""
    now = current()
    return HeldOutConstants(
        in_sample=scored(sample, now),
        without_source=without_source(sample, now),
        without_family=without_family(sample, now),
    )


def without_source(sample: Sample, now: dict[Key, float]) -> Floats:
    """Each source predicted by the constants that the others give."""
    left, group, linear = np.full(len(sample.runs), np.nan), groups(sample), linearised(sample, now)
    for name in np.unique(group):
        out = group == name
        left[out] = scored(sample, solved(sample, linear, ~out))[out]
    return left


def without_family(sample: Sample, now: dict[Key, float]) -> Floats:
    """Each family predicted by the constants that the others give."""
    left, family = np.full(len(sample.runs), np.nan), families(sample)
    for name in np.unique(family):
        out = family == name
        left[out] = scored(sample, fit(sample, ~out, now, rounds=ROUNDS))[out]
    return left
