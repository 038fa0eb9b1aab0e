"""Plans in two phases or with a standby on the capacity ladder: against every offer and order, by loops."""

import random
from dataclasses import replace

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.availability import next_choices
from gpuplan.planner.model.job import Constraints, Preset, TrainingJob
from gpuplan.planner.model.outcome import ChangingPlan, Planned, PlannedLadder
from tests.planner.availability.test_live_chances import answer
from tests.planner.availability.test_next_choices import SETTINGS, ladder_of, least_by_loops, pool_of
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import START, Priced, every_configuration
from tests.planner.verify.answers import answer_of, checked, small_columns, snapshot_columns, tampered

#: Draws whose cheapest plan changes machines: it begins the ladder, has no next choice, or gives way to another.
MOVES_FIRST = (20, 32, 46, 99)
NO_TIME_FOR_TWO = (34, 35)
OTHERS_FIRST = (869, 1691, 1804, 1890)


def on_cheap_spot(offer: Offer) -> Offer:
    """Spot at a third of its price, that is often taken away; other offers as they are."""
    if offer.price_kind != "spot":
        return offer
    return replace(offer, usd_micros_per_hour=offer.usd_micros_per_hour // 3, interruptions_per_hour=0.2)


def drawn(seed: int) -> tuple[Columns, TrainingJob | None]:
    """A small catalogue and a job with time for few tries, for which a move often saves something; no job where none runs."""
    draw = random.Random(seed)
    columns = small_columns(draw, types=1, offers=9)
    columns = snapshot_columns(list(columns.instance_types), [on_cheap_spot(offer) for offer in columns.offers])
    job = TrainingJob(
        name="moves",
        workload=Preset(model="gpt2", tokens=10 ** draw.uniform(8, 9.3)),
        start=START,
        constraints=Constraints(max_nodes=draw.choice((1, 4)), max_phases=2),
    )
    hours = [one.hours_at_confidence for one in every_configuration(job, columns, SETTINGS)]
    return columns, replace(job, deadline_hours=min(hours) + draw.uniform(0.05, 0.6)) if hours else None


def ladder_at(
    seed: int, capacity: CapacityAnswers | None = None
) -> tuple[Columns, TrainingJob, Planned, PlannedLadder]:
    """The drawn job with its plan and ladder."""
    columns, job = drawn(seed)
    assert job is not None
    planned_one = ladder_of(job, columns, capacity=capacity)
    assert planned_one is not None
    return columns, job, *planned_one


def cheapest_of(planned: Planned, ladder: PlannedLadder) -> Planned | ChangingPlan:
    """The plan that changes machines, which is the cheapest if obtained."""
    cheapest = planned if ladder.changing_machines is None else ladder.changing_machines
    assert len(cheapest.phases) == 2
    return cheapest


def as_it_counts(cheapest: Planned | ChangingPlan) -> Priced:
    """The plan that changes machines as a choice on its first ones, at its cost and what a move has to save."""
    choice = cheapest.phases[0].choice
    usd = cheapest.cost.expected / 1e6 / (1 - SETTINGS.least_saving_of_a_move_percent / 100)
    hours = cheapest.hours.confident
    return Priced(offer=choice.offer, nodes=choice.nodes, usd=usd, hours_at_confidence=hours, run_hours=hours)


@pytest.mark.parametrize("seed", [*MOVES_FIRST, *OTHERS_FIRST])
def test_a_change_of_machines_comes_first_only_where_its_ladder_costs_least(seed: int) -> None:
    """Beside a loop over every offer and order that shares no code with the planner."""
    columns, job, planned, ladder = ladder_at(seed)
    moving = as_it_counts(cheapest_of(planned, ladder))
    at = pool_of(moving.offer)
    begun = least_by_loops(job, columns, at, moving=moving)
    least = least_by_loops(job, columns, at, moving=moving, any_first=True)
    assert begun is not None
    assert least is not None
    assert (ladder.changing_machines is None) == (seed in MOVES_FIRST) == (begun <= least * (1 + 1e-6))
    comparable = ladder.value * 1e6
    if ladder.changing_machines is None:
        comparable += ladder.chance * (moving.usd * 1e6 - planned.cost.expected)
    assert comparable == pytest.approx(min(begun, least), rel=2e-6, abs=2.0)
    assert ladder.bound <= ladder.value
    assert planned.proof.certificate.objective_usd * 1e6 == pytest.approx(least_cost(planned), abs=1.0)


@pytest.mark.parametrize("seed", OTHERS_FIRST[1:3])
def test_verify_checks_a_cheaper_change_of_machines_in_full(seed: int) -> None:
    columns, job = drawn(seed)
    assert job is not None
    right = answer_of(job, columns, settings=SETTINGS)
    assert not checked(right, job, columns, settings=SETTINGS).wrong
    at = ("capacity_ladder", "changing_machines")
    for path, value in (
        ((*at, "cost_usd", "expected"), "0.100000"),
        ((*at, "chance"), 0.95),
        ((*at, "phases", 0, "usd_per_node_hour"), "0.010000"),
        ((*at, "phases", 1, "hours"), 900.0),
        (("certificate", "ladder", "bound_usd"), "99999.00"),
    ):
        figures = {one.figure for one in checked(tampered(right, path, value), job, columns, settings=SETTINGS).wrong}
        assert any(figure.startswith(".".join(str(part) for part in path[:2])) for figure in figures), path


def test_verify_finds_a_change_of_machines_first_that_costs_more_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, job = drawn(OTHERS_FIRST[3])
    assert job is not None
    monkeypatch.setattr(next_choices, "_cost_of_moving", lambda *_: -1e9)
    wrong = checked(answer_of(job, columns, settings=SETTINGS), job, columns, settings=SETTINGS).wrong
    assert "certificate.ladder.objective_usd" in {one.figure for one in wrong}


@pytest.mark.parametrize("seed", [MOVES_FIRST[0], *NO_TIME_FOR_TWO])
def test_a_change_of_machines_that_cannot_be_had_is_never_first(seed: int) -> None:
    columns, job, planned, _ = ladder_at(seed)
    assert len(planned.phases) == 2
    choice = planned.phases[0].choice
    live = CapacityAnswers(answers=(answer(choice.offer, choice.nodes, 0.0),))
    shown = answer_of(job, columns, settings=SETTINGS, capacity=live)
    assert len(shown["plan"]["phases"]) == 1
    assert shown["plan"]["capacity_ladder"]["changing_machines"]["chance"] == 0.0
    assert shown["plan"]["capacity_ladder"]["chance"] > 0.0
    assert not checked(shown, job, columns, settings=SETTINGS).wrong
