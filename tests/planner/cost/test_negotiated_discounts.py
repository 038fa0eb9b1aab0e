"""Negotiated prices and credits: which holds, what a plan then costs, and what is refused."""

import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.cost.credits import after_credits, out_of_pocket
from gpuplan.planner.cost.negotiated_discounts import discounted, is_of_family
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.model.settings import Credit, Discount
from gpuplan.planner.planning import plan
from tests.planner.small_catalogues import OBSERVED, START, random_columns, random_job
from tests.planner.spot_settings import replaced_at_once

SOME = random_columns(random.Random(7), types=3, offers=60)


def by_hand(columns: Columns, discount: Discount) -> Columns:
    """The same rows with every price of the discount's provider and kind changed one by one."""
    rows = []
    for row in columns.offers:
        meant = row.provider == discount.provider and discount.price_kind in ("", row.price_kind)
        price = round(row.usd_micros_per_hour / 1e6 * (1 - (discount.percent or 0) / 100) * 1e6)
        rows.append(replace(row, usd_micros_per_hour=price) if meant else row)
    return columns_of("by hand", OBSERVED, columns.instance_types, rows)


@given(
    seed=st.integers(0, 10_000),
    provider=st.sampled_from(("aws", "gcp", "azure")),
    kind=st.sampled_from(("", "on_demand", "spot")),
    percent=st.floats(0.5, 95),
)
@settings(max_examples=20, deadline=None)
def test_a_plan_at_a_discount_is_the_plan_on_a_snapshot_with_those_prices(
    seed: int, provider: str, kind: str, percent: float
) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    if provider not in {name for name, _ in columns.regions}:
        return
    discount = Discount(provider=provider, price_kind=kind, percent=percent)
    one = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0, discounts=(discount,)))
    other = plan(job, by_hand(columns, discount), settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    assert isinstance(one, Planned) == isinstance(other, Planned)
    if isinstance(one, Planned) and isinstance(other, Planned):
        assert one.cost == other.cost
        assert one.phases[0].choice.offer.key == other.phases[0].choice.offer.key


def test_rows_and_arrays_have_the_same_price_to_the_micro_dollar() -> None:
    negotiated_columns = discounted(SOME, (Discount(provider="aws", percent=12.345),))
    rows = np.array([negotiated_columns.offer(i).usd_micros_per_hour for i in range(len(negotiated_columns))])
    assert np.array_equal(rows, np.rint(negotiated_columns.usd_per_hour * 1e6))
    assert negotiated_columns.offers[0:2] == [negotiated_columns.offer(0), negotiated_columns.offer(1)]


def test_the_most_specific_discount_holds_whatever_the_order() -> None:
    name = SOME.instance_types[0].name
    wide, narrow = Discount(percent=10.0), Discount(instance_type=name, percent=30.0)
    for order in ((wide, narrow), (narrow, wide)):
        negotiated_columns = discounted(SOME, order)
        matching = SOME.type_index == 0
        assert np.allclose(negotiated_columns.usd_per_hour[matching], SOME.usd_per_hour[matching] * 0.7, atol=1e-6)
        assert np.allclose(negotiated_columns.usd_per_hour[~matching], SOME.usd_per_hour[~matching] * 0.9, atol=1e-6)


def test_a_family_beats_an_accelerator_and_more_stated_properties_beat_fewer() -> None:
    machine = SOME.instance_types[0]
    device = Discount(accelerator=machine.accelerator, provider=machine.provider, percent=5.0)
    family = Discount(family=machine.name, percent=20.0)
    matching = SOME.type_index == 0
    assert np.allclose(
        discounted(SOME, (device, family)).usd_per_hour[matching], SOME.usd_per_hour[matching] * 0.8, atol=1e-6
    )
    both = (Discount(provider=machine.provider, percent=5.0), Discount(percent=50.0))
    assert np.allclose(discounted(SOME, both).usd_per_hour[matching], SOME.usd_per_hour[matching] * 0.95, atol=1e-6)


def test_two_equally_specific_discounts_of_one_offer_are_refused_by_name() -> None:
    with pytest.raises(UnusableInput, match=r"settings.discounts\[1\]: and discounts\[0\] both hold for aws"):
        discounted(SOME, (Discount(provider="aws", percent=5.0), Discount(price_kind="on_demand", percent=9.0)))


def test_a_tie_that_a_more_specific_discount_settles_is_none() -> None:
    columns = random_columns(random.Random(3), types=1, offers=40)
    tied = (Discount(provider="aws", percent=5.0), Discount(region="us-east-1", percent=9.0))
    with pytest.raises(UnusableInput):
        discounted(columns, tied)
    settled = Discount(provider="aws", region="us-east-1", percent=40.0)
    for order in ((*tied, settled), (settled, *tied)):
        negotiated_columns = discounted(columns, order)
        matching = columns.region_index == columns.regions.index(("aws", "us-east-1"))
        assert np.allclose(negotiated_columns.usd_per_hour[matching], columns.usd_per_hour[matching] * 0.6, atol=1e-6)


def test_without_discounts_the_snapshot_is_the_same_object() -> None:
    assert discounted(SOME, ()) is SOME


def test_a_negotiated_price_is_marked_with_the_list_price_beside_it() -> None:
    negotiated_columns = discounted(SOME, (Discount(provider="aws", percent=12.0),))
    at = next(i for i, row in enumerate(SOME.offers) if row.provider == "aws")
    assert negotiated_columns.offer(at).source.startswith("12 % negotiated discount; list ")
    assert negotiated_columns.offer(at).source.endswith(SOME.offer(at).source)


@pytest.mark.parametrize(
    ("discount", "field", "message"),
    [
        (Discount(provider="oracle", percent=5.0), "settings.discounts[0].provider", "aws"),
        (Discount(instance_type="aws-type-O", percent=5.0), "settings.discounts[0].instance_type", "aws-type-0"),
        (Discount(family="p55", percent=5.0), "settings.discounts[0].family", "nearest"),
        (Discount(region="us-eest-1", percent=5.0), "settings.discounts[0].region", "us-east-1"),
    ],
)
def test_what_the_snapshot_does_not_know_is_refused_with_the_nearest(
    discount: Discount, field: str, message: str
) -> None:
    with pytest.raises(UnusableInput) as refused:
        discounted(SOME, (discount,))
    assert {fault.field: message in fault.message for fault in refused.value.faults} == {field: True}


@pytest.mark.parametrize(
    ("name", "family", "meant"),
    [
        ("p5.48xlarge", "p5", True),
        ("p5en.48xlarge", "p5", False),
        ("a3-highgpu-8g", "a3", True),
        ("a3-highgpu-8g", "a3-highgpu", True),
        ("Standard_ND96isr_H100_v5", "standard_nd*", True),
        ("Standard_NC40ads_H100_v5", "standard_nd*", False),
    ],
)
def test_a_family_is_the_beginning_of_a_name_up_to_a_separator(name: str, family: str, meant: bool) -> None:
    assert is_of_family(name, family) is meant


@given(seed=st.integers(0, 10_000), usd=st.floats(1, 1e5))
@settings(max_examples=20, deadline=None)
def test_credits_never_change_the_choice_and_say_what_is_left_to_pay(seed: int, usd: float) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    plain = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
    if not isinstance(plain, Planned):
        return
    granted = tuple(Credit(provider=name, usd=usd) for name in ("aws", "gcp", "azure"))
    answer = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0, credits=granted))
    assert isinstance(answer, Planned)
    assert answer.cost == plain.cost
    after = after_credits(answer)
    assert after.out_of_pocket == max(0, answer.cost.expected - round(usd * 1e6))
    assert after.applied + after.out_of_pocket == answer.cost.expected
    assert after.least is None or after.least[1] < after.out_of_pocket


def test_an_alternative_that_credits_make_cheaper_to_pay_is_named() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        columns, job = random_columns(draw), random_job(draw)
        answer = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0))
        if not isinstance(answer, Planned):
            continue
        mine = answer.phases[0].choice.offer.provider
        others = [
            alternative
            for alternative in answer.alternatives
            if alternative.choice.offer.provider != mine and alternative.meets_deadline
        ]
        rivals = [other for other in others if other.meets_budget and other.label.startswith("best on")]
        if rivals:
            credit = Credit(provider=rivals[0].choice.offer.provider, usd=1e7)
            again = plan(job, columns, settings=replaced_at_once(least_saving_of_a_move_percent=0.0, credits=(credit,)))
            assert isinstance(again, Planned)
            assert again.cost == answer.cost
            least = after_credits(again).least
            assert least is not None
            assert least[1] == 0
            return
    raise AssertionError("no drawn job had a feasible rival on another provider")


def test_credits_that_run_out_before_the_run_is_done_are_not_counted() -> None:
    answer = next(
        outcome
        for seed in range(50)
        if isinstance(
            outcome := plan(
                random_job(random.Random(seed)),
                random_columns(random.Random(seed)),
                settings=replaced_at_once(least_saving_of_a_move_percent=0.0),
            ),
            Planned,
        )
    )
    choice = answer.phases[0].choice
    hours = choice.hours.confident
    for slack, left in ((-0.01, choice.cost.expected), (0.01, 0)):
        expires = START + timedelta(hours=hours + slack)
        credit = Credit(provider=choice.offer.provider, usd=1e9, expires=expires)
        assert out_of_pocket((choice,), (credit,), START, hours) == left
