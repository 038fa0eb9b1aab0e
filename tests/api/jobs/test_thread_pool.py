"""Runs in threads: in turn, cancelled in turn too, bounded, and always ended in the store."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import KINDS, execute
from gpuplan.api.jobs.thread_pool import Busy, Pool
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.run_store import Run, RunStore
from tests.patience import until


@pytest.fixture(autouse=True)
def no_runs_left(gpuplan: Services) -> Iterator[None]:
    yield
    with gpuplan.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM runs")


def a_run(run_id: str, kind: str = "gated") -> Run:
    now = datetime.now(UTC)
    return Run(id=run_id, kind=kind, status="queued", request={}, created_at=now, beat_at=now)


class Authenticator:
    """Work that ends when it may, or when it is cancelled; remembers in which order it began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = threading.Event()

    def work(self, _: Services, run: Run, heartbeat: Heartbeat) -> dict[str, Any]:
        self.begun.append(run.id)
        heartbeat.tell({"at": "the gate"})
        while not self.go_on.wait(0.02) and not heartbeat.cancelled():
            pass
        return {"of": run.id}


@pytest.fixture
def authenticator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Authenticator]:
    made = Authenticator()
    monkeypatch.setitem(KINDS, "gated", made.work)
    yield made
    made.go_on.set()


@pytest.fixture
def pool(gpuplan: Services) -> Iterator[Pool]:
    made = Pool(lambda heartbeat: execute(gpuplan, heartbeat), at_once=1, waiting=1)
    yield made
    made.stop()


def ended(pool: Pool, gpuplan: Services, run_id: str) -> Run:
    if (future := pool.ended(run_id)) is not None:
        future.result(60)
    return gpuplan.store.runs.one(run_id, datetime.now(UTC))


def test_runs_take_turns_and_each_keeps_its_answer(gpuplan: Services, pool: Pool, authenticator: Authenticator) -> None:
    runs = gpuplan.store.runs
    pool.start(runs, a_run("a"))
    until(lambda: authenticator.begun == ["a"])
    pool.start(runs, a_run("b"))
    assert [runs.one(run_id, datetime.now(UTC)).status for run_id in "ab"] == ["running", "queued"]
    authenticator.go_on.set()
    for name in "ab":
        run = ended(pool, gpuplan, name)
        assert (run.status, run.answer, run.progress) == ("done", {"of": name}, {"at": "the gate"})
    assert authenticator.begun == ["a", "b"]


def test_more_runs_than_may_wait_are_refused_and_leave_nothing(
    gpuplan: Services, pool: Pool, authenticator: Authenticator
) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
    with pytest.raises(Busy, match="2 runs are already running or wait"):
        pool.start(gpuplan.store.runs, a_run("c"))
    with pytest.raises(UnusableInput, match="no run 'c'"):
        gpuplan.store.runs.one("c", datetime.now(UTC))
    authenticator.go_on.set()
    ended(pool, gpuplan, "b")
    until(lambda: pool.ended("a") is None)
    pool.start(gpuplan.store.runs, a_run("c"))
    assert ended(pool, gpuplan, "c").status == "done"


def test_a_run_that_is_cancelled_while_it_waits_never_begins(
    gpuplan: Services, pool: Pool, authenticator: Authenticator
) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
        until(lambda: authenticator.begun)
    waiting = pool.heartbeat("b")
    assert waiting is not None
    waiting.cancel()
    run = ended(pool, gpuplan, "b")
    assert (run.status, run.answer, run.started_at, run.error) == ("cancelled", None, None, None)
    assert authenticator.begun == ["a"]


def test_a_run_that_is_cancelled_keeps_what_it_found(
    gpuplan: Services, pool: Pool, authenticator: Authenticator
) -> None:
    pool.start(gpuplan.store.runs, a_run("a"))
    until(lambda: authenticator.begun)
    running = pool.heartbeat("a")
    assert running is not None
    running.cancel()
    assert (ended(pool, gpuplan, "a").status, ended(pool, gpuplan, "a").answer) == ("cancelled", {"of": "a"})


def test_a_pool_that_stops_ends_its_runs_and_says_why(
    gpuplan: Services, pool: Pool, authenticator: Authenticator
) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
        until(lambda: authenticator.begun)
    pool.stop()
    runs = [gpuplan.store.runs.one(run_id, datetime.now(UTC)) for run_id in "ab"]
    assert [run.status for run in runs] == ["cancelled", "cancelled"]
    assert [run.answer for run in runs] == [{"of": "a"}, None]
    assert {str(run.error) for run in runs} == {"{'detail': 'the service was stopped'}"}


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (
            UnusableInput.at("jobs", 3, "deadline", message="is too soon"),
            {
                "status": 422,
                "detail": "jobs[3].deadline: is too soon",
                "errors": [{"path": ["jobs", 3, "deadline"], "detail": "is too soon"}],
            },
        ),
        (StoreFailure("the disk is full"), {"status": 503, "detail": "the disk is full"}),
        (ZeroDivisionError("secret"), {"status": 500, "detail": "gpuplan failed; its log has the cause under a"}),
    ],
)
def test_a_run_that_fails_says_why_and_only_the_log_knows_of_bugs(
    gpuplan: Services, pool: Pool, monkeypatch: pytest.MonkeyPatch, raised: Exception, error: dict[str, Any]
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise raised

    monkeypatch.setitem(KINDS, "gated", fail)
    pool.start(gpuplan.store.runs, a_run("a"))
    run = ended(pool, gpuplan, "a")
    assert (run.status, run.answer, run.error) == ("failed", None, error)


def test_a_kind_of_run_that_this_release_does_not_know_fails(gpuplan: Services, pool: Pool) -> None:
    pool.start(gpuplan.store.runs, a_run("a", kind="of tomorrow"))
    assert ended(pool, gpuplan, "a").status == "failed"


def test_a_run_that_cannot_be_kept_takes_no_place(
    gpuplan: Services, pool: Pool, authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("the disk is full")

    runs = gpuplan.store.runs
    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "add", full)
        for _ in range(3):
            with pytest.raises(StoreFailure, match="disk"):
                pool.start(runs, a_run("a"))
    authenticator.go_on.set()
    pool.start(runs, a_run("a"))
    assert ended(pool, gpuplan, "a").status == "done"


def test_an_end_that_cannot_be_written_frees_the_place_all_the_same(
    gpuplan: Services, pool: Pool, authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> bool:
        raise StoreFailure("the disk is full")

    authenticator.go_on.set()
    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "end", full)
        pool.start(gpuplan.store.runs, a_run("a"))
        until(lambda: pool.ended("a") is None)
    assert gpuplan.store.runs.one("a", datetime.now(UTC)).status == "running"
    pool.start(gpuplan.store.runs, a_run("b"))
    assert ended(pool, gpuplan, "b").status == "done"


def test_a_heartbeat_writes_progress_and_hears_of_a_cancel_in_the_store(gpuplan: Services) -> None:
    runs = gpuplan.store.runs
    runs.add(a_run("a"))
    with Heartbeat(runs, "a", beat_seconds=0.02) as heartbeat:
        heartbeat.tell({"seconds": 1})
        until(lambda: runs.one("a", datetime.now(UTC)).progress == {"seconds": 1})
        assert not heartbeat.cancelled()
        runs.ask_cancel("a")
        until(heartbeat.cancelled)
        assert heartbeat.reason is None


def test_a_heartbeat_whose_run_was_given_up_ends_the_work(gpuplan: Services) -> None:
    runs = gpuplan.store.runs
    runs.add(a_run("a"))
    runs.end("a", "failed", datetime.now(UTC), progress={}, error={"detail": "silent"})
    with Heartbeat(runs, "a", beat_seconds=0.02) as heartbeat:
        until(heartbeat.cancelled)
        assert heartbeat.reason == "its requester no longer waits for it"


def test_a_beat_that_the_store_does_not_take_is_tried_again(gpuplan: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, refused = gpuplan.store.runs, []
    runs.add(a_run("a"))

    def locked(*_: object) -> str:
        refused.append(1)
        raise StoreFailure("locked")

    with Heartbeat(runs, "a", beat_seconds=0.02) as heartbeat:
        with monkeypatch.context() as broken:
            broken.setattr(runs, "beat", locked)
            until(lambda: len(refused) > 2)
        heartbeat.tell({"seconds": 2})
        until(lambda: runs.one("a", datetime.now(UTC)).progress == {"seconds": 2})
        assert not heartbeat.cancelled()
