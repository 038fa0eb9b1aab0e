"""Readiness: broken is 503, stale is an answer with its reason, stopping comes first, and probes cost nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from starlette.types import ASGIApp

from api.app import Gpuplan
from api.http.service import create_service
from api.settings import Environment
from api.telemetry import health
from api.telemetry.health import Health
from api.telemetry.store_figures import StoreFigures
from catalog.figures import ProviderPrices
from catalog.refreshes import RefreshRecord
from catalog.snapshot import snapshot_of

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
FOR_EVER = 1e9


def health_of(gpuplan: Gpuplan, *, stale_after_hours: float = FOR_EVER) -> Health:
    return Health(gpuplan, StoreFigures(gpuplan), stale_after_hours=stale_after_hours)


@pytest.fixture
def own(own_store: str) -> Gpuplan:
    """A store of this test's own."""
    return Gpuplan(Environment(database_url=own_store))


def test_everything_fresh_is_ready(gpuplan: Gpuplan) -> None:
    said = health_of(gpuplan).report()
    assert (said["status"], said["why"]) == ("ready", [])
    assert {name: each["status"] for name, each in said["checks"].items()} == dict.fromkeys(
        ("database", "migrations", "snapshot", "prices", "refreshes", "queue"), "ok"
    )


def test_old_prices_are_stale_and_answered_from(gpuplan: Gpuplan) -> None:
    said = health_of(gpuplan, stale_after_hours=0.01).report()
    assert said["status"] == "degraded"
    assert "gpuplan refresh" in said["why"][0]
    assert set(said["checks"]["prices"]["providers"]) == {"aws", "gcp", "azure"}
    assert said["checks"]["database"]["status"] == "ok"


def test_one_provider_is_enough_to_be_stale(gpuplan: Gpuplan, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)

    def prices(name: str, age: timedelta, stale: int) -> ProviderPrices:
        return ProviderPrices(provider=name, offers=10, stale=stale, oldest_at=now - age, newest_at=now - age)

    rows = (
        prices("aws", timedelta(hours=1), 0),
        prices("gcp", timedelta(hours=50), 0),
        prices("azure", timedelta(0), 6),
    )
    monkeypatch.setattr(StoreFigures, "prices", lambda _: rows)
    said = health_of(gpuplan, stale_after_hours=49).report()
    assert said["status"] == "degraded"
    assert "gcp 50 hours" in said["why"][0]
    assert "aws" not in said["why"][0]
    assert "azure 6 of 10" in said["why"][1]


def refreshed(gpuplan: Gpuplan, **outcomes: str) -> None:
    """A refresh of these clouds that ended just now, and whose rows are dated the same."""
    at = datetime.now(UTC)
    store = gpuplan.store
    held = store.snapshot(store.current_snapshot_id())
    rows = [
        replace(each, observed_at=at, stale_since=None)
        if outcomes.get(each.provider) == "whole"
        else replace(each, stale_since=each.stale_since or at)
        if each.provider in outcomes
        else each
        for each in held.offers
    ]
    report = {
        "asked": list(outcomes),
        "providers": [{"provider": name, "outcome": outcome} for name, outcome in outcomes.items()],
    }
    whole = set(outcomes.values()) == {"whole"}
    record = RefreshRecord(
        id=f"r{at.isoformat()}",
        started_at=at,
        finished_at=at,
        outcome="whole" if whole else "partial",
        snapshot_id=None,
        report=report,
    )
    store.record_refresh(record, snapshot_of(held.instance_types, rows))


def test_a_whole_refresh_of_the_clouds_that_are_asked_is_ready_whatever_is_left_out(own: Gpuplan) -> None:
    assert health_of(own, stale_after_hours=49).report()["status"] == "degraded", "nothing was ever read"
    refreshed(own, aws="whole", azure="whole", gcp="failed")
    said = health_of(own, stale_after_hours=49).report()
    assert said["status"] == "degraded"
    assert "gcp" in said["why"][0]
    refreshed(own, aws="whole", azure="whole")
    said = health_of(own, stale_after_hours=49).report()
    assert (said["status"], said["why"]) == ("ready", [])
    assert said["checks"]["prices"]["left_out"] == ["gcp"]
    [ages] = [each for each in StoreFigures(own).collect() if each.name == "gpuplan_price_age_seconds"]
    assert {sample.labels["provider"] for sample in ages.samples} == {"aws", "azure"}


def test_a_cloud_that_was_read_once_is_never_left_out(own: Gpuplan) -> None:
    refreshed(own, aws="whole", azure="whole", gcp="whole")
    refreshed(own, aws="whole", azure="whole")
    said = health_of(own, stale_after_hours=-1).report()
    assert "gcp" in said["why"][0]


def test_what_a_whole_refresh_cannot_confirm_does_not_degrade_the_service(own: Gpuplan) -> None:
    refreshed(own, aws="whole", azure="whole", gcp="whole")
    refreshed(own, aws="whole", azure="whole", gcp="partial")
    assert "gcp" in health_of(own).report()["why"][0]
    record = own.store.last_refresh()
    assert record is not None
    told = {"asked": ["gcp"], "providers": [{"provider": "gcp", "outcome": "whole"}]}
    own.store.rewrite_report(record.id, told)
    assert health_of(own).report()["status"] == "ready"


def test_two_nights_that_left_something_out_are_a_fault_and_one_is_not(own: Gpuplan) -> None:
    def night(number: int, outcome: str) -> None:
        at = datetime(2026, 11, number, tzinfo=UTC)
        own.store.record_refresh(
            RefreshRecord(id=f"r{number}", started_at=at, finished_at=at, outcome=outcome, snapshot_id=None, report={}),
            None,
        )

    checks = [("whole", "ok"), ("partial", "ok"), ("failed", "stale"), ("whole", "ok")]
    for number, (outcome, status) in enumerate(checks, start=1):
        night(number, outcome)
        assert health_of(own).report()["checks"]["refreshes"]["status"] == status


@pytest.mark.parametrize(("waiting", "workers", "status"), [(0, 0, "ok"), (3, 1, "ok"), (3, 0, "stale")])
def test_work_that_waits_for_nobody_is_told(
    gpuplan: Gpuplan, monkeypatch: pytest.MonkeyPatch, waiting: int, workers: int, status: str
) -> None:
    monkeypatch.setattr(StoreFigures, "queue", lambda _: {"runs": {"todo": waiting, "doing": 0}})
    monkeypatch.setattr(StoreFigures, "workers", lambda _: workers)
    said = health_of(gpuplan).report()
    assert said["checks"]["queue"]["status"] == status
    assert ("gpuplan worker" in " ".join(said["why"])) == (status == "stale")


def test_tables_of_another_release_are_broken(own: Gpuplan) -> None:
    with own.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    said = health_of(own).report()
    assert said["status"] == "broken"
    assert "revision 0001" in said["why"][0]


def test_tables_of_a_release_that_takes_over_are_good_as_long_as_this_one_works_on_them(own: Gpuplan) -> None:
    with own.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    assert health_of(own).report()["status"] != "broken"
    with own.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE compatible_since SET revision = '9998'"))
    assert health_of(own).report()["status"] == "broken"


def test_a_store_that_goes_and_comes_back_is_told_both_times(own: Gpuplan, tmp_path: Path, served: Served) -> None:
    path = tmp_path / "gpuplan.sqlite3"
    service = create_service(own)
    with served(service) as client:
        assert client.get("/readyz").status_code == 200
        path.rename(tmp_path / "away")
        service.state.health._until = 0
        response = client.get("/readyz")
        body = response.json()
        assert (response.status_code, body["status"], body["checks"]["database"]["status"]) == (503, 503, "broken")
        assert response.headers["content-type"] == "application/problem+json"
        assert int(response.headers["retry-after"]) > 0
        assert client.get("/healthz").status_code == 200
        (tmp_path / "away").rename(path)
        service.state.health._until = 0
        assert client.get("/readyz").status_code == 200


def test_probes_are_answered_from_the_second_before(gpuplan: Gpuplan, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Health] = []

    def look(self: Health) -> dict[str, Any]:
        looked.append(self)
        return {"status": "ready"}

    now = [100.0]
    monkeypatch.setattr(Health, "_look", look)
    monkeypatch.setattr("api.telemetry.health.time.monotonic", lambda: now[0])
    of_one = health_of(gpuplan)
    of_one.report()
    of_one.report()
    now[0] += health.KEPT_SECONDS
    of_one.report()
    assert len(looked) == 2


def test_a_service_told_to_stop_says_so_at_once_and_sends_clients_elsewhere(gpuplan: Gpuplan, served: Served) -> None:
    service = create_service(gpuplan)
    with served(service) as client:
        assert client.get("/readyz").status_code == 200
        service.state.health.stop()
        response = client.get("/readyz")
        assert response.status_code == 503
        assert "stop" in response.json()["detail"]
        answer = client.get("/v1/snapshots")
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
