"""Two refreshes of one database never overlap, on either kind of database, whatever becomes of the first."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.refresh_lock import RefreshRunning
from gpuplan.catalog.store.store import Store
from tests.patience import until

HOLD = """
import sys
from gpuplan.catalog.store.store import Store
store = Store.open(sys.argv[1])
with store.refreshing():
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_refresh_is_told_who_holds_the_lock_since_when(store: Store) -> None:
    with holding(store.url.render_as_string(hide_password=False)) as process:
        with (
            pytest.raises(
                RefreshRunning,
                match=rf"another refresh is running \(process {process.pid} on .*, since 20.*\+00:00\); wait",
            ),
            store.refreshing(),
        ):
            pytest.fail("two refreshes hold the lock")
        process.communicate("")
    with store.refreshing():
        pass


def test_a_refresh_may_follow_another_whose_session_the_server_has_not_ended_yet(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingering: list[sa.Connection] = []
    ended = sa.Connection.close

    def ends_later(connection: sa.Connection) -> None:
        if connection.connection.is_detached:
            lingering.append(connection)
        else:
            ended(connection)

    with monkeypatch.context() as patched:
        patched.setattr(sa.Connection, "close", ends_later)
        with store.refreshing():
            pass
    try:
        with store.refreshing(), pytest.raises(RefreshRunning), store.refreshing():
            pytest.fail("two refreshes hold the lock")
    finally:
        for item in lingering:
            item.close()


def test_the_lock_of_a_killed_process_is_free_again(store: Store) -> None:
    with holding(store.url.render_as_string(hide_password=False)) as process:
        process.kill()

    def free() -> bool:
        try:
            with store.refreshing():
                return True
        except RefreshRunning:
            return False

    until(free)  # PostgreSQL notices a dead client a moment later


def test_threads_of_one_process_exclude_each_other_too(store: Store, open_store: Callable[[str], Store]) -> None:
    other = open_store(store.url.render_as_string(hide_password=False))
    for second in (store, other):
        with store.refreshing(), pytest.raises(RefreshRunning), second.refreshing():
            pytest.fail("two refreshes hold the lock")


def test_a_refresh_that_fails_lets_the_lock_go(store: Store) -> None:
    with pytest.raises(ValueError, match="broken"), store.refreshing():
        raise ValueError("broken")
    with store.refreshing():
        store.ping()


def test_readers_and_writers_go_on_while_a_refresh_holds_the_lock(store: Store) -> None:
    with store.refreshing():
        store.ensure_embedded()
        assert store.current_snapshot_id()


def test_a_refresh_whose_session_was_ended_by_the_server_is_told_and_writes_nothing(
    postgresql_url: str, open_store: Callable[[str], Store]
) -> None:
    store = open_store(postgresql_url)
    with store.refreshing() as check_lock:
        check_lock()
        with store.engine.begin() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'gpuplan refresh %%'"
            connection.exec_driver_sql(ended)
        for _ in range(2):
            with pytest.raises(StoreFailure, match="other refreshes out was lost; nothing was written, run it again"):
                check_lock()
        with open_store(postgresql_url).refreshing():
            pass
