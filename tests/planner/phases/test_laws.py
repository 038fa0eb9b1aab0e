"""Laws of plans in phases: more freedom never costs more, dearer offers never cost less, and order never matters."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.columns import columns_of
from planner.phases.course import Course
from tests.planner.phases.cases import best_course, booked_case, found_for, rented_case
from tests.planner.phases.test_exactness import MOVES
from tests.planner.small_catalogues import OBSERVED, random_offers

RENTED = st.sampled_from(MOVES[rented_case]) | st.integers(0, 10**6)
few = settings(max_examples=10, deadline=None)


def cost(course: Course | None) -> float:
    return float("inf") if course is None else course.cost.expected


@few
@given(RENTED, st.floats(1.0, 1.3))
def test_a_later_deadline_never_costs_more(seed: int, factor: float) -> None:
    job, columns, owned = rented_case(seed)
    later = replace(job, deadline_hours=(job.deadline_hours or 1.0) * factor)
    assert cost(best_course(found_for(later, columns, owned))) <= cost(best_course(found_for(job, columns, owned)))


@pytest.mark.parametrize("seed", MOVES[rented_case][:8])
def test_a_dozen_slightly_later_deadlines_never_cost_more_than_the_ones_before(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    draw, before = random.Random(seed), float("inf")
    deadlines = sorted((job.deadline_hours or 1.0) * draw.uniform(1.0, 1.002) for _ in range(12))
    for deadline in deadlines:
        now = cost(best_course(found_for(replace(job, deadline_hours=deadline), columns, owned)))
        assert now <= before
        before = now


@few
@given(st.sampled_from(MOVES[booked_case]), st.integers(1, 3))
def test_more_phases_never_cost_more(seed: int, phases: int) -> None:
    job, columns, owned = booked_case(seed)
    fewer = replace(job, constraints=replace(job.constraints, max_phases=phases))
    assert cost(best_course(found_for(job, columns, owned))) <= cost(best_course(found_for(fewer, columns, owned)))


@few
@given(RENTED)
def test_one_more_offer_never_costs_more(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    more = random_offers(random.Random(seed), list(columns.instance_types), 1)
    kept = [each for each in columns.offers if each.key != more[0].key]
    fewer = columns_of("fewer", OBSERVED, columns.instance_types, kept)
    whole = columns_of("whole", OBSERVED, columns.instance_types, kept + more)
    assert cost(best_course(found_for(job, whole, owned))) <= cost(best_course(found_for(job, fewer, owned)))


@few
@given(RENTED, st.floats(1.0, 3.0))
def test_a_dearer_offer_never_makes_the_plan_cheaper(seed: int, factor: float) -> None:
    job, columns, owned = rented_case(seed)
    raised = list(columns.offers)
    at = random.Random(seed).randrange(len(raised))
    raised[at] = replace(raised[at], usd_micros_per_hour=round(raised[at].usd_micros_per_hour * factor))
    dearer = columns_of("dearer", OBSERVED, columns.instance_types, raised)
    assert cost(best_course(found_for(job, dearer, owned))) >= cost(best_course(found_for(job, columns, owned)))


@few
@given(RENTED)
def test_the_order_of_offers_changes_nothing(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    types, offers = list(columns.instance_types), list(columns.offers)
    draw = random.Random(seed)
    draw.shuffle(types)
    draw.shuffle(offers)
    shuffled = best_course(found_for(job, columns_of("drawn", OBSERVED, types, offers), owned))
    course = best_course(found_for(job, columns, owned))
    assert cost(shuffled) == cost(course)
    if course is not None and shuffled is not None:
        assert [each.choice.offer.key for each in shuffled.phases] == [each.choice.offer.key for each in course.phases]
        assert [each.share for each in shuffled.phases] == [each.share for each in course.phases]
