"""Screening depends on the meaning of constraints, not on their spelling."""

from dataclasses import replace

import pytest

from gpuplan.catalog.snapshots.offer_columns import columns_of
from tests.planner.strategies.phased.cases import found_for, rented_case


@pytest.mark.parametrize("seed", range(4))
def test_names_in_another_order_or_twice_leave_the_same_offers_which_are_found_once(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    kinds = tuple(dict.fromkeys(offer.price_kind for offer in columns.offers))
    written = (kinds, kinds[::-1], kinds + kinds[:1])
    first, *others = (
        found_for(replace(job, constraints=replace(job.constraints, price_kinds=constraints)), columns, owned)
        for constraints in written
    )
    for other in others:
        assert other.screened[0] is first.screened[0]
        assert other.rejected == first.rejected


def test_a_name_less_leaves_fewer_offers() -> None:
    job, columns, owned = rented_case(1)
    kinds = tuple(dict.fromkeys(offer.price_kind for offer in columns.offers))
    all_, some = (
        found_for(replace(job, constraints=replace(job.constraints, price_kinds=kinds_)), columns, owned)
        for kinds_ in (kinds, kinds[:1])
    )
    assert len(kinds) > 1
    assert some.screened[0].allowed.sum() < all_.screened[0].allowed.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.99995])
def test_an_offer_that_is_interrupted_more_often_stays_where_that_may_make_it_earlier(
    confidence: float, seed: int
) -> None:
    job, columns, owned = rented_case(seed)
    first = min(columns.offers, key=lambda offer: offer.usd_micros_per_hour)
    fewer, more_often = (
        replace(first, price_kind="spot", zone=zone, usd_micros_per_hour=usd, interruptions_per_hour=rate)
        for zone, usd, rate in (("a", 1_000_000, 0.1), ("b", 1_000_001, 0.2))
    )
    pair = columns_of("two", columns.observed_at, columns.instance_types, (fewer, more_often))
    asked = replace(job, confidence=confidence, constraints=replace(job.constraints, price_kinds=("spot",)))
    assert len(found_for(asked, pair, owned).screened[0].places) == (1 if 0.5 <= confidence < 0.999 else 2)
