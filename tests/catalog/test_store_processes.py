"""Many threads and processes at once, and processes that die in the middle of a write."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

PROCESSES = 4


def _python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )


OPEN_AND_WRITE = """
import sys
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import many_offers
print("ready", flush=True)
store = Store.open(sys.argv[1])
store.put_snapshot(many_offers(50, {0: int(sys.argv[2])}), source="refresh")
print(len(store.snapshots()) > 0)
"""


def test_processes_that_open_a_new_database_at_once_all_succeed(url: str, open_store: Callable[[str], Store]) -> None:
    started = [_python(OPEN_AND_WRITE, url, str(100 + i)) for i in range(PROCESSES)]
    for process in started:
        message, complained = process.communicate(timeout=60)
        assert process.returncode == 0, complained
        assert message.split() == ["ready", "True"]
    store = open_store(url)
    result = store.snapshots()
    assert [snapshot.seq for snapshot in result] == list(range(PROCESSES, 0, -1))
    for item in result:
        assert len(store.snapshot(item.id).offers) == 50


def test_threads_that_open_a_new_database_at_once_all_succeed(url: str) -> None:
    failures: list[BaseException] = []
    together = threading.Barrier(PROCESSES)

    def open_one() -> None:
        together.wait()
        try:
            Store.open(url).close()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_readers_see_whole_snapshots_while_one_writes(store: Store) -> None:
    store.put_snapshot(many_offers(300), source="refresh")
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                assert len(store.snapshot(store.current_snapshot_id()).offers) == 300
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for night in range(1, 6):
        fresh = many_offers(
            300, dict.fromkeys(range(0, 300, night), 5000000 + night), observed_at=NIGHT + timedelta(days=night)
        )
        store.put_snapshot(fresh, source="refresh")
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_the_same_key_remembered_by_many_threads_has_one_response(store: Store) -> None:
    result: list[object] = []
    threads = [
        threading.Thread(target=lambda i=i: result.append(store.remember("k", "s", "h", {"answer": i})))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(item) for item in result}) == 1
    assert len(result) == 8


KEEP_WRITING = """
import sys
from datetime import timedelta
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers
store = Store.open(sys.argv[1])
print("writing", flush=True)
for night in range(1, 100):
    changes = {i: 7_000_000 + night for i in range(night % 2, 500, 2)}
    store.put_snapshot(many_offers(500, changes, observed_at=NIGHT + timedelta(days=night)), source="refresh")
"""


@pytest.mark.slow(reason="long cases")
def test_a_kill_in_the_middle_of_a_write_leaves_the_last_good_snapshot(store: Store) -> None:
    first = many_offers(500)
    store.put_snapshot(first, source="refresh")
    for moment in (0.01, 0.03, 0.05, 0.09, 0.17):
        writer = _python(KEEP_WRITING, store.url.render_as_string(hide_password=False))
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        time.sleep(moment)
        writer.kill()
        writer.communicate()
        for snapshot in store.snapshots():
            assert len(store.snapshot(snapshot.id).offers) == 500
        assert store.snapshot(first.id) == first
    after = many_offers(500, {3: 1}, observed_at=NIGHT + timedelta(days=999))
    store.put_snapshot(after, source="refresh")
    assert store.snapshot(after.id) == after
    assert store.current_snapshot_id() == after.id
