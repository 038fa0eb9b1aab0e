"""Watches that wait for machines: told when a cloud gives them as wanted, and when it does no more."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.cli.main import main
from gpuplan.api.http.http_service import create_service
from gpuplan.api.presentation.watches import render_added, render_check, render_watch, render_watches
from gpuplan.api.schemas.watch_answers import WatchCheck
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.capacity import capacity_queries
from tests.api.http.test_answer_schemas import exact
from tests.api.notifications.conftest import START, Nights, json_of
from tests.catalog.snapshots_for_tests import t4_on_spot
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import DENIED, AzureCapacityCloud
from tests.clouds.server import answering

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
SIZE = "Standard_NC4as_T4_v3"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCapacityCloud]:
    cloud = AzureCapacityCloud(score="Low", scores={(SIZE, "westus2"): "High"})
    monkeypatch.setattr(capacity_queries, "LIMIT_SECONDS", 60.0)
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_AZURE_ARM_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        yield cloud


@pytest.fixture
def waiting(cloud: AzureCapacityCloud, nights: Nights) -> Nights:
    nights.gpuplan.store.put_snapshot(t4_on_spot(START), source="refresh")
    return nights


def wait_for(nights: Nights, **wanted: Any) -> dict[str, Any]:
    document = {"machine": SIZE, "region": ["eastus", "westus2"], "nodes": 2, "channels": ["ops"]} | wanted
    return json_of(nights.gpuplan.watches.add(document, now=nights.now))


def check(nights: Nights, hours: float) -> WatchCheck:
    services, now = nights.gpuplan, nights.now + timedelta(hours=hours)
    return services.watches.check(now=now, capacity_only=True)


def test_a_channel_is_told_when_machines_can_be_obtained_and_when_no_longer(
    waiting: Nights, cloud: AzureCapacityCloud
) -> None:
    cloud.scores.clear()
    added = wait_for(waiting)
    assert (added["name"], added["last_told"]["outcome"]) == (f"2 x {SIZE}, spot", "not_obtainable")
    assert (added["last_told"]["chance"], added["capacity"]["least_chance"]) == (0.15, 0.7)
    assert not check(waiting, 1).told
    cloud.scores[SIZE, "westus2"] = "High"
    [change] = check(waiting, 2).told
    assert change.event == "obtainable"
    for part in ("can be obtained now", "azure westus2", "chance 0.85", "High", "per node-hour", "0.7 or more"):
        assert part in change.summary
    assert not check(waiting, 3).told
    cloud.scores.clear()
    assert [row.event for row in check(waiting, 4).told] == ["not_obtainable"]
    assert waiting.inbox.events == ["obtainable", "not_obtainable"]
    watch, watches = waiting.gpuplan.watches.one(added["id"]), waiting.gpuplan.watches.listed()
    one = exact("Watch", json_of(watch))
    assert [row["event"] for row in one["notifications"]] == ["not_obtainable", "obtainable"]
    exact("Watches", json_of(watches))
    for shown in (render_added(watch), render_watch(watch)):
        assert "a chance of 0.7 or more" in str(shown)
    assert "chance 0.15" in str(render_watches(watches))


def test_a_place_above_the_price_does_not_count(waiting: Nights, cloud: AzureCapacityCloud) -> None:
    anywhere = wait_for(waiting)
    assert anywhere["last_told"]["choice"] == f"2 x {SIZE} in azure westus2, spot"
    dear = wait_for(waiting, under_usd_per_node_hour="$0.01")
    assert dear["last_told"] == {name: anywhere["last_told"][name] for name in ("snapshot_id", "at")} | {
        "outcome": "not_obtainable"
    }
    assert anywhere["id"] != dear["id"]
    exactly = wait_for(waiting, under_usd_per_node_hour=anywhere["last_told"]["usd_per_node_hour"])
    assert exactly["last_told"]["outcome"] == "obtainable"


def test_machines_without_quota_cannot_be_obtained(waiting: Nights, cloud: AzureCapacityCloud) -> None:
    cloud.quota = False
    assert wait_for(waiting)["last_told"]["outcome"] == "not_obtainable"


def test_a_cloud_that_tells_nothing_is_a_problem_and_no_news(waiting: Nights, cloud: AzureCapacityCloud) -> None:
    wait_for(waiting)
    cloud.break_with(answering(403, DENIED))
    checked = check(waiting, 1)
    assert not checked.told
    [problem] = checked.problems
    assert "not learned: azure" in problem.problem
    assert "not learned" in str(render_check(checked))
    added = wait_for(waiting, nodes=3)
    assert added["last_told"]["outcome"] == "not_obtainable"
    assert any("not learned: azure" in warning for warning in added["warnings"])
    cloud.faults.clear()
    later = check(waiting, 2)
    assert not later.problems
    assert [row.watch_id for row in later.told] == [added["id"]]


def test_the_pages_of_plans_show_watched_machines_too(waiting: Nights, served: Served) -> None:
    machines, plan_id = wait_for(waiting), waiting.watch()["last_told"]["plan_id"]
    with served(create_service(waiting.gpuplan)) as client:
        assert "a chance of 0.7 or more, at any price" in client.get("/plans").text
        assert client.get(f"/plans/{plan_id}?watching={machines['id']}").status_code == 200


@pytest.mark.parametrize(
    ("wanted", "field"),
    [({"machine": "p9.huge"}, "machine"), ({"region": ["mars"]}, "region"), ({"kind": "flex_start"}, "kind")],
)
def test_machines_that_have_no_price_cannot_be_waited_for(waiting: Nights, wanted: dict[str, Any], field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        wait_for(waiting, **({"region": []} | wanted))
    assert [fault.field for fault in refused.value.faults] == [field]


def test_the_command_waits_for_machines_too(
    waiting: Nights, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", waiting.url)
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(waiting.settings))
    wanted = ("--machine", SIZE, "--nodes", "2", "--at-least", "0.8", "--under", "1", "--channel", "team")
    assert main(["watch", "capacity", *wanted]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Watching 2 x {SIZE}, spot as watch-" in shown
    assert "a chance of 0.8 or more, at most $1.00 per node-hour" in shown
    assert main(["watch", "check", "--capacity"]) == 0
    assert "1 watch" in capsys.readouterr().out
    assert main(["watch", "capacity", "--machine", SIZE, "--at-least", "2", "--channel", "team"]) == 2
    assert "least_chance" in capsys.readouterr().err
