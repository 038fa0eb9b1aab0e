"""What if: the changed job asks for what the answer offered, and for nothing else."""

from typing import Any

import pytest

from gpuplan.api.web.what_if import any_speed, as_alternative, at_point, by_deadline, by_way_out, from_now, rounded_up
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer
from tests.partial_answers import answer_of

JOB = {
    "name": "a",
    "start": "2026-11-22T12:00:00Z",
    "deadline": 100.0,
    "budget_usd": "50.00",
    "constraints": {"providers": ["aws"], "max_nodes": 4, "max_accelerators": 8, "price_kinds": ["on_demand"]},
}
OTHER = {
    "provider": "gcp",
    "region": "us-central1",
    "zone": "us-central1-a",
    "instance_type": "a3-highgpu-8g",
    "nodes": 6,
    "price_kind": "spot",
    "cost_usd": "80.00",
    "hours_confident": 123.4567,
    "slice_hosts": None,
}


def planned() -> PlannedAnswer:
    return answer_of(PlannedAnswer, {"plan": {"job": JOB, "alternatives": [OTHER], "frontier": [OTHER]}})


def infeasible(requirement: str, needed: str) -> InfeasibleAnswer:
    asked = "; ".join("x" for _ in requirement.split(" + "))
    way = {"requirement": requirement, "from": asked, "to": needed}
    return answer_of(InfeasibleAnswer, {"infeasible": {"job": JOB, "relaxations": [way]}})


def test_no_change_touches_the_answer_itself() -> None:
    answer = planned()
    for change in (any_speed, from_now, lambda answer: at_point(answer, 0), lambda answer: as_alternative(answer, 0)):
        change(answer)
    by_deadline(answer, 5.0)
    assert answer == planned()


def test_an_alternative_is_asked_for_with_the_time_and_the_money_that_it_takes() -> None:
    job = as_alternative(planned(), 0)
    assert job["deadline"] == 123.5
    assert "budget_usd" not in job
    assert job["constraints"] == {
        "providers": ["gcp"],
        "regions": ["gcp:us-central1"],
        "instance_types": ["a3-highgpu-8g"],
        "price_kinds": ["spot"],
        "accelerators": [],
        "vendors": [],
        "geography": [],
        "max_nodes": 6,
        "max_phases": 1,
    }


def test_a_point_keeps_what_was_asked_besides_its_time() -> None:
    job = at_point(planned(), 0)
    assert job["deadline"] == 123.5
    assert job["objective"] == "cost"
    assert job["constraints"] == JOB["constraints"]


@pytest.mark.parametrize(
    ("requirement", "needed", "path", "value"),
    [
        ("deadline", "13.52 h", ("deadline",), "13.52 h"),
        ("deadline", "none", ("deadline",), None),
        ("budget_usd", "$1,234.56", ("budget_usd",), "$1,234.56"),
        ("constraints.max_nodes", "128", ("constraints", "max_nodes"), "128"),
        ("constraints.price_kinds", "spot", ("constraints", "price_kinds"), ["on_demand", "spot"]),
        ("constraints.geography", "that of local:here", ("constraints", "geography"), None),
        ("training.precision", "auto", ("training", "precision"), "auto"),
    ],
)
def test_a_way_out_gives_way_in_what_it_names(
    requirement: str, needed: str, path: tuple[str, ...], value: object
) -> None:
    given_way: Any = by_way_out(infeasible(requirement, needed), 0)
    for part in path:
        given_way = given_way.get(part) if given_way else None
    assert given_way == value


def test_a_way_out_may_give_way_in_several_things_at_once() -> None:
    job = by_way_out(infeasible("constraints.max_nodes + budget_usd", "128; $9,000.00"), 0)
    assert (job["constraints"]["max_nodes"], job["budget_usd"]) == ("128", "$9,000.00")


def test_what_this_release_does_not_know_is_refused() -> None:
    with pytest.raises(UnusableInput, match="does not know"):
        by_way_out(infeasible("constraints.colour", "red"), 0)


@pytest.mark.parametrize("hours", [0.0123456, 1.0, 719.99, 13.51555, 40_000.3])
def test_a_deadline_rounded_up_is_kept(hours: float) -> None:
    assert hours <= rounded_up(hours) <= hours * 1.001
