"""What one worker fetched is what another writes down: every field, exactly."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.providers.contract import Quarantined, Rows
from gpuplan.providers.refresh.serialization import (
    NotSerializable,
    deserialized,
    deserialized_regions,
    serialized,
    serialized_regions,
)
from tests.providers.fake_clouds import machine, price

TEXT = st.text(max_size=12)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
OFFERS = st.builds(
    lambda micros, at, stale, rate, modelled: price(
        usd_micros=micros, observed_at=at, stale_since=stale, interruptions_per_hour=rate, modelled=modelled
    ),
    st.integers(1, 5_000_000_000),
    TIMES,
    st.none() | TIMES,
    st.none() | st.floats(0, 60),
    st.lists(TEXT, max_size=2).map(tuple),
)
TYPES = st.builds(
    lambda count, memory, ram: machine(accelerator_count=count, accelerator_memory_mib=memory, ram_gib=ram),
    st.fractions(Fraction(1, 6), 64, max_denominator=24),
    st.none() | st.integers(1, 300_000),
    st.none() | st.floats(0.5, 4000),
)
ROWS = st.builds(
    Rows,
    instance_types=st.lists(TYPES, max_size=2).map(tuple),
    offers=st.lists(OFFERS, max_size=3).map(tuple),
    quarantined=st.lists(st.builds(Quarantined, what=TEXT, reason=TEXT), max_size=2).map(tuple),
    whole_kinds=st.frozensets(st.sampled_from(["on_demand", "spot"])),
    unread_types=st.frozensets(TEXT, max_size=2),
    closed=st.booleans(),
    failures=st.lists(TEXT, max_size=2).map(tuple),
    notes=st.lists(TEXT, max_size=2).map(tuple),
    provider_failures=st.lists(TEXT, max_size=2).map(tuple),
    provider_notes=st.lists(TEXT, max_size=2).map(tuple),
)


@given(ROWS)
@settings(deadline=None, max_examples=60)
def test_rows_come_back_as_they_were(rows: Rows) -> None:
    assert deserialized(serialized(rows)) == rows


def test_a_snapshot_of_what_came_back_has_the_same_id() -> None:
    at = datetime(2026, 11, 22, 3, 17, 5, 123456, tzinfo=UTC)
    offers = (price("r1", observed_at=at), price("r2", observed_at=at - timedelta(days=1), stale_since=at))
    rows = Rows(instance_types=(machine(accelerator_count=Fraction(1, 6)),), offers=offers)
    back = deserialized(serialized(rows))
    assert snapshot_of(back.instance_types, back.offers).id == snapshot_of(rows.instance_types, rows.offers).id
    assert replace(back.offers[0]) == offers[0]


def test_regions_keep_their_order() -> None:
    assert deserialized_regions(serialized_regions(("b", "a", "c"))) == ("b", "a", "c")


@pytest.mark.parametrize("content", [b"", b"rows", serialized_regions(("a",)), serialized(Rows())[:-3]])
def test_what_no_code_of_ours_serialized_is_refused(content: bytes) -> None:
    with pytest.raises(NotSerializable):
        deserialized(content)
