"""A snapshot's id is a hash of its contents and of nothing else."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.snapshot import snapshot_id_of, snapshot_of

MACHINE = InstanceType(
    provider="aws", name="p5.48xlarge", accelerator="H100-80GB-SXM", accelerator_count=Fraction(8), vcpus=192
)
OFFER = Offer(
    provider="aws",
    region="us-east-1",
    instance_type="p5.48xlarge",
    price_kind="on_demand",
    usd_micros_per_hour=55_040_000,
    observed_at=datetime(2026, 7, 20, tzinfo=UTC),
)
OFFERS = [replace(OFFER, region=f"region-{number}") for number in range(6)]


@given(st.permutations(OFFERS))
def test_the_order_of_rows_does_not_change_the_id(rows: list[Offer]) -> None:
    assert snapshot_of([MACHINE], rows) == snapshot_of([MACHINE], OFFERS)


def test_a_whole_number_reads_the_same_as_int_and_as_float() -> None:
    assert snapshot_id_of([MACHINE], [OFFER]) == snapshot_id_of([replace(MACHINE, vcpus=192.0)], [OFFER])


@pytest.mark.parametrize(
    "changed",
    [
        replace(OFFER, usd_micros_per_hour=55_040_001),
        replace(OFFER, zone="use1-az1"),
        replace(OFFER, observed_at=datetime(2026, 7, 21, tzinfo=UTC)),
        replace(OFFER, interruptions_per_hour=0.0),
        replace(OFFER, modelled=("spot_price",)),
        replace(OFFER, partial=("spot_price",)),
        replace(OFFER, available=False),
        replace(OFFER, stale_since=datetime(2026, 7, 21, tzinfo=UTC)),
    ],
)
def test_any_change_of_a_row_changes_the_id(changed: Offer) -> None:
    assert snapshot_id_of([MACHINE], [changed]) != snapshot_id_of([MACHINE], [OFFER])


def test_a_snapshot_is_as_new_as_its_newest_row() -> None:
    newer = replace(OFFER, region="eu-west-1", observed_at=datetime(2026, 9, 1, tzinfo=UTC))
    assert snapshot_of([MACHINE], [newer, OFFER]).observed_at == newer.observed_at


@pytest.mark.parametrize(
    ("machines", "rows"), [([MACHINE], [OFFER, OFFER]), ([MACHINE, MACHINE], [OFFER]), ([MACHINE], [])]
)
def test_a_snapshot_with_doubles_or_without_offers_is_refused(machines: list[InstanceType], rows: list[Offer]) -> None:
    with pytest.raises(ValueError, match=r"twice|at least one"):
        snapshot_of(machines, rows)
