"""Residuals of measured runs under constants that were fitted without their source."""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import Key, value
from tools.fitting.least_squares_fit import fitted_keys, groups, linearised, solved, under
from tools.fitting.stacked_runs import Sample


def current() -> dict[Key, float]:
    """The constants as they stand."""
    return {key: value(*key) for key in fitted_keys()}


def without_source(sample: Sample, now: dict[Key, float]) -> Floats:
    """Each source predicted by the constants that the others give; runs in unknown units have an unknown offset."""
    left, group, linear = np.full(len(sample.runs), np.nan), groups(sample), linearised(sample, now)
    for name in np.unique(group):
        out = group == name
        left[out] = under(sample, solved(sample, linear, ~out))[out]
    return left
