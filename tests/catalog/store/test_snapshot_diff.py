"""What one snapshot changed against another, from whole snapshots and from the tables."""

import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.snapshot_diff import WORDS, snapshot_diff
from gpuplan.catalog.store.store import NotStored, Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, offer, snapshot

LATER = NIGHT + timedelta(days=1)
BEFORE = snapshot(
    offer(100, region="stays"),
    offer(100, region="dearer"),
    offer(100, region="halved"),
    offer(100, region="goes"),
    offer(100, region="loses touch"),
    offer(100, region="was lost", stale_since=NIGHT),
    offer(100, region="closes"),
    offer(100, region="opens", available=False),
)
AFTER = snapshot(
    offer(100, region="stays", observed_at=LATER),
    offer(150, region="dearer", observed_at=LATER),
    offer(50, region="halved", observed_at=LATER),
    offer(100, region="comes", observed_at=LATER),
    offer(100, region="loses touch", stale_since=LATER),
    offer(110, region="was lost", observed_at=LATER),
    offer(100, region="closes", available=False, stale_since=LATER),
    offer(100, region="opens", observed_at=LATER),
)


def test_every_change_has_its_word_and_the_largest_move_comes_first() -> None:
    result = [(offer.key[1], offer.what, offer.share) for offer in snapshot_diff(BEFORE, AFTER).offers]
    assert result == [
        ("halved", ("changed",), -0.5),
        ("dearer", ("changed",), 0.5),
        ("was lost", ("changed", "fresh_again"), pytest.approx(0.1)),
        ("closes", ("became_unavailable", "became_stale"), 0.0),
        ("comes", ("new",), None),
        ("goes", ("vanished",), None),
        ("loses touch", ("became_stale",), 0.0),
        ("opens", ("available_again",), 0.0),
    ]


def test_changes_are_counted_by_provider() -> None:
    after = snapshot(*AFTER.offers, offer(1, provider="azure", region="eastus", instance_type="NV6ads_A10_v5"))
    counts = snapshot_diff(BEFORE, after).counts()
    assert counts["aws"] == dict.fromkeys(WORDS, 1) | {"changed": 3, "became_stale": 2}
    assert counts["azure"] == dict.fromkeys(WORDS, 0) | {"new": 1}


def test_a_snapshot_changes_nothing_against_itself(store: Store) -> None:
    store.put_snapshot(BEFORE, source="refresh")
    result = store.diff(BEFORE.id, BEFORE.id)
    assert (result.offers, result.instance_types, result.counts()) == ((), (), {})


def test_instance_types_that_came_went_or_have_other_facts_are_told() -> None:
    new = replace(TYPES[0], name="p6.48xlarge")
    grown = replace(TYPES[0], vcpus=384, accelerator_count=Fraction(16))
    result = snapshot_diff(snapshot_of(TYPES, [offer()]), snapshot_of([grown, new], [offer()])).instance_types
    assert [(item.name, item.before is None, item.after is None) for item in result] == [
        ("p5.48xlarge", False, False),
        ("p6.48xlarge", True, False),
        ("NV6ads_A10_v5", False, True),
    ]
    assert result[0].fields == {"accelerator_count": (8, 16), "vcpus": (192, 384)}


def test_the_tables_tell_the_same_forwards_and_backwards(store: Store) -> None:
    for item in (BEFORE, AFTER):
        store.put_snapshot(item, source="refresh")
    assert store.diff(BEFORE.id, AFTER.id) == snapshot_diff(BEFORE, AFTER)
    assert store.diff(AFTER.id, BEFORE.id) == snapshot_diff(AFTER, BEFORE)


def test_a_snapshot_that_is_not_stored_is_named(store: Store) -> None:
    store.put_snapshot(BEFORE, source="refresh")
    with pytest.raises(NotStored, match="nearest"):
        store.diff(BEFORE.id, "feed")


OFFERS = st.builds(
    offer,
    st.integers(1, 3),
    region=st.sampled_from(["us-east-1", "eu-west-1"]),
    zone=st.sampled_from(["", "a", "b"]),
    observed_at=st.sampled_from([NIGHT, LATER]),
    stale_since=st.sampled_from([None, NIGHT, LATER]),
    interruptions_per_hour=st.sampled_from([None, 0.5]),
    available=st.booleans(),
)
NIGHTS = st.lists(st.lists(OFFERS, min_size=1, max_size=6, unique_by=lambda item: item.key), min_size=2, max_size=5)


@pytest.mark.slow(reason="one long case")
@settings(max_examples=12, deadline=None)
@given(NIGHTS)
def test_any_two_stored_snapshots_differ_as_the_whole_ones_do(empty_store: Path, nights: list[list[Offer]]) -> None:
    written = [snapshot_of(TYPES[: 1 + len(offers) % 2], offers) for offers in nights]
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{shutil.copy(empty_store, folder)}")
        for item in written:
            store.put_snapshot(item, source="refresh")
        for before in written:
            for after in written:
                assert store.diff(before.id, after.id) == snapshot_diff(before, after)
        store.close()
