"""Readiness: broken is 503, stale is an answer with its reason, stopping comes first, and probes cost nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.observability import readiness
from gpuplan.api.observability.readiness import Health, HealthReport
from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.model.provider_names import rented_full_names
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.refresh_store import RefreshRecord
from gpuplan.catalog.store.store_counts import ProviderPrices

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
FOR_EVER = 1e9


def health_of(gpuplan: Services, *, stale_after_hours: float = FOR_EVER) -> Health:
    return Health(gpuplan, StoreFigures(gpuplan), stale_after_hours=stale_after_hours)


@pytest.fixture
def fresh_gpuplan(own_store: str) -> Services:
    """A store of this test's own."""
    return open_services(Environment(database_url=own_store))


def test_everything_fresh_is_ready(gpuplan: Services) -> None:
    report = health_of(gpuplan).report().document()
    assert (report["status"], report["why"]) == ("ready", [])
    assert {name: check["status"] for name, check in report["checks"].items()} == dict.fromkeys(
        ("database", "migrations", "snapshot", "prices", "refreshes", "queue"), "ok"
    )


def test_old_prices_are_stale_and_answered_from(gpuplan: Services) -> None:
    report = health_of(gpuplan, stale_after_hours=0.01).report().document()
    assert report["status"] == "degraded"
    assert "gpuplan refresh" in report["why"][0]
    assert set(report["checks"]["prices"]["providers"]) > {"aws", "gcp", "azure"}
    assert report["checks"]["database"]["status"] == "ok"


def test_one_provider_is_enough_to_be_stale(gpuplan: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)

    def prices(name: str, age: timedelta, stale: int) -> ProviderPrices:
        return ProviderPrices(provider=name, offers=10, stale=stale, oldest_at=now - age, newest_at=now - age)

    rows = (
        prices("aws", timedelta(hours=1), 0),
        prices("gcp", timedelta(hours=50), 0),
        prices("azure", timedelta(0), 6),
    )
    monkeypatch.setattr(StoreFigures, "prices", lambda _: rows)
    report = health_of(gpuplan, stale_after_hours=49).report().document()
    assert report["status"] == "degraded"
    assert "gcp 50 hours" in report["why"][0]
    assert "aws" not in report["why"][0]
    assert "azure 6 of 10" in report["why"][1]


def refreshed(gpuplan: Services, **outcomes: str) -> None:
    """A refresh of these clouds that ended just now, and whose rows are dated the same."""
    at = datetime.now(UTC)
    store = gpuplan.store
    held = store.snapshot(store.current_snapshot_id())
    rows = [
        replace(offer, observed_at=at, stale_since=None)
        if outcomes.get(offer.provider) == "whole"
        else replace(offer, stale_since=offer.stale_since or at)
        if offer.provider in outcomes
        else offer
        for offer in held.offers
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


@pytest.mark.slow(reason="one long case")
def test_a_whole_refresh_of_the_clouds_that_are_asked_is_ready_whatever_is_left_out(fresh_gpuplan: Services) -> None:
    assert health_of(fresh_gpuplan, stale_after_hours=49).report().document()["status"] == "degraded", (
        "nothing was ever read"
    )
    refreshed(fresh_gpuplan, aws="whole", azure="whole", gcp="failed")
    report = health_of(fresh_gpuplan, stale_after_hours=49).report().document()
    assert report["status"] == "degraded"
    assert "gcp" in report["why"][0]
    refreshed(fresh_gpuplan, aws="whole", azure="whole")
    report = health_of(fresh_gpuplan, stale_after_hours=49).report().document()
    assert (report["status"], report["why"]) == ("ready", [])
    assert report["checks"]["prices"]["left_out"] == sorted(set(rented_full_names()) - {"aws", "azure"})
    [ages] = [metric for metric in StoreFigures(fresh_gpuplan).collect() if metric.name == "gpuplan_price_age_seconds"]
    assert {sample.labels["provider"] for sample in ages.samples} == {"aws", "azure"}


@pytest.mark.slow(reason="one long case")
def test_a_cloud_that_was_read_once_is_never_left_out(fresh_gpuplan: Services) -> None:
    refreshed(fresh_gpuplan, aws="whole", azure="whole", gcp="whole")
    refreshed(fresh_gpuplan, aws="whole", azure="whole")
    report = health_of(fresh_gpuplan, stale_after_hours=-1).report().document()
    assert "gcp" in report["why"][0]


@pytest.mark.slow(reason="one long case")
def test_what_a_whole_refresh_cannot_confirm_does_not_degrade_the_service(fresh_gpuplan: Services) -> None:
    refreshed(fresh_gpuplan, aws="whole", azure="whole", gcp="whole")
    refreshed(fresh_gpuplan, aws="whole", azure="whole", gcp="partial")
    assert "gcp" in health_of(fresh_gpuplan).report().document()["why"][0]
    record = fresh_gpuplan.store.last_refresh()
    assert record is not None
    whole_refresh = {"asked": ["gcp"], "providers": [{"provider": "gcp", "outcome": "whole"}]}
    fresh_gpuplan.store.rewrite_report(record.id, whole_refresh)
    assert health_of(fresh_gpuplan).report().document()["status"] == "ready"


def test_two_nights_that_left_something_out_are_a_fault_and_one_is_not(fresh_gpuplan: Services) -> None:
    def night(number: int, outcome: str) -> None:
        at = datetime(2026, 11, number, tzinfo=UTC)
        fresh_gpuplan.store.record_refresh(
            RefreshRecord(id=f"r{number}", started_at=at, finished_at=at, outcome=outcome, snapshot_id=None, report={}),
            None,
        )

    checks = [("whole", "ok"), ("partial", "ok"), ("failed", "stale"), ("whole", "ok")]
    for number, (outcome, status) in enumerate(checks, start=1):
        night(number, outcome)
        assert health_of(fresh_gpuplan).report().document()["checks"]["refreshes"]["status"] == status


@pytest.mark.parametrize(("waiting", "workers", "status"), [(0, 0, "ok"), (3, 1, "ok"), (3, 0, "stale")])
def test_work_that_waits_for_nobody_is_told(
    gpuplan: Services, monkeypatch: pytest.MonkeyPatch, waiting: int, workers: int, status: str
) -> None:
    monkeypatch.setattr(StoreFigures, "queue", lambda _: {"runs": {"todo": waiting, "doing": 0}})
    monkeypatch.setattr(StoreFigures, "workers", lambda _: workers)
    report = health_of(gpuplan).report().document()
    assert report["checks"]["queue"]["status"] == status
    assert ("gpuplan worker" in " ".join(report["why"])) == (status == "stale")


def test_tables_of_another_release_are_broken(fresh_gpuplan: Services) -> None:
    with fresh_gpuplan.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    report = health_of(fresh_gpuplan).report().document()
    assert report["status"] == "broken"
    assert "revision 0001" in report["why"][0]


def test_tables_of_a_release_that_takes_over_are_good_as_long_as_this_one_works_on_them(
    fresh_gpuplan: Services,
) -> None:
    with fresh_gpuplan.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    assert health_of(fresh_gpuplan).report().document()["status"] != "broken"
    with fresh_gpuplan.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE compatible_since SET revision = '9998'"))
    assert health_of(fresh_gpuplan).report().document()["status"] == "broken"


def test_a_store_that_goes_and_comes_back_is_told_both_times(
    fresh_gpuplan: Services, tmp_path: Path, served: Served
) -> None:
    path = tmp_path / "gpuplan.sqlite3"
    service = create_service(fresh_gpuplan)
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


def test_probes_are_answered_from_the_second_before(gpuplan: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Health] = []

    def look(self: Health) -> HealthReport:
        looked.append(self)
        return HealthReport(status="ready", why=())

    now = [100.0]
    monkeypatch.setattr(Health, "_look", look)
    monkeypatch.setattr("gpuplan.api.observability.readiness.time.monotonic", lambda: now[0])
    of_one = health_of(gpuplan)
    of_one.report()
    of_one.report()
    now[0] += readiness.CACHE_SECONDS
    of_one.report()
    assert len(looked) == 2


def test_a_service_told_to_stop_says_so_at_once_and_sends_clients_elsewhere(gpuplan: Services, served: Served) -> None:
    service = create_service(gpuplan)
    with served(service) as client:
        assert client.get("/readyz").status_code == 200
        service.state.health.stop()
        response = client.get("/readyz")
        assert response.status_code == 503
        assert "shutting down" in response.json()["detail"]
        answer = client.get("/v1/snapshots")
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
