"""A refresh that workers share writes what one process would have written, whole or not at all, whatever becomes of them."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from gpuplan.api.jobs.queue.queued_pool import NoWorker
from gpuplan.api.jobs.queue.task_queue import queue_depth
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure, UnusableInput
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.refresh_lock import RefreshRunning
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from gpuplan.providers.contract import Rows
from tests.api.clouds_for_tests import aws, gcp
from tests.api.jobs.queue.conftest import Opens, tasks, work_off
from tests.providers.fake_clouds import TONIGHT, FakeCloud, price, rows

REGIONS = ("us-east-1", "us-west-2", "eu-west-1")


def wide(**answers: Rows | Exception) -> FakeCloud:
    return aws(**{region: rows(price(region)) for region in REGIONS} | answers)


def prices(snapshot: Snapshot) -> list[object]:
    """Every row without the times at which refreshes read them."""
    return [replace(offer, observed_at=TONIGHT, stale_since=None) for offer in snapshot.offers]


def parts_left(gpuplan: Services) -> int:
    with gpuplan.store.engine.connect() as connection:
        return int(connection.execute(sa.text("SELECT count(*) FROM refresh_parts")).scalar_one())


def test_it_writes_what_one_process_writes(open_gpuplan: Opens) -> None:
    alone = open_gpuplan(wide(), gcp())
    expected = wire(alone.refreshes.refresh({}))
    before = alone.store.snapshot(expected["snapshot_id"])
    shared = open_gpuplan(wide(), gcp())
    begun = wire(shared.refreshes.begin_shared({}))
    assert wire(shared.refreshes.report(begun["id"]))["status"] == "running"
    work_off(shared)
    report = wire(shared.refreshes.report(begun["id"]))
    assert (report["status"], report["outcome"]) == ("done", "whole")
    after = shared.store.snapshot(report["snapshot_id"])
    assert shared.store.current_snapshot_id() == after.id != before.id
    assert prices(after) == prices(before)
    assert {provider["provider"]: provider["rows"] for provider in report["providers"]} == {
        provider["provider"]: provider["rows"] for provider in expected["providers"]
    }
    assert report["watches"]["checked"] == 0
    assert (parts_left(shared), shared.runs.one(begun["id"]).status) == (0, "done")
    assert tasks(shared) == ["gpuplan.refresh.write"]  # would have ended it when time is up: nobody has to be at it now
    assert queue_depth(shared.store)["refreshes"] == {"todo": 0, "doing": 0, "failed": 0}


def test_a_region_that_fails_keeps_its_last_rows_marked_stale(open_gpuplan: Opens) -> None:
    open_gpuplan(wide()).refreshes.refresh({"accept_loss": True})
    gpuplan = open_gpuplan(wide(**{"us-west-2": ProviderFailure("the region is on fire")}))
    begun = wire(gpuplan.refreshes.begin_shared({}))
    work_off(gpuplan)
    report = wire(gpuplan.refreshes.report(begun["id"]))
    assert report["outcome"] == "partial"
    assert report["providers"][0]["regions_failed"] == [{"message": "the region is on fire", "regions": ["us-west-2"]}]
    snapshot = gpuplan.store.snapshot(report["snapshot_id"])
    stale = {offer.region for offer in snapshot.offers if offer.provider == "aws" and offer.stale_since is not None}
    assert "us-west-2" in stale
    assert not stale & {"us-east-1", "eu-west-1"}


def test_a_cloud_that_cannot_be_asked_leaves_the_others_whole(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide(), gcp(ProviderFailure("no credentials")))
    begun = wire(gpuplan.refreshes.begin_shared({}))
    work_off(gpuplan)
    report = wire(gpuplan.refreshes.report(begun["id"]))
    assert {provider["provider"]: provider["outcome"] for provider in report["providers"]} == {
        "aws": "whole",
        "gcp": "failed",
    }
    assert report["providers"][1]["failure"] == "no credentials"


def test_progress_is_seen_from_any_process(open_gpuplan: Opens) -> None:
    seen = []

    def look() -> Rows:
        seen.append(wire(open_gpuplan().refreshes.report(begun["id"]))["progress"])
        return rows(price("us-west-2"))

    gpuplan = open_gpuplan(FakeCloud(answers={"us-east-1": rows(price("us-east-1")), "us-west-2": look}))
    begun = wire(gpuplan.refreshes.begin_shared({}))
    work_off(gpuplan)
    assert seen == [{"aws": {"done": 1, "total": 2}}]


def test_no_more_regions_of_a_cloud_are_fetched_at_once_than_it_allows(open_gpuplan: Opens) -> None:
    together = threading.Barrier(2, timeout=60)
    lock, running, most = threading.Lock(), [], []

    def fetch(region: str) -> Callable[[], Rows]:
        def answer() -> Rows:
            with lock:
                running.append(region)
                most.append(len(running))
            together.wait()  # a lane that is left idle would end this test here
            with lock:
                running.remove(region)
            return rows(price(region))

        return answer

    regions = [f"us-east-{number}" for number in range(6)]
    gpuplan = open_gpuplan(FakeCloud(parallel=2, answers={region: fetch(region) for region in regions}))
    begun = wire(gpuplan.refreshes.begin_shared({"accept_loss": True}))
    while wire(gpuplan.refreshes.report(begun["id"]))["status"] == "running":
        work_off(gpuplan, concurrency=6)  # ends as soon as all that is left depends on what goes on
    assert max(most) == 2
    assert wire(gpuplan.refreshes.report(begun["id"]))["providers"][0]["regions_read"] == 6


def test_a_second_refresh_is_refused_while_one_waits_whoever_asks(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide())
    begun = wire(gpuplan.refreshes.begin_shared({}))
    for again in (gpuplan.refreshes.begin_shared, gpuplan.refreshes.refresh):
        with pytest.raises(RefreshRunning, match=rf"another refresh is running \({begun['id']}, by the queue, since "):
            again({})
    work_off(gpuplan)
    gpuplan.refreshes.begin_shared({})


def test_a_refresh_in_one_process_keeps_the_queue_from_beginning_another(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide())
    with gpuplan.store.refreshing(), pytest.raises(RefreshRunning):
        gpuplan.refreshes.begin_shared({})
    assert tasks(gpuplan) == []


def test_nothing_is_queued_where_no_worker_lives_or_the_wish_cannot_be_read(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide())
    with pytest.raises(UnusableInput, match="no cloud is called 'ibm'"):
        gpuplan.refreshes.begin_shared({"provider": ["ibm"]})
    with gpuplan.store.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM gpuplan_queue.procrastinate_workers"))
    with pytest.raises(NoWorker, match="start `gpuplan worker`"):
        gpuplan.refreshes.begin_shared({})
    assert tasks(gpuplan) == []


def test_steps_that_are_done_twice_do_nothing_the_second_time(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide())
    run_id = wire(gpuplan.refreshes.begin_shared({}))["id"]
    steps = gpuplan.refreshes.shared
    for _ in range(2):
        steps.set_out(run_id)
    assert tasks(gpuplan).count("gpuplan.refresh.list") == 1
    for _ in range(2):
        steps.list_regions(run_id, "aws")
    assert tasks(gpuplan).count("gpuplan.refresh.fetch") == len(REGIONS)
    for region in REGIONS * 2:
        steps.fetch(run_id, "aws", region)
    assert tasks(gpuplan).count("gpuplan.refresh.write") == 2  # when all is in, and when time is up
    for _ in range(2):
        steps.write(run_id)
    steps.fetch(run_id, "aws", REGIONS[0])
    assert (parts_left(gpuplan), len([refresh for refresh in gpuplan.store.refreshes() if refresh.id == run_id])) == (
        0,
        1,
    )


def test_what_is_not_read_when_time_is_up_has_failed_and_comes_too_late(open_gpuplan: Opens) -> None:
    gpuplan = open_gpuplan(wide())
    run_id = wire(gpuplan.refreshes.begin_shared({"time_limit_minutes": 1.0}))["id"]
    steps = gpuplan.refreshes.shared
    steps.set_out(run_id)
    steps.list_regions(run_id, "aws")
    steps.fetch(run_id, "aws", "us-east-1")
    steps.write(run_id)
    report = wire(gpuplan.refreshes.report(run_id))
    assert report["outcome"] == "partial"
    assert report["providers"][0]["regions_failed"] == [
        {"message": "not read within 60 seconds", "regions": ["eu-west-1", "us-west-2"]}
    ]
    steps.fetch(run_id, "aws", "us-west-2")
    assert parts_left(gpuplan) == 0
    with gpuplan.store.engine.connect() as connection:
        asked = "SELECT extract(epoch FROM scheduled_at - now()) FROM gpuplan_queue.procrastinate_jobs"
        [seconds] = connection.execute(sa.text(f"{asked} WHERE scheduled_at IS NOT NULL")).scalars()
    assert 0 < seconds <= timedelta(minutes=1).total_seconds()


def test_a_write_that_the_store_refuses_leaves_the_snapshot_and_is_done_later(
    open_gpuplan: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpuplan = open_gpuplan(wide())
    before = gpuplan.store.current_snapshot_id()
    run_id = wire(gpuplan.refreshes.begin_shared({}))["id"]
    with monkeypatch.context() as broken:
        broken.setattr(Store, "record_refresh", _full)
        work_off(gpuplan)
    assert gpuplan.store.current_snapshot_id() == before
    assert (gpuplan.runs.one(run_id).status, parts_left(gpuplan)) == ("running", 1 + len(REGIONS))
    gpuplan.refreshes.shared.write(run_id)
    assert wire(gpuplan.refreshes.report(run_id))["outcome"] == "whole"


def _full(*_: object, **__: object) -> None:
    raise StoreFailure("No space left on device; nothing was written")


def test_a_worker_that_dies_between_the_snapshot_and_the_watches_has_them_told_by_another(
    open_gpuplan: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpuplan = open_gpuplan(wide())
    run_id = wire(gpuplan.refreshes.begin_shared({}))["id"]

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    steps = gpuplan.refreshes.shared
    steps.set_out(run_id)
    steps.list_regions(run_id, "aws")
    for region in REGIONS:
        steps.fetch(run_id, "aws", region)
    with monkeypatch.context() as broken:
        broken.setattr(steps, "_tell", killed)
        with pytest.raises(Killed):
            steps.write(run_id)
    assert wire(gpuplan.refreshes.report(run_id))["watches"] is None
    steps.write(run_id)
    assert wire(gpuplan.refreshes.report(run_id))["watches"]["checked"] == 0


def test_a_bug_in_a_step_ends_the_refresh_with_a_reason(open_gpuplan: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    gpuplan = open_gpuplan(wide())
    run_id = wire(gpuplan.refreshes.begin_shared({}))["id"]
    monkeypatch.setattr("gpuplan.api.jobs.queue.shared_refresh.combined", lambda *_, **__: 1 / 0)
    work_off(gpuplan)
    report = wire(gpuplan.refreshes.report(run_id))
    assert (report["status"], report["error"]) == ("failed", f"gpuplan failed; its log has the cause under {run_id}")
    assert parts_left(gpuplan) == 0
    gpuplan.refreshes.begin_shared({})
