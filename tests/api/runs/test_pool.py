"""Runs in threads: in turn, cancelled in turn too, bounded, and always ended in the store."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from api.app import Gpuplan
from api.runs.execute import KINDS, execute
from api.runs.pool import Busy, Pool
from api.runs.pulse import Pulse
from catalog.errors import StoreFailure, UnusableInput
from catalog.run_store import RunStore
from catalog.runs import Run
from tests.patience import until


@pytest.fixture(autouse=True)
def no_runs_left(gpuplan: Gpuplan) -> Iterator[None]:
    yield
    with gpuplan.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM runs")


def a_run(run_id: str, kind: str = "gated") -> Run:
    now = datetime.now(UTC)
    return Run(id=run_id, kind=kind, status="queued", request={}, created_at=now, beat_at=now)


class Gate:
    """Work that ends when it may, or when it is cancelled; remembers in which order it began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = threading.Event()

    def work(self, _: Gpuplan, run: Run, pulse: Pulse) -> dict[str, Any]:
        self.begun.append(run.id)
        pulse.tell({"at": "the gate"})
        while not self.go_on.wait(0.02) and not pulse.cancelled():
            pass
        return {"of": run.id}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    monkeypatch.setitem(KINDS, "gated", made.work)
    yield made
    made.go_on.set()


@pytest.fixture
def pool(gpuplan: Gpuplan) -> Iterator[Pool]:
    made = Pool(lambda pulse: execute(gpuplan, pulse), at_once=1, waiting=1)
    yield made
    made.stop()


def ended(pool: Pool, gpuplan: Gpuplan, run_id: str) -> Run:
    if (future := pool.ended(run_id)) is not None:
        future.result(60)
    return gpuplan.store.runs.one(run_id, datetime.now(UTC))


def test_runs_take_turns_and_each_keeps_its_answer(gpuplan: Gpuplan, pool: Pool, gate: Gate) -> None:
    runs = gpuplan.store.runs
    pool.start(runs, a_run("a"))
    until(lambda: gate.begun == ["a"])
    pool.start(runs, a_run("b"))
    assert [runs.one(each, datetime.now(UTC)).status for each in "ab"] == ["running", "queued"]
    gate.go_on.set()
    for name in "ab":
        found = ended(pool, gpuplan, name)
        assert (found.status, found.answer, found.progress) == ("done", {"of": name}, {"at": "the gate"})
    assert gate.begun == ["a", "b"]


def test_more_runs_than_may_wait_are_refused_and_leave_nothing(gpuplan: Gpuplan, pool: Pool, gate: Gate) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
    with pytest.raises(Busy, match="2 runs are under way or wait"):
        pool.start(gpuplan.store.runs, a_run("c"))
    with pytest.raises(UnusableInput, match="no run 'c'"):
        gpuplan.store.runs.one("c", datetime.now(UTC))
    gate.go_on.set()
    ended(pool, gpuplan, "b")
    until(lambda: pool.ended("a") is None)
    pool.start(gpuplan.store.runs, a_run("c"))
    assert ended(pool, gpuplan, "c").status == "done"


def test_a_run_that_is_cancelled_while_it_waits_never_begins(gpuplan: Gpuplan, pool: Pool, gate: Gate) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
        until(lambda: gate.begun)
    waiting = pool.pulse("b")
    assert waiting is not None
    waiting.cancel()
    found = ended(pool, gpuplan, "b")
    assert (found.status, found.answer, found.started_at, found.error) == ("cancelled", None, None, None)
    assert gate.begun == ["a"]


def test_a_run_that_is_cancelled_keeps_what_it_found(gpuplan: Gpuplan, pool: Pool, gate: Gate) -> None:
    pool.start(gpuplan.store.runs, a_run("a"))
    until(lambda: gate.begun)
    running = pool.pulse("a")
    assert running is not None
    running.cancel()
    assert (ended(pool, gpuplan, "a").status, ended(pool, gpuplan, "a").answer) == ("cancelled", {"of": "a"})


def test_a_pool_that_stops_ends_its_runs_and_says_why(gpuplan: Gpuplan, pool: Pool, gate: Gate) -> None:
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
        until(lambda: gate.begun)
    pool.stop()
    found = [gpuplan.store.runs.one(each, datetime.now(UTC)) for each in "ab"]
    assert [each.status for each in found] == ["cancelled", "cancelled"]
    assert [each.answer for each in found] == [{"of": "a"}, None]
    assert {str(each.error) for each in found} == {"{'detail': 'the service was stopped'}"}


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
        (ZeroDivisionError("secret"), {"status": 500, "detail": "gpuplan failed; its log says why under a"}),
    ],
)
def test_a_run_that_fails_says_why_and_only_the_log_knows_of_bugs(
    gpuplan: Gpuplan, pool: Pool, monkeypatch: pytest.MonkeyPatch, raised: Exception, error: dict[str, Any]
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise raised

    monkeypatch.setitem(KINDS, "gated", fail)
    pool.start(gpuplan.store.runs, a_run("a"))
    found = ended(pool, gpuplan, "a")
    assert (found.status, found.answer, found.error) == ("failed", None, error)


def test_a_kind_of_run_that_this_release_does_not_know_fails(gpuplan: Gpuplan, pool: Pool) -> None:
    pool.start(gpuplan.store.runs, a_run("a", kind="of tomorrow"))
    assert ended(pool, gpuplan, "a").status == "failed"


def test_a_run_that_cannot_be_kept_takes_no_place(
    gpuplan: Gpuplan, pool: Pool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("the disk is full")

    runs = gpuplan.store.runs
    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "add", full)
        for _ in range(3):
            with pytest.raises(StoreFailure, match="disk"):
                pool.start(runs, a_run("a"))
    gate.go_on.set()
    pool.start(runs, a_run("a"))
    assert ended(pool, gpuplan, "a").status == "done"


def test_an_end_that_cannot_be_written_frees_the_place_all_the_same(
    gpuplan: Gpuplan, pool: Pool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> bool:
        raise StoreFailure("the disk is full")

    gate.go_on.set()
    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "end", full)
        pool.start(gpuplan.store.runs, a_run("a"))
        until(lambda: pool.ended("a") is None)
    assert gpuplan.store.runs.one("a", datetime.now(UTC)).status == "running"
    pool.start(gpuplan.store.runs, a_run("b"))
    assert ended(pool, gpuplan, "b").status == "done"


def test_a_pulse_writes_progress_and_hears_of_a_cancel_in_the_store(gpuplan: Gpuplan) -> None:
    runs = gpuplan.store.runs
    runs.add(a_run("a"))
    with Pulse(runs, "a", beat_seconds=0.02) as pulse:
        pulse.tell({"seconds": 1})
        until(lambda: runs.one("a", datetime.now(UTC)).progress == {"seconds": 1})
        assert not pulse.cancelled()
        runs.ask_cancel("a")
        until(pulse.cancelled)
        assert pulse.reason is None


def test_a_pulse_whose_run_was_given_up_ends_the_work(gpuplan: Gpuplan) -> None:
    runs = gpuplan.store.runs
    runs.add(a_run("a"))
    runs.end("a", "failed", datetime.now(UTC), progress={}, error={"detail": "silent"})
    with Pulse(runs, "a", beat_seconds=0.02) as pulse:
        until(pulse.cancelled)
        assert pulse.reason == "nobody waits for it any more"


def test_a_beat_that_the_store_does_not_take_is_tried_again(gpuplan: Gpuplan, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, refused = gpuplan.store.runs, []
    runs.add(a_run("a"))

    def locked(*_: object) -> str:
        refused.append(1)
        raise StoreFailure("locked")

    with Pulse(runs, "a", beat_seconds=0.02) as pulse:
        with monkeypatch.context() as broken:
            broken.setattr(runs, "beat", locked)
            until(lambda: len(refused) > 2)
        pulse.tell({"seconds": 2})
        until(lambda: runs.one("a", datetime.now(UTC)).progress == {"seconds": 2})
        assert not pulse.cancelled()
