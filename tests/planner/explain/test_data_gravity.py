"""A plan says where bringing the data decides its place, by how much, and where bringing it makes up much of the cost."""

from dataclasses import replace

import pytest

from gpuplan.planner.model.job import DataSource
from gpuplan.planner.model.outcome import Planned
from tests.planner.test_sellers import JOB, MARKET, planned

IN_AWS = DataSource(location="aws:us-east-1")


def with_data(gb: float, **changes: object) -> Planned:
    return planned(MARKET, replace(JOB, data=replace(IN_AWS, dataset_gb=gb), **changes))  # type: ignore[arg-type]


def place(outcome: Planned) -> tuple[str, str]:
    return outcome.phases[0].choice.offer.provider, outcome.phases[0].choice.offer.region


def about_data(outcome: Planned) -> list[str]:
    return [sentence for sentence in outcome.warnings if "bringing" in sentence]


def test_a_place_that_only_the_data_rules_out_is_named_with_both_amounts() -> None:
    outcome = with_data(50_000)
    assert place(outcome) == ("aws", "us-east-1")
    [sentence] = about_data(outcome)
    assert "the place of the data decides: 4 x box, lambda (place not stated), costs $" in sentence
    assert "less once the data is there, but bringing 50,000 GB from aws:us-east-1 costs $" in sentence
    saved = float(sentence.split("costs $")[1].split(" ")[0].replace(",", ""))
    # A third of the price, less the copy of the data on its disks.
    assert 0 < saved < outcome.cost.compute / 1e6 / 3


def test_data_that_is_brought_at_a_price_says_so() -> None:
    outcome = with_data(800)
    assert place(outcome) == ("lambda", "unknown")
    [sentence] = about_data(outcome)
    assert sentence.startswith("bringing 800 GB from aws:us-east-1 costs $")
    assert f"{outcome.cost.egress / outcome.cost.expected:.0%} of the plan" in sentence


@pytest.mark.parametrize(("gb", "objective"), [(0.01, "cost"), (50_000, "time")])
def test_little_data_and_other_objectives_say_nothing(gb: float, objective: str) -> None:
    assert about_data(with_data(gb, objective=objective)) == []


def test_data_on_own_disks_is_brought_for_nothing_and_says_nothing() -> None:
    outcome = planned(MARKET, replace(JOB, data=replace(IN_AWS, location="local", dataset_gb=50_000)))
    assert about_data(outcome) == []
