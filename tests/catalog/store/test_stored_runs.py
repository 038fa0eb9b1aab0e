"""A run is queued, running, then ended once; a silent one is given up; on both databases."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.catalog.store.run_store import SILENCE, Run
from gpuplan.catalog.store.store import NotStored, Store
from tests.catalog.snapshots_for_tests import NIGHT

NOW = NIGHT
SOON = NOW + timedelta(seconds=2)


def run(run_id: str = "run-1", **changes: Any) -> Run:
    fields: dict[str, Any] = {"id": run_id, "kind": "portfolio", "status": "queued", "request": {"jobs": ["é"]}}
    return Run(**(fields | {"created_at": NOW, "beat_at": NOW} | changes))


def test_a_run_is_read_as_it_was_kept(store: Store) -> None:
    remaining = run(progress={"seconds": 1.5}, answer={"portfolio": {}}, error={"detail": "x"}, cancel_asked=True)
    store.runs.add(remaining)
    assert store.runs.one("run-1", NOW) == remaining
    store.runs.add(run(request={}))
    assert store.runs.one("run-1", NOW) == remaining
    store.runs.forget("run-1")
    with pytest.raises(NotStored, match="no run 'run-1' is stored"):
        store.runs.one("run-1", NOW)


def test_only_one_may_begin_a_run(store: Store) -> None:
    store.runs.add(run())
    assert [store.runs.begin("run-1", SOON), store.runs.begin("run-1", SOON)] == [True, False]
    begun = store.runs.one("run-1", SOON)
    assert (begun.status, begun.started_at, begun.beat_at) == ("running", SOON, SOON)
    assert not store.runs.begin("nobody", SOON)


def test_a_beat_moves_the_progress_and_hears_of_a_cancel(store: Store) -> None:
    store.runs.add(run(status="running"))
    assert store.runs.beat("run-1", {"seconds": 1}, SOON) == "go on"
    store.runs.ask_cancel("run-1")
    assert store.runs.beat("run-1", {"seconds": 2}, SOON) == "cancel"
    result = store.runs.one("run-1", SOON)
    assert (result.status, result.progress, result.cancel_asked) == ("running", {"seconds": 2}, True)


def test_an_end_is_written_once(store: Store) -> None:
    store.runs.add(run(status="running"))
    assert store.runs.end("run-1", "done", SOON, progress={}, answer={"a": 1})
    assert not store.runs.end("run-1", "failed", SOON, progress={}, error={"detail": "late"})
    store.runs.ask_cancel("run-1")
    assert store.runs.beat("run-1", {"seconds": 9}, SOON) == "given up"
    result = store.runs.one("run-1", SOON + 2 * SILENCE)
    assert (result.status, result.answer, result.error, result.progress) == ("done", {"a": 1}, None, {})
    assert (result.finished_at, result.cancel_asked) == (SOON, False)


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_run_that_is_silent_for_too_long_has_failed_and_says_so_for_good(store: Store, status: Any) -> None:
    store.runs.add(run(status=status))
    almost = NOW + SILENCE - timedelta(milliseconds=1)
    assert store.runs.one("run-1", almost).status == status
    result = store.runs.one("run-1", NOW + SILENCE)
    assert (result.status, result.finished_at) == ("failed", NOW + SILENCE)
    assert result.error is not None
    assert "nothing was heard of it since" in result.error["detail"]
    assert store.runs.beat("run-1", {}, NOW + SILENCE) == "given up"
    assert not store.runs.end("run-1", "done", NOW + SILENCE, progress={}, answer={})
    assert store.runs.one("run-1", NOW).status == "failed"


def test_a_beat_keeps_a_run_from_being_given_up(store: Store) -> None:
    store.runs.add(run(status="running"))
    store.runs.beat("run-1", {}, NOW + SILENCE)
    assert store.runs.one("run-1", NOW + SILENCE * 1.5).status == "running"


def test_old_runs_are_forgotten_with_old_plans(store: Store) -> None:
    for days in (1, 29, 31):
        store.runs.add(run(f"run-{days}", status="done", created_at=NOW - timedelta(days=days)))
    policy = RetentionPolicy(plans_days=30)
    assert store.retain(policy, NOW).runs == 1
    assert store.retain(policy, NOW).runs == 0
    with store.engine.connect() as connection:
        remaining = connection.exec_driver_sql("SELECT id FROM runs ORDER BY id").scalars().all()
    assert remaining == ["run-1", "run-29"]


def test_a_status_that_nobody_knows_is_refused_by_the_database(store: Store) -> None:
    with pytest.raises(sa.exc.IntegrityError), store.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO runs (id, kind, status, request, created_at, beat_at, cancel_asked, progress)"
            " VALUES ('r', 'k', 'lost', '{}', 0, 0, false, '{}')"
        )
