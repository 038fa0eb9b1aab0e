"""Counts of what snapshots changed, against the diff of each pair."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.price_history import change_counts
from gpuplan.catalog.store.snapshot_diff import SnapshotDiff
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, offer


def by_group(diff: SnapshotDiff) -> dict[str, int]:
    words = Counter[str]()
    for change in diff.offers:
        share = change.share or 0.0
        words["new"] += change.before is None
        words["gone"] += change.after is None
        words["dearer"] += share > 0
        words["cheaper"] += share < 0
    return {group: words[group] for group in ("dearer", "cheaper", "new", "gone")}


def test_counts_are_those_of_the_diff_with_the_snapshot_before(tmp_path: Path) -> None:
    store, chance = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"), random.Random(7)
    ids = []
    for night in range(6):
        at = NIGHT + timedelta(days=night)
        # Every offer comes and goes, keeps its price, changes it, and can be had or not.
        offers = [
            offer(chance.choice((1, 2, 3)) * 1_000_000, zone=f"zone-{number}", available=chance.random() < 0.8)
            for number in range(30)
            if chance.random() < 0.7
        ]
        offers = [replace(one, observed_at=at) for one in offers]
        ids.append(store.put_snapshot(snapshot_of(TYPES, offers), source="refresh"))
    rows = store.read(lambda connection: change_counts(connection, ids[-1], 4))
    assert [(row.before, row.snapshot_id) for row in rows] == list(pairwise(ids[1:]))
    assert [row.counts for row in rows] == [by_group(store.diff(row.before, row.snapshot_id)) for row in rows]
    assert all(row.counts["new"] and row.counts["gone"] for row in rows)
    assert store.read(lambda connection: change_counts(connection, store.snapshots()[-1].id, 4)) == []
    store.close()
