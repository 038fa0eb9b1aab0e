"""Watched jobs are planned on each new snapshot, and each change is told once, to every channel."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import gpuplan.catalog.store.watch_store
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.api.services.plans import PlanService
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.plan import PlanAnswer
from gpuplan.planner.model.wire import wire
from tests.api.notifications.conftest import JOB, Nights, at


def test_nothing_is_told_while_the_plan_stays_as_it_is(nights: Nights) -> None:
    nights.watch()
    assert nights.check()["told"] == []
    nights.prices(at(97.0))
    summary = nights.check()
    assert (summary["checked"], summary["told"], nights.inbox.taken) == (1, [], [])


def test_a_plan_that_got_cheaper_is_told_with_both_costs_and_choices(nights: Nights) -> None:
    watch = nights.watch(name="nightly finetune")
    snapshot_id = nights.prices(at(49.16))
    [notification] = nights.check()["told"]
    [message] = nights.inbox.taken
    data = message["data"]
    assert message["type"] == "watch.cheaper"
    assert (data["watch"], data["job"]) == ({"id": watch["id"], "name": "nightly finetune"}, "llama-3-8b-lora")
    assert data["snapshot_id"] == snapshot_id
    assert data["before"]["cost_usd"] == watch["last_told"]["cost_usd"]
    assert data["change_percent"] == pytest.approx(-50, abs=1)
    assert "p5.48xlarge" in data["after"]["choice"]
    assert notification["summary"] == data["summary"]
    saved = nights.gpuplan.plans.saved_document(data["plan_id"])
    assert saved["plan"]["cost_usd"]["expected"] == data["after"]["cost_usd"]


def test_a_change_is_told_once_and_the_next_counts_from_there(nights: Nights) -> None:
    nights.watch()
    nights.prices(at(49.16))
    nights.check()
    assert nights.check()["told"] == []
    nights.prices(at(48.0))
    assert nights.check()["told"] == []
    nights.prices(at(40.0))
    nights.check()
    assert nights.inbox.events == ["cheaper", "cheaper"]
    assert len(set(nights.inbox.ids)) == 2


def test_a_slow_rise_is_told_once_it_adds_up(nights: Nights) -> None:
    nights.watch()
    for price in (104.0, 107.0, 112.0, 113.0):
        nights.prices(at(price))
        nights.check()
    assert nights.inbox.events == ["dearer"]


def test_an_offer_that_is_gone_is_told_with_what_is_best_now(nights: Nights) -> None:
    nights.watch()
    nights.prices(at(100.0, region="us-west-2"))
    nights.check()
    [message] = nights.inbox.taken
    assert message["data"]["event"] == "offer_gone"
    assert [offer["region"] for offer in message["data"]["offers_gone"]] == ["us-east-1"]
    assert "us-west-2" in message["data"]["after"]["choice"]
    assert "more than" in message["data"]["summary"]


def test_a_stale_offer_is_not_gone(nights: Nights) -> None:
    nights.watch()
    nights.prices(at(98.32, stale_since=nights.now), at(500.0, region="us-west-2"))
    assert nights.check()["told"] == []


@pytest.mark.parametrize("change", [{"partial": ("vcpus",)}, {"available": False}])
def test_an_offer_that_nobody_can_plan_on_any_more_is_gone(nights: Nights, change: dict[str, Any]) -> None:
    nights.watch()
    nights.prices(at(98.32, **change), at(99.0, region="us-west-2"))
    assert [notification["event"] for notification in nights.check()["told"]] == ["offer_gone"]


def test_a_cheaper_plan_elsewhere_is_no_lost_offer(nights: Nights) -> None:
    nights.watch()
    nights.prices(at(98.32), at(60.0, region="eu-west-1"))
    assert [notification["event"] for notification in nights.check()["told"]] == ["cheaper"]


def test_a_job_that_became_impossible_and_then_possible_again_is_told_both_times(nights: Nights) -> None:
    job = JOB | {"budget_usd": 1000}
    nights.watch(job=job)
    nights.prices(at(4000.0))
    nights.check()
    assert nights.check()["told"] == []
    nights.prices(at(98.0))
    nights.check()
    assert nights.inbox.events == ["infeasible", "feasible"]
    assert "in conflict within 4 nodes: budget_usd" in nights.inbox.taken[0]["data"]["summary"]


def test_a_job_that_is_impossible_now_may_be_watched_until_it_is_possible(nights: Nights) -> None:
    watch = nights.watch(job=JOB | {"budget_usd": 1})
    assert watch["last_told"]["outcome"] == "infeasible"
    nights.prices(at(0.5))
    assert [notification["event"] for notification in nights.check()["told"]] == ["feasible"]


def test_a_deadline_that_has_passed_is_told_once_and_the_job_is_not_planned_again(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = nights.now + timedelta(days=3)
    watch = nights.watch(job=JOB | {"deadline": deadline.isoformat()})
    monkeypatch.setattr(PlanService, "plan", lambda *_, **__: pytest.fail("planned after its deadline"))
    assert [notification["event"] for notification in nights.check(now=deadline)["told"]] == ["deadline_passed"]
    after = nights.check(now=deadline + timedelta(days=1))
    assert (after["checked"], after["told"]) == (0, [])
    assert nights.inbox.events == ["deadline_passed"]
    assert nights.one(watch["id"])["state"] == "ended"


def test_a_deadline_that_comes_near_makes_the_job_impossible_on_the_same_prices(nights: Nights) -> None:
    deadline = nights.now + timedelta(days=3)
    nights.watch(job=JOB | {"deadline": deadline.isoformat()})
    assert [e["event"] for e in nights.check(now=deadline - timedelta(minutes=20))["told"]] == ["infeasible"]


def test_a_deadline_that_runs_from_a_stated_start_does_not_move_on(nights: Nights) -> None:
    start = nights.now + timedelta(days=1)
    watch = nights.watch(job=JOB | {"start": start.isoformat(), "deadline": "2d"})
    assert nights.check(now=start + timedelta(days=1))["told"] == []
    assert [e["event"] for e in nights.check(now=start + timedelta(days=2))["told"]] == ["deadline_passed"]
    assert nights.one(watch["id"])["state"] == "ended"


def test_a_deadline_that_runs_from_now_never_passes(nights: Nights) -> None:
    nights.watch()
    assert nights.check(now=nights.now + timedelta(days=300))["told"] == []


def test_a_job_that_cannot_be_planned_is_named_and_stops_no_other(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        nights.watch(name=name)
    # Added at one time, they are planned in the order of their ids.
    broken, odd, fine = nights.watches
    plan, nth = PlanService.plan, iter(range(9))

    def fail(self: PlanService, document: dict[str, Any], **given: Any) -> PlanAnswer:
        match next(nth):
            case 0:
                raise ZeroDivisionError("a defect")
            case 1:
                raise UnusableInput.at("constraints", "regions", message="no such region")
        return plan(self, document, **given)

    nights.prices(at(49.16))
    monkeypatch.setattr(PlanService, "plan", fail)
    summary = nights.check()
    assert [notification["watch"] for notification in summary["told"]] == [fine["name"]]
    assert [(problem["watch"], problem["problem"]) for problem in summary["problems"]] == [
        (broken["name"], "ZeroDivisionError: a defect"),
        (odd["name"], "constraints.regions: no such region"),
    ]
    assert nights.one(broken["id"])["problem"] == "ZeroDivisionError: a defect"
    monkeypatch.undo()
    assert nights.one(odd["id"])["checked_at"] == wire(nights.now)


def test_a_problem_that_is_gone_is_forgotten_and_its_change_is_told_then(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = nights.watch()
    nights.prices(at(49.16))
    with monkeypatch.context() as patched:
        patched.setattr(PlanService, "plan", lambda *_, **__: 1 / 0)
        assert nights.check()["problems"]
    assert [notification["event"] for notification in nights.check()["told"]] == ["cheaper"]
    assert nights.one(watch["id"])["problem"] is None


def test_a_check_that_dies_while_it_writes_has_told_nothing_and_the_next_tells_it(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.watch(channels=["ops", "team"])
    nights.prices(at(49.16))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(gpuplan.catalog.store.watch_store, "write_notification", full)
        with pytest.raises(StoreFailure, match="No space left"):
            nights.check()
    assert nights.gpuplan.store.watching.waiting() == ()
    assert [notification["event"] for notification in nights.check()["told"]] == ["cheaper"]
    assert len(nights.inbox.taken) == 2


def test_of_two_checks_at_once_one_tells(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.watch()
    nights.prices(at(49.16))
    read = nights.gpuplan.store.watching.every()
    nights.check()
    monkeypatch.setattr(nights.gpuplan.store.watching, "every", lambda: read)
    assert nights.check()["told"] == []
    assert len(nights.inbox.taken) == 1


def test_only_plans_that_are_told_of_are_saved(nights: Nights) -> None:
    nights.watch()

    def count() -> int:
        with closing(sqlite3.connect(nights.url.removeprefix("sqlite:///"))) as raw:
            return int(raw.execute("SELECT count(*) FROM plans").fetchone()[0])

    assert count() == 1
    nights.prices(at(98.0))
    nights.check()
    assert count() == 1
    nights.prices(at(49.16))
    nights.check()
    assert count() == 2


def test_own_runs_count_in_a_watch_as_in_any_plan(nights: Nights) -> None:
    watch = nights.watch()
    plan = nights.gpuplan.plans.saved_document(watch["last_told"]["plan_id"])["plan"]
    slower = plan["phases"][0]["throughput"]["value"] / 2
    nights.gpuplan.actuals.report(plan["id"], {"throughput": slower})
    assert [notification["event"] for notification in nights.check()["told"]] == ["dearer"]


def test_an_own_machine_that_left_the_inventory_is_gone(nights: Nights, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yaml"
    machine = {
        "name": "rig",
        "accelerator": "H100-80GB-SXM",
        "count": 8,
        "usd_per_hour": 1,
        "electricity_usd_per_kwh": 0.1,
    }
    inventory.write_text(json.dumps({"machines": [machine]}))
    owner = open_services(Environment(database_url=nights.url, settings=nights.settings, inventory=inventory))
    with_it = Nights(owner, nights.inbox, nights.url, nights.settings, night=nights.night)
    assert with_it.watch()["last_told"]["offers"][0]["price_kind"] == "owned"
    assert with_it.check(now=nights.now)["told"] == []
    owner.store.close()
    assert [notification["event"] for notification in nights.check()["told"]] == ["offer_gone"]


def test_the_same_watch_twice_is_one_and_another_threshold_is_another(nights: Nights) -> None:
    first = nights.watch()
    assert nights.watch()["id"] == first["id"]
    nights.watch(cheaper_by_percent=20)
    assert len(nights.watches) == 2


def test_a_removed_watch_takes_what_it_had_to_say_along(nights: Nights) -> None:
    watch = nights.watch()
    nights.prices(at(49.16))
    nights.gpuplan.watches.forget(watch["id"])
    assert nights.check()["checked"] == 0
    assert nights.inbox.taken == []
    with pytest.raises(NotStored, match="no watch"):
        nights.gpuplan.watches.one(watch["id"])
    with pytest.raises(NotStored):
        nights.gpuplan.watches.forget("watch-0")


def test_a_watch_added_again_tells_under_new_ids(nights: Nights) -> None:
    first = nights.watch()
    nights.prices(at(49.16))
    nights.check()
    nights.gpuplan.watches.forget(first["id"])
    nights.night = 1
    again = nights.watch()
    assert again["id"] == first["id"]
    nights.prices(at(20.0))
    nights.check()
    assert len(set(nights.inbox.ids)) == len(nights.inbox.ids) == 2


def test_an_unknown_channel_is_refused_with_those_there_are(nights: Nights) -> None:
    with pytest.raises(UnusableInput, match=r"no channel 'nobody' is in the settings file; accepted: ops, team"):
        nights.watch(channels=["ops", "nobody"])
    assert nights.watches == []


def test_a_channel_without_its_variable_is_warned_of_and_waits_for_it(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.delenv("OPS_SECRET")
        watch = nights.watch()
        assert ["OPS_SECRET: it is not set" in warning for warning in watch["warnings"]] == [True]
        nights.prices(at(49.16))
        [failed] = nights.check()["deliveries"]["failed"]
        assert "OPS_SECRET" in failed["error"]
        assert failed["final"] is False
    assert nights.check()["deliveries"]["sent"] == 1
    assert nights.inbox.events == ["cheaper"]


def test_the_number_of_watches_is_bounded(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.api.notifications.watch_records.MOST_WATCHES", 1)
    nights.watch()
    with pytest.raises(UnusableInput, match="1 jobs are watched, the maximum"):
        nights.watch(name="another")
