"""Laws of plans in phases: more freedom never costs more, dearer offers never cost less, and order never matters."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.strategies.schedule import Schedule
from tests.planner.small_catalogues import OBSERVED, random_offers
from tests.planner.strategies.phased.cases import best_schedule, booked_case, found_for, rented_case
from tests.planner.strategies.phased.test_exactness import MOVES

RENTED = st.sampled_from(MOVES[rented_case]) | st.integers(0, 10**6)
few = settings(max_examples=10, deadline=None)


def cost(schedule: Schedule | None) -> float:
    return float("inf") if schedule is None else schedule.cost.expected


@few
@given(RENTED, st.floats(1.0, 1.3))
def test_a_later_deadline_never_costs_more(seed: int, factor: float) -> None:
    job, columns, owned = rented_case(seed)
    later = replace(job, deadline_hours=(job.deadline_hours or 1.0) * factor)
    assert cost(best_schedule(found_for(later, columns, owned))) <= cost(best_schedule(found_for(job, columns, owned)))


@pytest.mark.slow(reason="8 cases")
@pytest.mark.parametrize("seed", MOVES[rented_case][:8])
def test_a_dozen_slightly_later_deadlines_never_cost_more_than_the_ones_before(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    draw, before = random.Random(seed), float("inf")
    deadlines = sorted((job.deadline_hours or 1.0) * draw.uniform(1.0, 1.002) for _ in range(12))
    for deadline in deadlines:
        now = cost(best_schedule(found_for(replace(job, deadline_hours=deadline), columns, owned)))
        assert now <= before
        before = now


@few
@given(st.sampled_from(MOVES[booked_case]))
def test_a_second_phase_never_costs_more(seed: int) -> None:
    job, columns, owned = booked_case(seed)
    fewer = replace(job, constraints=replace(job.constraints, max_phases=1))
    assert cost(best_schedule(found_for(job, columns, owned))) <= cost(best_schedule(found_for(fewer, columns, owned)))


@few
@given(RENTED)
def test_one_more_offer_never_costs_more(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    added = random_offers(random.Random(seed), list(columns.instance_types), 1)
    others = [offer for offer in columns.offers if offer.key != added[0].key]
    fewer = columns_of("fewer", OBSERVED, columns.instance_types, others)
    whole = columns_of("whole", OBSERVED, columns.instance_types, others + added)
    assert cost(best_schedule(found_for(job, whole, owned))) <= cost(best_schedule(found_for(job, fewer, owned)))


@few
@given(RENTED, st.floats(1.0, 3.0))
def test_a_dearer_offer_never_makes_the_plan_cheaper(seed: int, factor: float) -> None:
    job, columns, owned = rented_case(seed)
    raised = list(columns.offers)
    at = random.Random(seed).randrange(len(raised))
    raised[at] = replace(raised[at], usd_micros_per_hour=round(raised[at].usd_micros_per_hour * factor))
    dearer = columns_of("dearer", OBSERVED, columns.instance_types, raised)
    assert cost(best_schedule(found_for(job, dearer, owned))) >= cost(best_schedule(found_for(job, columns, owned)))


@few
@given(RENTED)
def test_the_order_of_offers_changes_nothing(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    types, offers = list(columns.instance_types), list(columns.offers)
    draw = random.Random(seed)
    draw.shuffle(types)
    draw.shuffle(offers)
    shuffled = best_schedule(found_for(job, columns_of("drawn", OBSERVED, types, offers), owned))
    schedule = best_schedule(found_for(job, columns, owned))
    assert cost(shuffled) == cost(schedule)
    if schedule is not None and shuffled is not None:
        assert [phase.choice.offer.key for phase in shuffled.phases] == [
            phase.choice.offer.key for phase in schedule.phases
        ]
        assert [phase.share for phase in shuffled.phases] == [phase.share for phase in schedule.phases]
