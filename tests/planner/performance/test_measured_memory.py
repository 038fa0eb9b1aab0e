"""Measured memory facts as a whole: wide bounds on OOMs and fits called and on the error of the peaks."""

import numpy as np
import pytest

from tools.fitting.memory_facts import ObservedMemory, calls, seen, wilson
from tools.fitting.memory_rows import facts


@pytest.fixture(scope="module")
def all_seen() -> list[ObservedMemory]:
    return [seen(fact) for fact in facts()[0]]


@pytest.mark.slow(reason="one long case")
def test_seven_in_ten_that_run_out_of_memory_and_95_in_100_that_fit_are_called(all_seen: list[ObservedMemory]) -> None:
    counts = calls(all_seen)
    for fits, asked in ((True, 0.95), (False, 0.7)):
        hits = [hit for kind in ("told", "derived") for _, hit in counts[kind, fits]]
        assert len(hits) >= 90
        assert np.mean(hits) >= asked


def test_peaks_are_within_ten_percent_in_the_median(all_seen: list[ObservedMemory]) -> None:
    usable = [
        observed_memory
        for observed_memory in all_seen
        if observed_memory.fact.peak_gib is not None and not observed_memory.contradicts
    ]
    errors = [abs(prediction.predicted / (prediction.fact.peak_gib or 0.0) - 1) for prediction in usable]
    assert len(errors) >= 85
    assert np.median(errors) <= 0.10


def test_a_peak_of_nvidia_smi_has_the_context_in_it(all_seen: list[ObservedMemory]) -> None:
    whole = [item for item in all_seen if item.fact.whole]
    assert {item.fact.source for item in whole} == {"bigscience-a100", "bigscience-v100"}
    assert all(item.predicted == item.needed and item.measured_need == item.fact.peak_gib for item in whole)
    of_allocator = [item for item in all_seen if item.fact.peak_gib is not None and not item.fact.whole]
    assert all(item.measured_need > item.fact.peak_gib for item in of_allocator if item.fact.peak_gib)


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(9, 10)
    assert (low, high) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(10, 10)[1] == 1.0
