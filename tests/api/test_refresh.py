"""A refresh from the composition root on: what is written, what is reported, and what ends it before it begins."""

import json
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from api.app import Gpuplan
from api.documents.refresh import RefreshDocument
from api.refresh import Watching, run_refresh
from api.settings import Environment
from catalog.errors import ProviderFailure, StoreFailure, UnusableInput
from catalog.refresh_lock import RefreshRunning
from catalog.store import Store
from providers.clouds import MakeCloud
from providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, SOURCES, aws, gcp, making
from tests.providers.fake_clouds import FakeCloud, machine, price, rows


@pytest.fixture
def store_url(own_store: str) -> str:
    return own_store


@pytest.fixture
def opened(store_url: str) -> Iterator[Any]:
    """Makes a gpuplan with these clouds, on one store."""
    made: list[Gpuplan] = []

    def make(*clouds: FakeCloud, **environment: str) -> Gpuplan:
        known: Mapping[str, MakeCloud] = {each.name: making(each) for each in clouds}
        made.append(Gpuplan(Environment(database_url=store_url, **NOWHERE | environment), clouds=known))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.store.close()


def test_a_whole_refresh_becomes_the_current_snapshot(opened: Any) -> None:
    gpuplan = opened(aws(), gcp())
    before = gpuplan.store.current_snapshot_id()
    answer = gpuplan.refresh({})
    assert (answer["outcome"], answer["status"]) == ("whole", "done")
    assert answer["snapshot_id"] == gpuplan.store.current_snapshot_id() != before == answer["previous_snapshot_id"]
    assert answer["summary"].startswith("refresh: whole; aws ")
    [current] = [each for each in gpuplan.snapshots() if each["current"]]
    assert current["source"] == "refresh"
    columns = gpuplan.columns()
    fresh = {
        each.observed_at for each in columns.offers if each.region == "us-east-1" and each.price_kind == "on_demand"
    }
    assert fresh == {datetime.fromisoformat(answer["started_at"])}


def test_the_report_is_kept(opened: Any) -> None:
    gpuplan = opened(aws())
    answer = gpuplan.refresh({})
    kept = gpuplan.refresh_report(answer["id"])
    assert kept == answer
    assert kept["watches"]["checked"] == 0
    [listed] = gpuplan.refreshes()["refreshes"]
    assert (listed["id"], listed["summary"]) == (answer["id"], answer["summary"])
    json.dumps(answer, allow_nan=False)


def test_azure_is_left_alone_when_it_is_not_asked(opened: Any) -> None:
    gpuplan = opened(aws(), gcp())
    before = [each for each in gpuplan.columns().offers if each.provider != "aws"]
    answer = gpuplan.refresh({"provider": ["aws"]})
    assert [each["provider"] for each in answer["providers"]] == ["aws"]
    assert [each for each in gpuplan.columns().offers if each.provider != "aws"] == before


def test_a_cloud_without_credentials_keeps_its_rows_and_the_report_says_how_to_leave_it_out(opened: Any) -> None:
    gpuplan = opened(aws(), gcp(ProviderFailure("no credentials")))
    before = gpuplan.store.current_snapshot_id()
    answer = gpuplan.refresh({})
    assert answer["outcome"] == "partial"
    assert "gcp stale since 2026-07-30 (no credentials)" in answer["summary"]
    assert answer["hints"] == ["to leave out gcp: gpuplan refresh --provider aws"]
    stale = [each for each in gpuplan.columns().offers if each.provider == "gcp"]
    shipped = [each for each in gpuplan.columns(before).offers if each.provider == "gcp"]
    assert {each.stale_since for each in stale} == {datetime.fromisoformat(answer["started_at"])}
    assert [each.observed_at for each in stale] == [each.observed_at for each in shipped]


def test_when_every_cloud_fails_the_marks_are_written_once(opened: Any) -> None:
    gpuplan = opened(aws(**{"us-east-1": ProviderFailure("down")}))
    first, second = gpuplan.refresh({}), gpuplan.refresh({})
    assert (first["outcome"], second["outcome"]) == ("failed", "failed")
    assert second["snapshot_id"] == first["snapshot_id"] != first["previous_snapshot_id"]
    assert "(unchanged)" in second["summary"]
    assert [each["outcome"] for each in gpuplan.refreshes()["refreshes"]] == ["failed", "failed"]


def test_a_plan_on_prices_that_were_not_confirmed_warns(opened: Any) -> None:
    gpuplan = opened(*(FakeCloud(name=name, listing=ProviderFailure("down")) for name in ("aws", "gcp", "azure")))
    gpuplan.refresh({})
    job = {
        "name": "resnet",
        "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
        "deadline": "36h",
    }
    plan = gpuplan.plan(job)["plan"]
    assert any("the last refresh could not confirm the price (stale since" in each for each in plan["warnings"])


def test_two_refreshes_never_overlap(opened: Any) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> Rows:
        inside.set()
        go_on.wait(30)
        return rows(price("us-east-1"))

    first = opened(FakeCloud(answers={"us-east-1": slow}))
    running = threading.Thread(target=first.refresh, args=({},))
    running.start()
    try:
        assert inside.wait(30)
        with pytest.raises(RefreshRunning, match="another refresh is running"):
            opened(aws()).refresh({})
    finally:
        go_on.set()
        running.join(30)
    assert len(first.refreshes()["refreshes"]) == 1


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"provider": ["oracle"]}, "provider"),
        ({"provider": []}, "provider"),
        ({"time_limit_minutes": 0}, "time_limit_minutes"),
        ({"accept_los": True}, "accept_los"),
    ],
)
def test_an_unusable_wish_is_refused_before_anything_is_asked(opened: Any, document: Any, field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        opened(aws()).refresh(document)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_an_unusable_address_is_refused_before_anything_is_asked(opened: Any) -> None:
    with pytest.raises(UnusableInput, match="GPUPLAN_AWS_PRICE_FILES_URL: is no web address"):
        opened(aws(), aws_price_files_url="prices").refresh({})


def test_a_region_that_hangs_ends_with_the_time_limit(opened: Any) -> None:
    go_on = threading.Event()

    def hang() -> Rows:
        go_on.wait(60)
        return Rows()

    gpuplan = opened(FakeCloud(answers={"us-east-1": rows(price("us-east-1")), "us-east-2": hang}))
    answer = gpuplan.refresh({"time_limit_minutes": 0.05})
    go_on.set()
    [failed] = answer["providers"][0]["regions_failed"]
    assert failed == {"message": "not read within 3 seconds", "regions": ["us-east-2"]}
    assert answer["outcome"] == "partial"


def test_a_store_that_fails_at_the_end_leaves_the_snapshot_before(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpuplan = opened(aws())
    before = gpuplan.store.current_snapshot_id()

    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    monkeypatch.setattr(Store, "record_refresh", full)
    with pytest.raises(StoreFailure, match="disk is full"):
        gpuplan.refresh({})
    assert gpuplan.store.current_snapshot_id() == before
    with gpuplan.store.refreshing():
        pass


def test_old_snapshots_that_cannot_be_deleted_are_a_warning(opened: Any) -> None:
    gpuplan = opened(aws())

    def broken(*, now: datetime) -> None:
        raise StoreFailure("database: locked")

    clouds = {"aws": making(aws())}
    answer = run_refresh(gpuplan.store, RefreshDocument(), clouds, SOURCES, retain=broken, watching=Watching())
    assert answer["warnings"] == ["old snapshots could not be deleted: database: locked"]
    assert answer["outcome"] == "whole"


def test_a_clock_that_jumped_back_makes_no_older_snapshot(opened: Any) -> None:
    gpuplan = opened(aws())
    first = gpuplan.refresh({})
    watching = Watching(clock=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    clouds = {"aws": making(aws(**{"us-east-1": rows(price("us-east-1", usd_micros=90_000_000))}))}
    second = run_refresh(gpuplan.store, RefreshDocument(), clouds, SOURCES, retain=gpuplan.retain, watching=watching)
    assert gpuplan.store.current_snapshot_id() == second["snapshot_id"] != first["snapshot_id"]
    assert "behind the last snapshot" in second["warnings"][0]
    assert second["started_at"] == first["started_at"]


def test_readiness_tells_of_the_last_refresh(opened: Any) -> None:
    gpuplan = opened(aws(), gcp(ProviderFailure("no credentials")))
    assert gpuplan.readiness()["last_refresh"] is None
    answer = gpuplan.refresh({"provider": ["aws"]})
    assert gpuplan.readiness()["last_refresh"]["outcome"] == "whole"
    gpuplan.refresh({})
    last = gpuplan.readiness()["last_refresh"]
    assert (last["outcome"], last["age_days"], last["last_whole_age_days"]) == ("partial", 0, 0)
    assert last["id"] != answer["id"]


def test_a_night_that_sets_much_aside_is_not_kept_row_by_row(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.refresh_report.STORED_QUARANTINE", 2)
    odd = [price("us-east-1", "nobody-knows", zone=f"z{i}") for i in range(5)]
    answer = Rows(instance_types=(machine(),), offers=(price("us-east-1"), *odd), whole_kinds=frozenset({"on_demand"}))
    gpuplan = opened(aws(**{"us-east-1": answer}))
    report = gpuplan.refresh({})
    kept = gpuplan.refresh_report(report["id"])
    assert (len(report["quarantined"]), len(kept["quarantined"]), kept["quarantined_left_out"]) == (5, 2, 3)


def test_what_holds_for_a_whole_provider_is_said_once_and_of_no_region(opened: Any) -> None:
    places = {
        each: rows(price(each), provider_failures=("price list: denied",), provider_notes=("no subscription",))
        for each in ("us-east-1", "us-east-2")
    }
    [each] = opened(aws(**places)).refresh({})["providers"]
    assert each["calls_failed"] == [{"message": "price list: denied", "regions": []}]
    assert each["notes"] == [{"message": "no subscription", "regions": []}]
    assert each["outcome"] == "partial"


def test_a_refresh_that_lost_its_lock_on_the_way_writes_nothing(postgresql_url: str) -> None:
    def restarted() -> Rows:
        with gpuplan.store.engine.begin() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'gpuplan ref%%'"
            connection.exec_driver_sql(ended)
        return rows(price("us-east-1"))

    cloud = FakeCloud(answers={"us-east-1": restarted})
    gpuplan = Gpuplan(Environment(database_url=postgresql_url, **NOWHERE), clouds={"aws": making(cloud)})  # type: ignore[arg-type]
    before = gpuplan.store.current_snapshot_id()
    with pytest.raises(StoreFailure, match="run it again"):
        gpuplan.refresh({})
    assert (gpuplan.store.current_snapshot_id(), gpuplan.store.last_refresh()) == (before, None)
    gpuplan.store.close()
