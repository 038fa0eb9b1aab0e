"""What two snapshots changed is worked out once, kept within bounds, and let go with them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.snapshot_diff import DiffCache, SnapshotDiff, snapshot_diff
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import many_offers

FIRST, SECOND, THIRD = many_offers(10), many_offers(10, {0: 5_000_000}), many_offers(10, {0: 6_000_000, 1: 7_000_000})


def test_a_diff_is_read_from_the_tables_once(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    for item in (FIRST, SECOND, THIRD):
        store.put_snapshot(item, source="refresh")
    first = store.diff(FIRST.id, SECOND.id)
    with store.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM prices"))
    assert store.diff(FIRST.id[:12], SECOND.id) is first
    assert [offer.after.usd_micros_per_hour for offer in first.offers if offer.after] == [5_000_000]
    assert store.diff(SECOND.id, THIRD.id).offers == ()  # what is not kept is read, and there is nothing left
    with pytest.raises(NotStored):
        store.diff(FIRST.id, "no-such-snapshot")
    store.close()


def test_kept_diffs_have_so_many_changes_together_and_the_oldest_goes_first() -> None:
    asked: list[str] = []
    diff_cache = DiffCache(most_changes=3)

    def of(before: Snapshot, after: Snapshot) -> SnapshotDiff:
        def work_out() -> SnapshotDiff:
            asked.append(f"{len(asked)}")
            return snapshot_diff(before, after)

        return diff_cache.of((before.id, after.id), work_out)

    one, two = of(FIRST, SECOND), of(FIRST, THIRD)
    assert (len(one.offers), len(two.offers)) == (1, 2)
    assert of(FIRST, SECOND) is one
    assert len(asked) == 2
    of(SECOND, THIRD)  # two more: the one asked for longest ago goes
    assert of(FIRST, SECOND) is one
    assert len(asked) == 3
    of(FIRST, THIRD)
    assert len(asked) == 4
    diff_cache.retain_only({FIRST.id})
    of(FIRST, THIRD)
    assert len(asked) == 5


def test_a_diff_that_is_larger_than_all_that_is_kept_is_given_and_not_kept() -> None:
    remaining, asked = DiffCache(most_changes=1), 0

    def work_out() -> SnapshotDiff:
        nonlocal asked
        asked += 1
        return snapshot_diff(FIRST, THIRD)

    assert [len(remaining.of((FIRST.id, THIRD.id), work_out).offers) for _ in range(2)] == [2, 2]
    assert asked == 2


def test_several_that_ask_at_once_have_it_worked_out_once() -> None:
    remaining, asked, begin = DiffCache(), [0], threading.Barrier(4)

    def work_out() -> SnapshotDiff:
        asked[0] += 1
        return snapshot_diff(FIRST, SECOND)

    def ask() -> None:
        begin.wait(60)
        remaining.of((FIRST.id, SECOND.id), work_out)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == [1]


def test_a_pair_that_takes_long_holds_up_no_other_and_none_that_is_kept() -> None:
    remaining, begun, go_on = DiffCache(), threading.Event(), threading.Event()
    remaining.of((FIRST.id, SECOND.id), lambda: snapshot_diff(FIRST, SECOND))

    def slow() -> SnapshotDiff:
        begun.set()
        assert go_on.wait(90)
        return snapshot_diff(FIRST, THIRD)

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(remaining.of, (FIRST.id, THIRD.id), slow)
        assert begun.wait(90)
        waiting = threads.submit(remaining.of, (FIRST.id, THIRD.id), slow)
        other = threads.submit(remaining.of, (SECOND.id, THIRD.id), lambda: snapshot_diff(SECOND, THIRD))
        again = threads.submit(remaining.of, (FIRST.id, SECOND.id), slow)
        remaining.retain_only({FIRST.id, SECOND.id, THIRD.id})
        assert [len(item.result(90).offers) for item in (other, again)] == [2, 1]
        assert not first.done()
        go_on.set()
        assert first.result(90) is waiting.result(90)


def test_so_many_are_worked_out_at_once_and_no_more() -> None:
    remaining, at_once, most = DiffCache(most_at_once=2), threading.BoundedSemaphore(2), threading.Barrier(2)

    def work_out() -> SnapshotDiff:
        assert at_once.acquire(blocking=False), "a third"
        most.wait(90)
        at_once.release()
        return snapshot_diff(FIRST, SECOND)

    with ThreadPoolExecutor(6) as threads:
        pairs = [(FIRST.id, f"{number}") for number in range(6)]
        assert len(list(threads.map(lambda pair: remaining.of(pair, work_out), pairs))) == 6


def test_what_fails_is_told_and_tried_again_by_the_next() -> None:
    diff_cache = DiffCache()

    def fails() -> SnapshotDiff:
        raise StoreFailure("the database is away")

    with pytest.raises(StoreFailure, match="away"):
        diff_cache.of((FIRST.id, SECOND.id), fails)
    assert len(diff_cache.of((FIRST.id, SECOND.id), lambda: snapshot_diff(FIRST, SECOND)).offers) == 1
