"""A refresh from the composition root on: what is written, what is reported, and what ends it before it begins."""

import json
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.schemas.refresh import RefreshDocument
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.price_refresh import Watching, run_refresh
from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure, UnusableInput
from gpuplan.catalog.store.refresh_lock import RefreshRunning
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from gpuplan.providers.cloud_registry import MakeCloud
from gpuplan.providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, SOURCES, aws, gcp, making
from tests.providers.fake_clouds import FakeCloud, machine, price, rows

pytestmark = pytest.mark.slow(reason="refreshes all prices")


@pytest.fixture
def store_url(own_store: str) -> str:
    return own_store


@pytest.fixture
def open_gpuplan(store_url: str) -> Iterator[Any]:
    """Makes a gpuplan with these clouds, on one store."""
    made: list[Services] = []

    def make(*clouds: FakeCloud, **environment: str) -> Services:
        known: Mapping[str, MakeCloud] = {cloud.name: making(cloud) for cloud in clouds}
        made.append(open_services(Environment(database_url=store_url, **NOWHERE | environment), clouds=known))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for gpuplan in made:
        gpuplan.store.close()


def test_a_whole_refresh_becomes_the_current_snapshot(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws(), gcp())
    before = gpuplan.store.current_snapshot_id()
    answer = wire(gpuplan.refreshes.refresh({}))
    assert (answer["outcome"], answer["status"]) == ("whole", "done")
    assert answer["snapshot_id"] == gpuplan.store.current_snapshot_id() != before == answer["previous_snapshot_id"]
    assert answer["summary"].startswith("refresh: whole; aws ")
    [current] = [snapshot for snapshot in gpuplan.catalogue.snapshots() if snapshot.current]
    assert current.source == "refresh"
    columns = gpuplan.context.columns()
    fresh = {
        offer.observed_at for offer in columns.offers if offer.region == "us-east-1" and offer.price_kind == "on_demand"
    }
    assert fresh == {datetime.fromisoformat(answer["started_at"])}


def test_the_report_is_kept(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws())
    answer = wire(gpuplan.refreshes.refresh({}))
    stored = wire(gpuplan.refreshes.report(answer["id"]))
    assert stored == answer
    assert stored["watches"]["checked"] == 0
    [listed] = wire(gpuplan.refreshes.listed())["refreshes"]
    assert (listed["id"], listed["summary"]) == (answer["id"], answer["summary"])
    json.dumps(answer, allow_nan=False)


def test_azure_is_left_alone_when_it_is_not_asked(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws(), gcp())
    before = [offer for offer in gpuplan.context.columns().offers if offer.provider != "aws"]
    answer = wire(gpuplan.refreshes.refresh({"provider": ["aws"]}))
    assert [provider["provider"] for provider in answer["providers"]] == ["aws"]
    assert [offer for offer in gpuplan.context.columns().offers if offer.provider != "aws"] == before


def test_a_cloud_without_credentials_keeps_its_rows_and_the_report_says_how_to_leave_it_out(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws(), gcp(ProviderFailure("no credentials")))
    before = gpuplan.store.current_snapshot_id()
    answer = wire(gpuplan.refreshes.refresh({}))
    assert answer["outcome"] == "partial"
    assert "gcp stale since 2026-07-30 (no credentials)" in answer["summary"]
    assert answer["hints"] == ["to leave out gcp: gpuplan refresh --provider aws"]
    stale = [offer for offer in gpuplan.context.columns().offers if offer.provider == "gcp"]
    shipped = [offer for offer in gpuplan.context.columns(before).offers if offer.provider == "gcp"]
    assert {offer.stale_since for offer in stale} == {datetime.fromisoformat(answer["started_at"])}
    assert [offer.observed_at for offer in stale] == [offer.observed_at for offer in shipped]


def test_when_every_cloud_fails_the_marks_are_written_once(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws(**{"us-east-1": ProviderFailure("down")}))
    first, second = wire([gpuplan.refreshes.refresh({}), gpuplan.refreshes.refresh({})])
    assert (first["outcome"], second["outcome"]) == ("failed", "failed")
    assert second["snapshot_id"] == first["snapshot_id"] != first["previous_snapshot_id"]
    assert "(unchanged)" in second["summary"]
    assert [refresh["outcome"] for refresh in wire(gpuplan.refreshes.listed())["refreshes"]] == ["failed", "failed"]


def test_a_plan_on_prices_that_were_not_confirmed_warns(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(*(FakeCloud(name=name, listing=ProviderFailure("down")) for name in ("aws", "gcp", "azure")))
    gpuplan.refreshes.refresh({})
    job = {
        "name": "resnet",
        "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
        "deadline": "36h",
        "constraints": {"providers": ["aws", "gcp", "azure"]},
    }
    plan = wire(gpuplan.plans.plan(job))["plan"]
    assert any("the last refresh could not confirm the price (stale since" in warning for warning in plan["warnings"])


def test_two_refreshes_never_overlap(open_gpuplan: Any) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> Rows:
        inside.set()
        go_on.wait(30)
        return rows(price("us-east-1"))

    first = open_gpuplan(FakeCloud(answers={"us-east-1": slow}))
    running = threading.Thread(target=first.refreshes.refresh, args=({},))
    running.start()
    try:
        assert inside.wait(30)
        with pytest.raises(RefreshRunning, match="another refresh is running"):
            open_gpuplan(aws()).refreshes.refresh({})
    finally:
        go_on.set()
        running.join(30)
    assert len(wire(first.refreshes.listed())["refreshes"]) == 1


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"provider": ["oracle"]}, "provider"),
        ({"provider": []}, "provider"),
        ({"time_limit_minutes": 0}, "time_limit_minutes"),
        ({"accept_los": True}, "accept_los"),
    ],
)
def test_an_unusable_wish_is_refused_before_anything_is_asked(open_gpuplan: Any, document: Any, field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        open_gpuplan(aws()).refreshes.refresh(document)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_an_unusable_address_is_refused_before_anything_is_asked(open_gpuplan: Any) -> None:
    with pytest.raises(UnusableInput, match="GPUPLAN_AWS_PRICE_FILES_URL: is not a web address"):
        open_gpuplan(aws(), aws_price_files_url="prices").refreshes.refresh({})


@pytest.mark.slow(reason="one long case")
def test_a_region_that_hangs_ends_with_the_time_limit(open_gpuplan: Any) -> None:
    go_on = threading.Event()

    def hang() -> Rows:
        go_on.wait(60)
        return Rows()

    gpuplan = open_gpuplan(FakeCloud(answers={"us-east-1": rows(price("us-east-1")), "us-east-2": hang}))
    answer = wire(gpuplan.refreshes.refresh({"time_limit_minutes": 0.05}))
    go_on.set()
    [failed] = answer["providers"][0]["regions_failed"]
    assert failed == {"message": "not read within 3 seconds", "regions": ["us-east-2"]}
    assert answer["outcome"] == "partial"


def test_a_store_that_fails_at_the_end_leaves_the_snapshot_before(
    open_gpuplan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpuplan = open_gpuplan(aws())
    before = gpuplan.store.current_snapshot_id()

    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    monkeypatch.setattr(Store, "record_refresh", full)
    with pytest.raises(StoreFailure, match="disk is full"):
        gpuplan.refreshes.refresh({})
    assert gpuplan.store.current_snapshot_id() == before
    with gpuplan.store.refreshing():
        pass


def test_old_snapshots_that_cannot_be_deleted_are_a_warning(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws())

    def broken(*, now: datetime) -> None:
        raise StoreFailure("database: locked")

    clouds = {"aws": making(aws())}
    answer = run_refresh(gpuplan.store, RefreshDocument(), clouds, SOURCES, retain=broken, watching=Watching())
    assert answer.warnings == ("old snapshots could not be deleted: database: locked",)
    assert answer.outcome == "whole"


def test_a_clock_that_jumped_back_makes_no_older_snapshot(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws())
    first = gpuplan.refreshes.refresh({})
    watching = Watching(clock=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    clouds = {"aws": making(aws(**{"us-east-1": rows(price("us-east-1", usd_micros=90_000_000))}))}
    second = run_refresh(
        gpuplan.store, RefreshDocument(), clouds, SOURCES, retain=gpuplan.retention.retain, watching=watching
    )
    assert gpuplan.store.current_snapshot_id() == second.snapshot_id != first.snapshot_id
    assert "behind the last snapshot" in second.warnings[0]
    assert second.started_at == first.started_at


def test_readiness_tells_of_the_last_refresh(open_gpuplan: Any) -> None:
    gpuplan = open_gpuplan(aws(), gcp(ProviderFailure("no credentials")))
    assert gpuplan.status.readiness().last_refresh is None
    answer = wire(gpuplan.refreshes.refresh({"provider": ["aws"]}))
    assert gpuplan.status.readiness().last_refresh.outcome == "whole"
    gpuplan.refreshes.refresh({})
    last = gpuplan.status.readiness().last_refresh
    assert (last.outcome, last.age_days, last.last_whole_age_days) == ("partial", 0, 0)
    assert last.id != answer["id"]


def test_a_night_that_sets_much_aside_is_not_kept_row_by_row(
    open_gpuplan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuplan.api.services.refresh_report.STORED_QUARANTINE", 2)
    odd = [price("us-east-1", "nobody-knows", zone=f"z{i}") for i in range(5)]
    answer = Rows(instance_types=(machine(),), offers=(price("us-east-1"), *odd), whole_kinds=frozenset({"on_demand"}))
    gpuplan = open_gpuplan(aws(**{"us-east-1": answer}))
    report = wire(gpuplan.refreshes.refresh({}))
    stored = wire(gpuplan.refreshes.report(report["id"]))
    assert (len(report["quarantined"]), len(stored["quarantined"]), stored["quarantined_left_out"]) == (5, 2, 3)


def test_what_holds_for_a_whole_provider_is_said_once_and_of_no_region(open_gpuplan: Any) -> None:
    places = {
        region: rows(price(region), provider_failures=("price list: denied",), provider_notes=("no subscription",))
        for region in ("us-east-1", "us-east-2")
    }
    [provider] = wire(open_gpuplan(aws(**places)).refreshes.refresh({}))["providers"]
    assert provider["calls_failed"] == [{"message": "price list: denied", "regions": []}]
    assert provider["notes"] == [{"message": "no subscription", "regions": []}]
    assert provider["outcome"] == "partial"


def test_a_refresh_that_lost_its_lock_on_the_way_writes_nothing(postgresql_url: str) -> None:
    def restarted() -> Rows:
        with gpuplan.store.engine.begin() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'gpuplan ref%%'"
            connection.exec_driver_sql(ended)
        return rows(price("us-east-1"))

    cloud = FakeCloud(answers={"us-east-1": restarted})
    gpuplan = open_services(Environment(database_url=postgresql_url, **NOWHERE), clouds={"aws": making(cloud)})  # type: ignore[arg-type]
    before = gpuplan.store.current_snapshot_id()
    with pytest.raises(StoreFailure, match="run it again"):
        gpuplan.refreshes.refresh({})
    assert (gpuplan.store.current_snapshot_id(), gpuplan.store.last_refresh()) == (before, None)
    gpuplan.store.close()
