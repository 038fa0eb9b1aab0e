"""Explanations of plans in several phases: totals compared, days planned anew, nothing found that is cheaper than the plan."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.wire import wire
from gpuplan.planner.why.explanation import About, why
from gpuplan.planner.why.explanation_document import why_answer
from gpuplan.planner.why.explanation_text import summary
from tests.planner.explain.by_hand import SETTINGS, drawn, planned, weighed
from tests.planner.least_cost import least_cost

#: Draws whose cheapest run, late by a tenth, is best begun and then left for something faster, or for what stands by.
SEEDS = (2, 12, 18, 19, 53, 59)


def hurried(seed: int) -> tuple[TrainingJob, Columns]:
    """A job that would be cheapest on something a tenth too slow."""
    job, columns = drawn(seed, offers=30)
    cheapest = min(weighed(job, columns), key=lambda configuration: configuration.priced.usd).priced
    constraints = replace(job.constraints, max_phases=2)
    return (
        replace(job, budget_usd=None, deadline_hours=cheapest.hours_at_confidence * 0.9, constraints=constraints),
        columns,
    )


@pytest.mark.slow(reason="one long case")
def test_the_drawn_plans_have_several_phases() -> None:
    plans = [planned(*hurried(seed)) for seed in SEEDS]
    assert sum(isinstance(plan, Planned) and len(plan.phases) > 1 for plan in plans) >= 4


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_plan_on_part_of_the_machines_never_costs_less(seed: int) -> None:
    job, columns = hurried(seed)
    chosen = planned(job, columns)
    assert isinstance(chosen, Planned)
    for name in {phase.choice.instance_type.name for phase in chosen.phases} | {"spot"}:
        explanation = why(job, columns, settings=SETTINGS, with_=name)
        about = explanation.about
        assert about is not None
        assert isinstance(explanation.chosen, Planned)
        assert explanation.chosen.cost == chosen.cost
        for other in (about.best, about.without):
            if other is not None and not isinstance(other, NoPlan):
                assert other.cost.expected >= chosen.cost.expected
        uses = [name in {phase.choice.instance_type.name, phase.choice.offer.price_kind} for phase in chosen.phases]
        if any(uses):
            assert about.verdict == "chosen" if all(uses) else about.verdict in {"partly_chosen", "infeasible"}
        assert summary(explanation)


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_without_a_kind_is_the_plan_on_a_catalogue_without_it(seed: int) -> None:
    job, columns = hurried(seed)
    for kind in ("spot",):
        explanation = why(job, columns, settings=SETTINGS, with_=kind)
        assert explanation.about is not None
        rows = [offer for offer in columns.offers if offer.price_kind != kind]
        alone = planned(job, columns_of("less", columns.observed_at, columns.instance_types, rows))
        without = explanation.about.without
        if isinstance(alone, NoPlan):
            assert isinstance(without, NoPlan)
        else:
            assert without is not None
            assert not isinstance(without, NoPlan)
            assert without.cost == alone.cost


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_more_is_what_planning_with_it_gives(seed: int) -> None:
    job, columns = hurried(seed)
    explanation = why(job, columns, settings=SETTINGS)
    assert isinstance(explanation.chosen, Planned)
    assert explanation.steps is not None
    assert job.deadline_hours is not None
    for change in explanation.steps.changes:
        if change.requirement == "deadline":
            again = planned(replace(job, deadline_hours=job.deadline_hours + change.by), columns)
            if isinstance(again, Planned):
                assert change.extra == least_cost(again) - explanation.chosen.cost.expected
            else:
                assert change.extra is None


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_totals_are_compared_part_by_part(seed: int) -> None:
    job, columns = hurried(seed)
    shown = wire(why_answer(why(job, columns, settings=SETTINGS, not_="on_demand"), {}, version="test"))
    plan, best = shown["plan"], shown["about"]["best"]
    assert sum(float(part) for part in plan["breakdown"].values()) == pytest.approx(float(plan["cost_usd"]), abs=1e-6)
    if best is not None and best["plan"] is not None:
        for part, amount in best["extra"]["breakdown"].items():
            mine, other = float(plan["breakdown"][part]), float(best["plan"]["breakdown"][part])
            assert float(amount) == pytest.approx(other - mine, abs=1e-6)


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_with_the_discount_told_it_costs_no_more_than_the_plan(seed: int) -> None:
    job, columns = hurried(seed)
    for name in ("spot", "aws"):
        if not any(name in {offer.price_kind, offer.provider} for offer in columns.offers):
            continue
        explanation = why(job, columns, settings=SETTINGS, not_=name)
        about = explanation.about
        assert about is not None
        if about.break_even is None or not isinstance(explanation.chosen, Planned) or about.verdict == "chosen":
            continue
        off = about.break_even.discount_percent * (1 + 1e-6) + 1e-4
        if off >= 100:
            continue
        rows = [
            replace(offer, usd_micros_per_hour=round(offer.usd_micros_per_hour * (1 - off / 100)))
            if name in {offer.price_kind, offer.provider}
            else offer
            for offer in columns.offers
        ]
        cheaper = columns_of("cheaper", columns.observed_at, columns.instance_types, rows)
        again = why(job, cheaper, settings=SETTINGS, not_=name).about
        assert again is not None
        assert isinstance(again.best, Planned)
        assert again.best.cost.expected <= explanation.chosen.cost.expected + 5


def uses_at(job: TrainingJob, columns: Columns, offer: Offer, micros: int) -> bool:
    """Whether the cheapest plan, given that its machines are obtained, has an offer in some phase once it costs so much."""
    rows = [replace(row, usd_micros_per_hour=micros) if row.key == offer.key else row for row in columns.offers]
    again = planned(job, columns_of("repriced", columns.observed_at, columns.instance_types, rows))
    if not isinstance(again, Planned):
        return False
    changing = None if again.ladder is None else again.ladder.changing_machines
    return any(phase.choice.offer.key == offer.key for phase in (again if changing is None else changing).phases)


#: Draws, a deadline as a share of the hours of the cheapest run, and what a plan would have in part were it cheaper: what
#: may win alone at a lower price, and what never can.
IN_PART = (
    (0, 0.97, "spot"),
    (11, 1.02, "spot"),
    (11, 0.97, "azure-type-1"),
    (32, 0.97, "gcp-type-0"),
    (32, 1.02, "gcp-type-1"),
)


def about_a_part(seed: int, share: float, name: str) -> tuple[TrainingJob, Columns, About]:
    job, columns = drawn(seed, offers=30)
    hours = min(weighed(job, columns), key=lambda configuration: configuration.priced.usd).priced.hours_at_confidence
    constraints = replace(job.constraints, max_phases=2)
    job = replace(job, budget_usd=None, deadline_hours=hours * share, constraints=constraints)
    about = why(job, columns, settings=SETTINGS, not_=name).about
    assert about is not None
    return job, columns, about


@pytest.mark.slow(reason="5 cases")
@pytest.mark.parametrize(("seed", "share", "name"), IN_PART)
def test_up_to_the_price_told_a_plan_has_it_in_part_and_above_that_it_has_not(
    seed: int, share: float, name: str
) -> None:
    job, columns, about = about_a_part(seed, share, name)
    part = about.joining
    assert part is not None
    assert about.break_even is None or part.joins_at > about.break_even.wins_at
    assert uses_at(job, columns, part.choice.offer, part.joins_at - 1)
    assert not uses_at(job, columns, part.choice.offer, part.joins_at + 2 + part.joins_at // 1000)


@pytest.mark.slow(reason="one long case")
def test_what_is_told_of_a_part_is_said_in_words() -> None:
    for seed, share, name in IN_PART[1:4:2]:
        job, columns, about = about_a_part(seed, share, name)
        sentences = summary(why(job, columns, settings=SETTINGS, not_=name))
        assert any("as part of a plan it would be used at" in sentence for sentence in sentences)
        alone = any("no price per hour would make it win alone" in sentence for sentence in sentences)
        assert alone == (about.break_even is None)


@pytest.mark.slow(reason="one long case")
def test_what_wins_sooner_on_two_node_counts_wins_at_the_price_told_and_not_above_it() -> None:
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    document = {
        "workload": {"kind": "preset", "model": "resnet-50", "samples": 70e6},
        "deadline": "8h",
        "constraints": {"price_kinds": ["on_demand"]},
    }
    job = parse_job(document, now=datetime(2026, 11, 22, tzinfo=UTC))
    about = why(job, columns, settings=SETTINGS, not_="T4").about
    assert about is not None
    ties = about.break_even
    assert ties is not None
    assert about.joining is None
    assert uses_at(job, columns, ties.choice.offer, ties.wins_at - 1)
    assert not uses_at(job, columns, ties.choice.offer, round(ties.wins_at * 1.001) + 2)
