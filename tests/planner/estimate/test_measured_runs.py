"""Measured runs and memory facts as a whole: the figures that benchmarks/accuracy.py prints stay where they are."""

import math
from collections import defaultdict

import numpy as np
import pytest

from benchmarks.accuracy import errors, log_ratio
from benchmarks.measured_runs import FACTS, runs

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not FACTS.is_dir(), reason=f"no measured runs at {FACTS}"),
]


def test_the_mean_over_sources_is_within_ten_percent_in_the_median_and_thirty_at_p90() -> None:
    groups: dict[str, list[float]] = defaultdict(list)
    for run in runs():
        ratio = log_ratio(run)
        assert not math.isnan(ratio), run.row["id"]
        groups[run.row["source_group"]].append(ratio)
    assert len(groups) >= 10
    medians, tails = np.array([errors(ratios) for ratios in groups.values()]).T
    assert np.mean(medians) <= 0.10
    assert np.mean(tails) <= 0.30
