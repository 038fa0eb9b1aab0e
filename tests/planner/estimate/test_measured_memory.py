"""Measured memory facts as a whole: OOMs and fits called, and the error of the peaks, stay where they are."""

import numpy as np
import pytest

from benchmarks.memory_facts import Seen, calls, seen, wilson
from benchmarks.memory_rows import facts


@pytest.fixture(scope="module")
def all_seen() -> list[Seen]:
    return [seen(fact) for fact in facts()[0]]


def test_nine_in_ten_that_run_out_of_memory_and_97_in_100_that_fit_are_called(all_seen: list[Seen]) -> None:
    found = calls(all_seen)
    for fits, asked in ((True, 0.97), (False, 0.90)):
        hits = [hit for kind in ("told", "derived") for _, hit in found[kind, fits]]
        assert len(hits) >= 90
        assert np.mean(hits) >= asked


def test_peaks_are_within_ten_percent_in_the_median(all_seen: list[Seen]) -> None:
    usable = [each for each in all_seen if each.fact.peak_gib is not None and not each.contradicts]
    errors = [abs(each.predicted / (each.fact.peak_gib or 0.0) - 1) for each in usable]
    assert len(errors) >= 85
    assert np.median(errors) <= 0.10


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(9, 10)
    assert (low, high) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(10, 10)[1] == 1.0
