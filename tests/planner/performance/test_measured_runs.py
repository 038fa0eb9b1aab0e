"""Measured runs as a whole: wide bounds on what tools/fitting/accuracy.py prints."""

from functools import cache

import numpy as np
import pytest

from gpuplan.planner.performance.prediction_bands import Z80, sigma_of
from tools.fitting.accuracy import errors
from tools.fitting.least_squares_fit import comparisons, current, groups, offset_by_others, scored, without_source
from tools.fitting.measured_runs import predict, rows, runs
from tools.fitting.stacked_runs import Sample, residuals, sample_of


@cache
def everything() -> Sample:
    """All runs with their layouts."""
    return sample_of(runs())


@pytest.mark.slow(reason="one long case")
def test_the_mean_over_sources_is_below_fifteen_percent_in_the_median_and_forty_five_at_p90() -> None:
    left, group = scored(everything(), current()), groups(everything())
    by_source = np.array([errors(left[group == name]) for name in np.unique(group)])
    assert len(by_source) >= 16
    median, p90 = by_source.mean(axis=0)
    assert median <= 0.15
    assert p90 <= 0.45


@pytest.mark.slow(reason="one long case")
def test_sources_that_the_fit_has_not_seen_are_within_twenty_and_fifty_percent() -> None:
    sample = everything()
    left, group = offset_by_others(without_source(sample, current()), comparisons(sample)), groups(sample)
    median, p90 = np.array([errors(left[group == name]) for name in np.unique(group)]).mean(axis=0)
    assert median <= 0.20
    assert p90 <= 0.50
    sigma = np.array([sigma_of(run.work.task) for run in sample.runs])
    known = ~np.isnan(left)
    assert 0.7 <= np.mean(np.abs(left[known]) <= Z80 * sigma[known]) <= 0.9


@pytest.mark.slow(reason="one long case")
def test_nearly_all_usable_runs_are_answered() -> None:
    left = scored(everything(), current())
    assert np.count_nonzero(~np.isnan(left)) >= 0.95 * len(rows("runs.csv.xz"))


@pytest.mark.slow(reason="one long case")
def test_timing_runs_in_stacks_agrees_with_timing_them_one_by_one() -> None:
    sample = everything()
    left = residuals(sample)
    for index in range(0, len(sample.runs), 97):
        run = sample.runs[index]
        single = predict(run)
        assert single is not None
        alone = np.log(float(single.units_per_second[0]) / float(run.row["gpus_total"])) - sample.measured[index]
        assert abs(alone - left[index]) < 1e-9
