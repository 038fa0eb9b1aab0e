"""The queue on PostgreSQL: its tables, what is put in with what else is written, and what is found again."""

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from procrastinate.testing import InMemoryConnector

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.queue.queue_maintenance import give_tasks
from gpuplan.api.jobs.queue.queue_names import NIGHTLY
from gpuplan.api.jobs.queue.queue_schema import drop_queue, migration_names, missing, require_queue, upgrade_queue
from gpuplan.api.jobs.queue.queue_tasks import MOST_ATTEMPTS, execute_queued, rescue_cron, tasks_of
from gpuplan.api.jobs.queue.queue_worker import beat_seconds, check_cron, check_queues
from gpuplan.api.jobs.queue.queued_pool import QueuedPool
from gpuplan.api.jobs.queue.task_queue import ALIVE_SECONDS, Queue, job, queue_depth
from gpuplan.api.jobs.run_document import ANSWERS_AT
from gpuplan.api.jobs.run_execution import KINDS
from gpuplan.api.jobs.thread_pool import Busy
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.run_store import Run
from tests.api.clouds_for_tests import aws
from tests.api.jobs.queue.conftest import Opens, tasks, work_off


def a_run(run_id: str, kind: str = "quick") -> Run:
    now = datetime.now(UTC)
    return Run(id=run_id, kind=kind, status="queued", request={}, created_at=now, beat_at=now)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of quick runs, in the order in which they are done."""
    finished: list[str] = []

    def quick(_: Services, run: Run, heartbeat: Heartbeat) -> dict[str, Any]:
        finished.append(run.id)
        return {"of": run.id}

    monkeypatch.setitem(KINDS, "quick", quick)
    monkeypatch.setitem(ANSWERS_AT, "quick", "/v1/quick/{}")
    return finished


def test_runs_are_done_by_a_worker_and_whoever_waits_for_them_is_told(gpuplan: Services, done: list[str]) -> None:
    pool = QueuedPool(gpuplan.store)
    for name in "ab":
        pool.start(gpuplan.store.runs, a_run(name))
    waiting = pool.ended("a")
    assert waiting is not None
    assert not waiting.done()
    assert queue_depth(gpuplan.store)["runs"] == {"todo": 2, "doing": 0, "failed": 0}
    work_off(gpuplan)
    waiting.result(10)
    assert done == ["a", "b"]
    assert [gpuplan.runs.one(name).answer for name in "ab"] == [{"of": "a"}, {"of": "b"}]
    assert (pool.ended("a"), pool.heartbeat("a")) == (None, None)
    assert queue_depth(gpuplan.store)["runs"] == {"todo": 0, "doing": 0, "failed": 0}
    pool.stop()


def test_a_run_that_is_cancelled_while_it_waits_never_begins(gpuplan: Services, done: list[str]) -> None:
    pool = QueuedPool(gpuplan.store)
    pool.start(gpuplan.store.runs, a_run("a"))
    pool.cancel("a")
    work_off(gpuplan)
    assert (gpuplan.runs.one("a").status, done) == ("cancelled", [])


def test_more_than_may_wait_are_refused_and_leave_nothing(gpuplan: Services) -> None:
    pool = QueuedPool(gpuplan.store, waiting=1)
    pool.start(gpuplan.store.runs, a_run("a"))
    with pytest.raises(Busy, match="1 runs are already waiting"):
        pool.start(gpuplan.store.runs, a_run("b"))
    with pytest.raises(UnusableInput, match="no run 'b'"):
        gpuplan.runs.one("b")


def test_a_service_that_stops_keeps_nobody_waiting(gpuplan: Services) -> None:
    pool = QueuedPool(gpuplan.store)
    pool.start(gpuplan.store.runs, a_run("a"))
    waiting = pool.ended("a")
    pool.stop()
    assert waiting is not None
    waiting.result(5)
    assert gpuplan.runs.one("a").status == "queued"


def test_a_run_whose_task_is_gone_gets_a_new_one_once(gpuplan: Services, done: list[str]) -> None:
    QueuedPool(gpuplan.store).start(gpuplan.store.runs, a_run("a"))
    with gpuplan.store.engine.begin() as connection:
        connection.execute(sa.text("TRUNCATE gpuplan_queue.procrastinate_jobs CASCADE"))
    for _ in range(2):
        give_tasks(gpuplan)
    assert tasks(gpuplan) == ["gpuplan.run"]
    work_off(gpuplan)
    assert done == ["a"]


def test_a_run_that_its_workers_do_not_survive_is_given_up(gpuplan: Services, done: list[str]) -> None:
    QueuedPool(gpuplan.store).start(gpuplan.store.runs, a_run("a"))
    for _ in range(MOST_ATTEMPTS):
        gpuplan.store.runs.take("a", datetime.now(UTC))
    work_off(gpuplan)
    run = gpuplan.runs.one("a")
    assert (run.status, done) == ("failed", [])
    assert run.error is not None
    assert "its worker died 5 times" in run.error.detail


def test_a_run_that_fails_in_the_store_is_tried_again(
    gpuplan: Services, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> bool:
        raise StoreFailure("No space left on device")

    QueuedPool(gpuplan.store).start(gpuplan.store.runs, a_run("a"))
    with monkeypatch.context() as broken:
        broken.setattr(type(gpuplan.store.runs), "end", full)
        work_off(gpuplan)
    assert (gpuplan.runs.one("a").status, tasks(gpuplan)) == ("running", ["gpuplan.run"])
    assert execute_queued(gpuplan, "a", interrupted=lambda: False)
    assert (gpuplan.runs.one("a").status, done) == ("done", ["a", "a"])


def test_a_run_is_put_back_when_its_process_ends(gpuplan: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Event()

    def slow(_: Services, run: Run, heartbeat: Heartbeat) -> dict[str, Any]:
        ends.set()
        assert heartbeat.cancelled()
        return {}

    monkeypatch.setitem(KINDS, "slow", slow)
    QueuedPool(gpuplan.store).start(gpuplan.store.runs, a_run("a", "slow"))
    assert not execute_queued(gpuplan, "a", interrupted=ends.is_set)
    assert gpuplan.runs.one("a").status == "queued"


def test_a_task_is_put_in_only_with_what_is_written_beside_it(gpuplan: Services) -> None:
    queue = Queue(gpuplan.store)

    def put_in_and_fail() -> None:
        with queue.writing() as tx:
            queue.defer(tx, job("gpuplan.run", "runs", run_id="a"))
            assert tx.execute(sa.text("SELECT count(*) FROM runs")).scalar_one() == 0  # where our tables are as before
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        put_in_and_fail()
    assert tasks(gpuplan) == []


def test_of_tasks_that_wait_under_one_lock_there_is_one(gpuplan: Services) -> None:
    queue = Queue(gpuplan.store)
    one = job("gpuplan.run", "runs", queueing_lock="x", run_id="a")
    with queue.writing() as tx:
        assert [queue.defer_deduplicated(tx, one), queue.defer_deduplicated(tx, one)] == [True, False]
        assert tx.execute(sa.text("SELECT count(*) FROM runs")).scalar_one() == 0
    assert tasks(gpuplan) == ["gpuplan.run"]


def test_the_tables_are_made_once_and_an_earlier_procrastinates_are_brought_up_to_date(gpuplan: Services) -> None:
    store = gpuplan.store
    assert (upgrade_queue(store), missing(store)) == ((), ())
    drop_queue(store)
    with pytest.raises(StoreFailure, match="run gpuplan db upgrade"):
        require_queue(store)
    made: list[tuple[str, ...]] = []
    together = [threading.Thread(target=lambda: made.append(upgrade_queue(store))) for _ in range(3)]
    for process in together:
        process.start()
    for process in together:
        process.join()
    assert sorted(made) == [(), (), migration_names()]
    require_queue(store)
    last = migration_names()[-1]
    with store.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM gpuplan_queue.gpuplan_applied WHERE name = :name"), {"name": last})
        connection.execute(sa.text("DROP FUNCTION gpuplan_queue.procrastinate_retry_job_v1 CASCADE"))
    assert missing(store) == (last,)


@pytest.mark.parametrize("cron", ["tonight", "61 * * * *", "", "* * * *\n*"])
def test_a_schedule_that_is_none_is_refused(cron: str) -> None:
    with pytest.raises(UnusableInput, match=r"GPUPLAN_REFRESH_CRON: .*accepted: five fields"):
        check_cron(cron)


def test_a_schedule_and_queues_that_are_known_are_taken() -> None:
    check_cron("17 3 * * *")
    check_cron(None)
    check_queues(("runs",))
    with pytest.raises(UnusableInput, match="queues: there is no queue 'fast'; accepted: runs, refreshes, keeping"):
        check_queues(("fast",))


@pytest.mark.parametrize(("stalled", "every"), [(1, 1), (4, 1), (12, 4), (30, 10), (3600, 10)])
def test_dead_workers_are_looked_for_as_often_as_they_are_to_be_found(stalled: float, every: int) -> None:
    assert rescue_cron(stalled) == f"* * * * * */{every}"


@pytest.mark.parametrize(("stalled", "every"), [(3, 1), (30, 10), (3600, 20)])
def test_a_worker_that_may_be_silent_for_long_is_still_known_to_live(stalled: float, every: float) -> None:
    assert beat_seconds(stalled) == every < ALIVE_SECONDS


def test_a_refresh_is_begun_at_its_hour_and_not_while_another_goes_on(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(aws())
    app = tasks_of(gpuplan, InMemoryConnector(), refresh_cron="17 3 * * *", stalled_seconds=30)
    [nightly] = [
        periodic_task
        for periodic_task in app.periodic_registry.periodic_tasks.values()
        if periodic_task.task.name == NIGHTLY
    ]
    assert nightly.cron == "17 3 * * *"
    for _ in range(2):
        nightly.task(timestamp=0)
    assert tasks(gpuplan) == ["gpuplan.refresh.begin"]
