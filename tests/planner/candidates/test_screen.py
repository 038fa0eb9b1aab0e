"""Screening rests on what constraints mean, not on how they are written."""

from dataclasses import replace

import pytest

from tests.planner.phases.cases import found_for, rented_case


@pytest.mark.parametrize("seed", range(4))
def test_names_in_another_order_or_twice_leave_the_same_offers_which_are_found_once(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    kinds = tuple(dict.fromkeys(each.price_kind for each in columns.offers))
    written = (kinds, kinds[::-1], kinds + kinds[:1])
    first, *others = (
        found_for(replace(job, constraints=replace(job.constraints, price_kinds=each)), columns, owned)
        for each in written
    )
    for other in others:
        assert other.screened[0] is first.screened[0]
        assert other.rejected == first.rejected


def test_a_name_less_leaves_fewer_offers() -> None:
    job, columns, owned = rented_case(1)
    kinds = tuple(dict.fromkeys(each.price_kind for each in columns.offers))
    all_, some = (
        found_for(replace(job, constraints=replace(job.constraints, price_kinds=each)), columns, owned)
        for each in (kinds, kinds[:1])
    )
    assert len(kinds) > 1
    assert some.screened[0].allowed.sum() < all_.screened[0].allowed.sum()
