"""Published scores become probabilities in their order, and impossible answers are refused."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, hazard_of_share, probability_of
from gpuplan.catalog.model.offer import Implausible

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
ANSWER = CapacityAnswer(
    provider="aws",
    region="us-east-1",
    zone="use1-az1",
    instance_type="p5.48xlarge",
    nodes=2,
    price_kind="spot",
    probability=0.65,
    published="7",
    asked_at=ASKED_AT,
    source="test",
)


@pytest.mark.parametrize(
    ("provider", "values"), [("aws", tuple(map(str, range(1, 11)))), ("azure", ("Low", "Medium", "High"))]
)
def test_a_better_score_is_a_higher_probability(provider: str, values: tuple[str, ...]) -> None:
    read = [probability_of(provider, "spot", value) for value in values]
    assert read == sorted(set(read))
    assert 0 < read[0] < read[-1] < 1


@pytest.mark.parametrize("value", ["0", "11", "7.5", "high", "", "x" * 200])
def test_another_score_is_refused_with_those_that_are_known(value: str) -> None:
    with pytest.raises(Implausible, match=r"is none of 1, 2, .*10") as refused:
        probability_of("aws", "spot", value)
    assert len(str(refused.value)) < 120


def test_a_share_becomes_the_rate_that_loses_it() -> None:
    assert 1 - math.exp(-hazard_of_share(0.3, 24) * 24) == pytest.approx(0.3)


@pytest.mark.parametrize("share", [1.0, -0.1, 1.5, math.nan])
def test_a_share_without_a_rate_is_refused(share: float) -> None:
    with pytest.raises(Implausible):
        hazard_of_share(share, 24)


@pytest.mark.parametrize(
    "wrong",
    [
        {"probability": 2.0},
        {"probability": math.nan},
        {"nodes": 0},
        {"region": ""},
        {"interruptions_per_hour": -1.0},
        {"interruptions_per_hour": math.inf},
        {"uptime_hours": -1.0},
    ],
)
def test_an_impossible_answer_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Implausible):
        replace(ANSWER, **wrong)


def test_the_wait_is_known_only_where_a_start_is() -> None:
    assert ANSWER.wait_hours is None
    assert replace(ANSWER, starts_at=ASKED_AT + timedelta(hours=5)).wait_hours == 5
    assert replace(ANSWER, starts_at=ASKED_AT - timedelta(hours=5)).wait_hours == 0
