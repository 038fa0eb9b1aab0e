"""Measured runs as a whole: the figures that benchmarks/accuracy.py prints stay where they are."""

from functools import cache

import numpy as np

from benchmarks.accuracy import errors
from benchmarks.fitting import groups, scored
from benchmarks.leave_out import current, without_source
from benchmarks.measured_runs import predict, rows, runs
from benchmarks.stacked import Sample, residuals, sample_of
from planner.estimate.bands import Z80, sigma_of


@cache
def everything() -> Sample:
    """All runs with their layouts."""
    return sample_of(runs())


def test_the_mean_over_sources_is_about_ten_percent_in_the_median_and_thirty_at_p90() -> None:
    left, group = scored(everything(), current()), groups(everything())
    found = np.array([errors(left[group == name]) for name in np.unique(group)])
    assert len(found) >= 16
    median, p90 = found.mean(axis=0)
    assert median <= 0.105
    assert p90 <= 0.32


def test_sources_that_the_fit_has_not_seen_are_within_fifteen_and_forty_percent() -> None:
    sample = everything()
    left, group = without_source(sample, current()), groups(sample)
    median, p90 = np.array([errors(left[group == name]) for name in np.unique(group)]).mean(axis=0)
    assert median <= 0.15
    assert p90 <= 0.40
    sigma = np.array([sigma_of(run.work.task) for run in sample.runs])
    known = ~np.isnan(left)
    assert 0.75 <= np.mean(np.abs(left[known]) <= Z80 * sigma[known]) <= 0.85


def test_nearly_all_usable_runs_are_answered() -> None:
    left = scored(everything(), current())
    assert np.count_nonzero(~np.isnan(left)) >= 0.95 * len(rows("runs.csv.xz"))


def test_timing_runs_in_stacks_agrees_with_asking_for_each() -> None:
    sample = everything()
    left = residuals(sample)
    for index in range(0, len(sample.runs), 97):
        run = sample.runs[index]
        found = predict(run)
        assert found is not None
        alone = np.log(float(found.units_per_second[0]) / float(run.row["gpus_total"])) - sample.measured[index]
        assert abs(alone - left[index]) < 1e-9
