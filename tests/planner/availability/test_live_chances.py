"""Ladders with the clouds' own answers: against a loop over every offer and order, the law of tightening, and bad answers."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice, pairwise
from typing import Any

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers, NotLearned
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.live_chances import live_chances
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from tests.planner.availability.test_next_choices import SETTINGS, cheapest_pool, job_of, ladder_of, least_by_loops
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import START, allowed, every_configuration, random_columns
from tests.planner.verify.answers import answer_of, checked, names, small_columns, tampered


def answer(offer: Offer, nodes: int, probability: float, /, **changes: Any) -> CapacityAnswer:
    """A cloud's answer for an offer."""
    about = {name: getattr(offer, name) for name in ("provider", "region", "zone", "instance_type", "price_kind")}
    rest = {"probability": probability, "published": f"{probability:g}", "asked_at": START, "source": "drawn"}
    return CapacityAnswer(**(about | {"nodes": nodes} | rest | changes))


def random_answers(draw: random.Random, columns: Columns, *, nodes: int = 1) -> CapacityAnswers:
    """Answers for some offers, each with its own chance, impossible and certain ones among them."""
    asked = [offer for offer in columns.offers if draw.random() < 0.6]
    return CapacityAnswers(
        answers=tuple(
            answer(offer, draw.randint(1, nodes), draw.choice((0.0, draw.random(), 0.97, 1.0))) for offer in asked
        )
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_ladder_with_answers_is_the_best_over_every_offer_and_order(seed: int) -> None:
    draw = random.Random(900 + seed)
    columns, job = random_columns(draw, types=1, offers=7), job_of(draw)
    live = random_answers(draw, columns)
    answered = ladder_of(job, columns, capacity=live)
    if answered is None:
        return
    planned, ladder = answered
    pool = cheapest_pool(planned, ladder)
    least = None if ladder.chance >= 1.0 else least_by_loops(job, columns, pool, live, any_first=True)
    if least is None:
        assert not ladder.steps
        return
    assert ladder.value * 1e6 == pytest.approx(least, rel=2e-6, abs=2.0)
    assert ladder.bound <= ladder.value


@pytest.mark.parametrize("seed", range(30))
def test_what_cannot_be_had_is_named_first_only_where_nothing_else_can(seed: int) -> None:
    draw = random.Random(2000 + seed)
    columns, job = random_columns(draw, types=1, offers=6), job_of(draw)
    hours = min((one.hours_at_confidence for one in every_configuration(job, columns, SETTINGS)), default=1.0)
    job = replace(job, deadline_hours=draw.choice((None, hours + draw.uniform(0.0, 0.5))))
    drawn = [answer(offer, 1, draw.choice((0.0, 0.0, 0.3, 0.97))) for offer in columns.offers]
    answered = ladder_of(job, columns, capacity=CapacityAnswers(answers=tuple(drawn)))
    if answered is None:
        return
    planned, ladder = answered
    chance = {one.instance_type + one.region + one.zone + one.price_kind: one.probability for one in drawn}
    able = {
        chance[one.offer.instance_type + one.offer.region + one.offer.zone + one.offer.price_kind]
        for one in every_configuration(job, columns, SETTINGS)
        if allowed(one, job)
    }
    assert (ladder.chance == 0.0) == (able == {0.0})
    assert all(step.chance > 0.0 for step in ladder.steps)
    if ladder.cheapest is not None:
        assert least_cost(planned) == ladder.cheapest.choice.cost.expected < planned.cost.expected


@pytest.mark.parametrize("seed", range(12))
def test_verification_replays_the_chances_from_the_answers(seed: int) -> None:
    draw = random.Random(700 + seed)
    columns, job = small_columns(draw, types=2, offers=14), job_of(draw, nodes=2)
    live = random_answers(draw, columns, nodes=2)
    answered = answer_of(job, columns, capacity=live)
    if answered["outcome"] != "planned":
        return
    assert answered == answer_of(job, columns, capacity=live)
    assert names(checked(answered, job, columns)) == set()
    assert answered["plan"]["live_capacity"]["id"].startswith("capacity-")


def near_its_deadline(seed: int) -> tuple[TrainingJob, Columns, dict[str, Any]]:
    """An answer with clouds' answers for a job that leaves time for few tries."""
    draw = random.Random(seed)
    columns, job = small_columns(draw, types=1, offers=14), job_of(draw)
    live = random_answers(draw, columns)
    hours = min(one.hours_at_confidence for one in every_configuration(job, columns, SETTINGS))
    job = replace(job, deadline_hours=hours + draw.uniform(0, 1.0))
    return job, columns, answer_of(job, columns, capacity=live)


def begun_with_others() -> Iterator[tuple[TrainingJob, Columns, dict[str, Any]]]:
    """Cases whose plan begins with other machines than the cheapest."""
    for seed in range(136, 200):
        case = near_its_deadline(seed)
        if case[2]["plan"].get("capacity_ladder", {}).get("cheapest_if_obtained"):
            yield case


def test_verification_replays_a_ladder_that_begins_with_other_machines_than_the_cheapest() -> None:
    """Where the cheapest machines are unlikely and time is short, others come first; the certificate has both claims."""
    cases = list(islice(begun_with_others(), 3))
    assert len(cases) == 3
    for job, columns, answered in cases:
        shown = answered["plan"]
        ladder, cheapest = shown["capacity_ladder"], shown["capacity_ladder"]["cheapest_if_obtained"]
        assert float(cheapest["cost_usd"]) < float(shown["cost_usd"]["expected"])
        assert shown["certificate"]["objective_usd"] == cheapest["cost_usd"]
        assert shown["certificate"]["ladder"]["objective_usd"] == ladder["expected_cost_usd"]
        assert names(checked(answered, job, columns)) == set()
        for path, forged in (
            (("capacity_ladder", "cheapest_if_obtained", "cost_usd"), shown["cost_usd"]["expected"]),
            (("capacity_ladder", "cheapest_if_obtained", "chance"), 0.99),
            (("certificate", "ladder", "bound_usd"), "999999.000000"),
            (("certificate", "objective_usd"), shown["cost_usd"]["expected"]),
            (("certificate", "ladder", "objective_usd"), "0.100000"),
        ):
            assert ".".join(path) in names(checked(tampered(answered, path, forged), job, columns))


def test_a_plan_that_begins_with_the_wrong_choice_is_found() -> None:
    """The cheapest comes first in this ladder; with a dearer one first and all figures of that right, the order is wrong."""
    job, columns, planned = plain()
    right = answer_of(job, columns)
    assert "cheapest_if_obtained" not in right["plan"]["capacity_ladder"]
    nothing = answer(planned.phases[0].choice.offer, planned.phases[0].choice.nodes, 0.0)
    other = answer_of(job, columns, capacity=CapacityAnswers(answers=(nothing,)))
    assert other["plan"]["capacity_ladder"]["cheapest_if_obtained"]["chance"] == 0.0
    assert names(checked(other, job, columns)) == set()
    del other["plan"]["live_capacity"]
    assert "certificate.ladder.objective_usd" in names(checked(other, job, columns))


@pytest.mark.parametrize("seed", range(30))
def test_a_tighter_deadline_never_lowers_what_a_ladder_is_expected_to_cost(seed: int) -> None:
    """The law of tightening: first the certainty of the last choice counts, up to 0.9, then the expected cost."""
    draw = random.Random(5000 + seed)
    columns, job = random_columns(draw, types=2, offers=14), job_of(draw)
    hours = min((one.hours_at_confidence for one in every_configuration(job, columns, SETTINGS)), default=1.0)
    live = random_answers(draw, columns) if seed % 2 else None
    outcomes: list[tuple[float, float]] = []
    for deadline in (hours + draw.uniform(0.0, 0.7), hours + draw.uniform(0.7, 2.0), None):
        answered = ladder_of(replace(job, deadline_hours=deadline), columns, capacity=live)
        if answered is not None and answered[1].steps:
            ladder = answered[1]
            outcomes.append((-min(ladder.steps[-1].chance, 0.9), ladder.value))
    for tight, loose in pairwise(outcomes):
        assert loose[0] < tight[0] - 1e-9 or (tight[1] >= loose[1] * (1 - 1e-6) and loose[0] <= tight[0] + 1e-9)


def plain(seed: int = 21) -> tuple[TrainingJob, Columns, Planned]:
    """A job, its catalogue, and its plan without answers."""
    draw = random.Random(seed)
    columns = small_columns(draw, types=1, offers=14)
    job = job_of(draw)
    planned = ladder_of(job, columns)
    assert planned is not None
    return job, columns, planned[0]


def test_the_chance_of_the_plan_is_the_one_that_its_cloud_gave() -> None:
    job, columns, planned = plain()
    choice = planned.phases[0].choice
    live = CapacityAnswers(answers=(answer(choice.offer, choice.nodes, 0.6),))
    shown = answer_of(job, columns, capacity=live)["plan"]
    without = answer_of(job, columns)["plan"]
    assert shown["capacity_ladder"]["chance"] == 0.6
    assert shown["capacity_ladder"]["chance_source"]["asked_at"] == "2026-11-21T00:00:00Z"
    assert shown["id"] != without["id"]
    assert "live_capacity" not in without
    assert "chance_source" not in without["capacity_ladder"]
    assert shown["phases"] == without["phases"]


@pytest.mark.parametrize("changes", [{"nodes": 7}, {"price_kind": "capacity_block"}])
def test_an_answer_about_other_machines_does_not_count(changes: dict[str, Any]) -> None:
    job, columns, planned = plain()
    choice = planned.phases[0].choice
    live = CapacityAnswers(answers=(answer(choice.offer, choice.nodes, 0.01, **changes),))
    shown = answer_of(job, columns, capacity=live)["plan"]
    assert shown["capacity_ladder"] == answer_of(job, columns)["plan"]["capacity_ladder"]


def test_an_answer_for_a_zone_counts_there_and_for_offers_of_the_whole_region() -> None:
    _, columns, planned = plain()
    offer = planned.phases[0].choice.offer
    zones = [replace(offer, zone=zone) for zone in ("z1", "z2")]
    given = CapacityAnswers(answers=(answer(zones[0], 2, 0.2), answer(zones[1], 2, 0.7)))
    live = live_chances(given, columns, START)
    chosen = {zone: live.of(replace(offer, zone=zone), 2) for zone in ("", "z1", "z2", "z3")}
    assert {zone: row and row.chance for zone, row in chosen.items()} == {"": 0.7, "z1": 0.2, "z2": 0.7, "z3": None}
    whole = live_chances(CapacityAnswers(answers=(answer(replace(offer, zone=""), 2, 0.4),)), columns, START)
    row = whole.of(zones[0], 2)
    assert row is not None
    assert row.chance == 0.4
    assert whole.of(zones[0], 3) is None


@pytest.mark.parametrize("changes", [{"quota_available": False}, {"starts_at": START + timedelta(hours=30)}])
def test_machines_without_quota_or_of_a_later_day_have_no_chance(changes: dict[str, Any]) -> None:
    job, columns, planned = plain()
    choice = planned.phases[0].choice
    live = CapacityAnswers(answers=(answer(choice.offer, choice.nodes, 0.95, **changes),))
    shown = answer_of(job, columns, capacity=live)
    assert shown["plan"]["capacity_ladder"]["cheapest_if_obtained"]["chance"] == 0.0
    assert shown["plan"]["capacity_ladder"]["chance"] > 0.0
    assert not checked(shown, job, columns).wrong


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"instance_type": "p9.huge"}, "capacity_answers[0].instance_type"),
        ({"region": "mars-1"}, "capacity_answers[0].instance_type"),
        ({"price_kind": "lottery"}, "capacity_answers[0].instance_type"),
        ({"asked_at": START - timedelta(hours=7)}, "capacity_answers[0].asked_at"),
        ({"twice": True}, "capacity_answers[1].zone"),
    ],
)
def test_answers_that_cannot_count_are_refused_by_field(changes: dict[str, Any], field: str) -> None:
    job, columns, planned = plain()
    choice = planned.phases[0].choice
    twice = bool(changes.pop("twice", False))
    row = answer(choice.offer, choice.nodes, 0.5, **changes)
    with pytest.raises(UnusableInput) as refused:
        plan(job, columns, settings=SETTINGS, capacity=CapacityAnswers(answers=(row,) * (1 + twice)))
    assert [fault.field for fault in refused.value.faults] == [field]


@pytest.mark.parametrize("seed", range(8))
def test_a_looser_job_never_costs_more_with_the_same_answers(seed: int) -> None:
    draw = random.Random(300 + seed)
    columns = random_columns(draw, types=2, offers=20)
    job = replace(job_of(draw, nodes=2), deadline_hours=10 ** draw.uniform(0.5, 2.0))
    live = random_answers(draw, columns, nodes=2)
    tight, loose = (
        ladder_of(replace(job, deadline_hours=hours), columns, capacity=live) for hours in (job.deadline_hours, None)
    )
    assert loose is not None or tight is None
    if tight is not None and loose is not None:
        assert least_cost(loose[0]) <= least_cost(tight[0])


def test_what_was_not_learned_is_in_the_plan_and_in_its_identity() -> None:
    job, columns, _ = plain()
    silent = CapacityAnswers(not_learned=(NotLearned(provider="aws", reason="no answer within 3 s"),))
    shown = answer_of(job, columns, capacity=silent)
    nothing = answer_of(job, columns, capacity=CapacityAnswers())
    assert shown["plan"]["live_capacity"]["not_learned"][0]["reason"] == "no answer within 3 s"
    assert shown["plan"]["live_capacity"]["id"] != nothing["plan"]["live_capacity"]["id"]
    assert shown["plan"]["capacity_ladder"] == nothing["plan"]["capacity_ladder"]
    assert not checked(shown, job, columns).wrong


@pytest.mark.parametrize(
    ("path", "value", "figure"),
    [
        (("live_capacity", "answers", 0, "probability"), 0.9, "live_capacity.id"),
        (("capacity_ladder", "chance"), 0.9, "capacity_ladder.chance"),
        (("capacity_ladder", "chance_source", "published"), "10", "capacity_ladder.chance_source"),
    ],
)
def test_a_forged_answer_is_found(path: tuple[str | int, ...], value: object, figure: str) -> None:
    job, columns, planned = plain()
    choice = planned.phases[0].choice
    live = CapacityAnswers(answers=(answer(choice.offer, choice.nodes, 0.6),))
    shown = answer_of(job, columns, capacity=live)
    assert figure in names(checked(tampered(shown, path, value), job, columns))
