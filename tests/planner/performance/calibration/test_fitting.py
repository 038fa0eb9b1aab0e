"""The fit: it finds constants that made the data, stays in bounds, and leaves alone what no run identifies."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gpuplan.planner.performance.fitted_constants import table, trying
from tools.fitting.least_squares_fit import Loss, comparisons, fit, linearised, offset_by_others, priors, solved
from tools.fitting.measured_runs import runs
from tools.fitting.stacked_runs import Sample, residuals, sample_of

MADE = {("overlap", ""): 0.6, ("class_matmul", "encoder"): 0.8, ("stack_share", "architecture Ampere"): 0.85}


@cache
def small() -> Sample:
    """Every eighth run."""
    return sample_of(runs()[::8])


@pytest.mark.slow(reason="one long case")
def test_measurements_that_other_constants_made_are_explained_and_the_constants_approached() -> None:
    sample, start = small(), priors()
    with trying(start):
        before = residuals(sample)
    with trying(start | MADE):
        made = residuals(sample) + sample.measured
    perfect = Sample(runs=sample.runs, stacks=sample.stacks, measured=made)
    fitted = fit(perfect, np.ones(len(sample.runs), dtype=bool), start, rounds=2)
    with trying(fitted):
        after = residuals(perfect)
    wrong = before + sample.measured - made
    assert np.mean(np.abs(after)) < 0.5 * np.mean(np.abs(wrong))
    for key, true in MADE.items():
        assert abs(fitted[key] - true) < abs(start[key] - true)


@pytest.mark.slow(reason="one long case")
def test_without_runs_every_constant_stays_at_its_prior_and_within_bounds() -> None:
    sample, start = sample_of(runs()[::300]), priors()
    fitted = solved(sample, linearised(sample, start), np.zeros(len(sample.runs), dtype=bool))
    for key, now in fitted.items():
        assert table()[key].low <= now <= table()[key].high
        if key[0] != "stack_share":
            assert now == pytest.approx(start[key], rel=1e-6)


@pytest.mark.slow(reason="one long case")
def test_what_slows_a_source_on_one_chip_moves_the_constants_less_than_without_effects_of_sources() -> None:
    sample, start = sample_of([run for run in runs()[::8] if run.row["scored"] == "absolute"]), priors()
    slow = np.array([run.row["group"] == "llm-foundry" and run.row["gpu"].startswith("A100") for run in sample.runs])
    assert slow.any()
    linear, everything = linearised(sample, start), np.ones(len(sample.runs), dtype=bool)
    key = "stack_share", "architecture Ampere"
    moves = []
    for spread in (0.0, 1.0):
        loss = Loss(weight=-0.5, spread=spread)
        slowed = replace(linear, at=linear.at + 0.2 * slow)
        moves.append(solved(sample, linear, everything, loss)[key] - solved(sample, slowed, everything, loss)[key])
    assert moves[0] > 0.01 > abs(moves[1])


def test_runs_of_unknown_work_count_against_the_median_of_the_others() -> None:
    left = offset_by_others(np.array([1.0, 2.0, 4.0, 0.5, 7.0]), np.array([0, 0, 0, -1, 1]))
    assert left[:4] == pytest.approx([-2.0, -0.5, 2.5, 0.5])
    assert np.isnan(left[4])


@pytest.mark.slow(reason="one long case")
def test_only_runs_in_unknown_units_are_compared() -> None:
    sample = small()
    for run, number in zip(sample.runs, comparisons(sample), strict=True):
        assert (number >= 0) == (run.row["scored"] == "ratio")
