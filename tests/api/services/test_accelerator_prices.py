"""The table of accelerators: the least whole price per accelerator-hour, and per unit of what it computes."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from gpuplan.api.services.accelerator_prices import ORDERS, PricedAccelerator, priced_accelerators
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import columns_of

AT = datetime(2026, 11, 1, tzinfo=UTC)
EIGHT = InstanceType(provider="aws", name="p5.48xlarge", accelerator="H100-80GB-SXM", accelerator_count=Fraction(8))
ONE = replace(EIGHT, name="p5.4xlarge", accelerator_count=Fraction(1))
SIXTH = InstanceType(provider="azure", name="NV6ads", accelerator="A10", accelerator_count=Fraction(1, 6))
OFFER = Offer(
    provider="aws",
    region="us-east-1",
    instance_type="p5.48xlarge",
    price_kind="on_demand",
    usd_micros_per_hour=40_000_000,
    observed_at=AT,
)


def table(*offers: Offer, order: str = "name") -> list[PricedAccelerator]:
    return priced_accelerators(columns_of("a" * 32, AT, (EIGHT, ONE, SIXTH), offers), order=order)


def of(rows: list[PricedAccelerator], name: str) -> PricedAccelerator:
    return next(row for row in rows if row.accelerator.name == name)


def test_the_least_price_is_per_accelerator_whatever_the_size_of_the_machine() -> None:
    small = replace(OFFER, instance_type="p5.4xlarge", usd_micros_per_hour=4_500_000)
    row = of(table(OFFER, small), "H100-80GB-SXM")
    assert row.steady is not None
    assert (row.steady.usd_per_hour, row.steady.offer.instance_type) == (4.5, "p5.4xlarge")
    assert (row.interruptible, row.offers) == (None, 2)


def test_a_part_of_a_card_counts_as_that_part() -> None:
    offer = replace(
        OFFER, provider="azure", region="eastus", instance_type="NV6ads", price_kind="spot", usd_micros_per_hour=100_000
    )
    row = of(table(offer), "A10")
    assert row.interruptible is not None
    assert row.interruptible.usd_per_hour == pytest.approx(0.6)


def test_commitments_partial_prices_and_what_nobody_has_verified_are_not_compared() -> None:
    never = [
        replace(OFFER, price_kind="reserved_3y", usd_micros_per_hour=1_000_000),
        replace(OFFER, region="us-west-2", partial=("vm",), usd_micros_per_hour=1_000_000),
        replace(OFFER, region="eu-west-1", available=False, usd_micros_per_hour=1_000_000),
    ]
    row = of(table(OFFER, *never), "H100-80GB-SXM")
    assert row.steady is not None
    assert row.steady.usd_per_hour == 5


def test_a_pflop_hour_is_paid_at_the_lower_price_and_the_dense_peak() -> None:
    spot = replace(OFFER, price_kind="spot", usd_micros_per_hour=16_000_000)
    row = of(table(OFFER, spot), "H100-80GB-SXM")
    peak = accelerators()["H100-80GB-SXM"].bf16_tflops
    assert peak is not None
    assert row.usd_per_pflop_hour == pytest.approx(2 / (peak / 1000))
    assert of(table(OFFER), "A10").usd_per_pflop_hour is None


@pytest.mark.parametrize("order", [order for name in ORDERS for order in (name, f"-{name}")])
def test_every_accelerator_is_there_in_every_order_and_the_unknown_last(order: str) -> None:
    rows = table(OFFER, order=order)
    assert {row.accelerator.name for row in rows} == set(accelerators())
    if order.endswith("steady"):
        assert rows[0].steady is not None
    if order == "-memory":
        sizes = [row.accelerator.memory_gb for row in rows]
        assert sizes == sorted(sizes, reverse=True)


def test_an_order_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnusableInput, match="is no order"):
        table(order="beauty")
