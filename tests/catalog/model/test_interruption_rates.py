"""The rate at which spot nodes are taken away."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from gpuplan.catalog.model import interruption_rates
from gpuplan.catalog.model.interruption_rates import (
    BAND_MIDDLE,
    DEFAULT_INTERRUPTIONS_PER_HOUR,
    band_up_to,
    interruptions_per_hour,
)


def test_a_worse_band_means_more_interruptions() -> None:
    rates = [interruptions_per_hour(band) for band in ("<5%", "5-10%", "10-15%", "15-20%", ">20%")]
    assert rates == sorted(rates)
    assert len(set(rates)) == len(rates)


def test_the_top_band_is_lost_as_often_as_the_traces_show() -> None:
    assert interruptions_per_hour(">20%") == pytest.approx(DEFAULT_INTERRUPTIONS_PER_HOUR, rel=0.01)


def test_the_literal_reading_of_a_band_is_hundreds_of_times_rarer() -> None:
    literal = -math.log1p(-BAND_MIDDLE[">20%"]) / 730
    assert literal == pytest.approx(1 / 2_500, rel=0.02)
    assert interruptions_per_hour(">20%") / literal == pytest.approx(730 / interruption_rates.EXPOSURE_HOURS, rel=0.01)


def test_a_range_is_known_by_its_largest_share_whatever_the_step() -> None:
    assert [band_up_to(largest) for largest in (5, 11, 16, 22, 100)] == list(BAND_MIDDLE)
    assert band_up_to(10) == "5-10%"
    assert band_up_to(101) == ">20%"


@pytest.mark.shared_data
def test_the_default_rate_is_what_the_preemption_traces_hold(shared_data: Path) -> None:
    node_hours, losses = 0.0, 0
    for path in sorted((shared_data / "spot" / "cant_be_late_traces").glob("preemption__*")):
        trace = json.loads(path.read_text(encoding="utf-8"))
        nodes = trace["data"]
        node_hours += sum(nodes) * trace["metadata"]["gap_seconds"] / 3600
        losses += sum(max(0, before - after) for before, after in pairwise(nodes))
    assert losses == interruption_rates.TRACE_LOSSES
    assert node_hours == pytest.approx(interruption_rates.TRACE_NODE_HOURS, abs=0.1)
