"""`gpuplan refresh`: what people see, what alerts on, and what Prometheus reads."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuplan.api.schemas.watch_answers import CheckMeta, Deliveries, FailedDelivery, WatchCheck
from gpuplan.catalog.runtime.errors import ProviderFailure, StoreFailure
from gpuplan.catalog.store.store import Store
from gpuplan.providers.cloud_registry import MakeCloud
from gpuplan.providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, aws, gcp, making
from tests.providers.fake_clouds import FakeCloud, machine, price

pytestmark = pytest.mark.slow(reason="refreshes prices")


@pytest.fixture
def refresh(run: Callable[..., Any], own_store: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command with these clouds in place of the real ones, on a store of its own."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    for name, value in NOWHERE.items():
        monkeypatch.setenv(f"GPUPLAN_{name.upper()}", value)

    def command(*arguments: str | Path, clouds: tuple[FakeCloud, ...] = ()) -> Any:
        known: Mapping[str, MakeCloud] = {cloud.name: making(cloud) for cloud in clouds or (aws(), gcp())}
        monkeypatch.setattr("gpuplan.providers.cloud_registry.installed_clouds", lambda: known)
        return run("refresh", *arguments)

    return command


@pytest.mark.slow(reason="one long case")
def test_a_whole_refresh_ends_with_zero_a_table_and_one_line_for_alerting(refresh: Callable[..., Any]) -> None:
    done = refresh()
    assert (done.code, done.err) == (0, "")
    *shown, last = done.out.strip().splitlines()
    assert last.startswith("refresh: whole; aws ")
    assert "; snapshot " in last
    assert last.endswith(" s")
    assert shown[0].startswith("cloud")
    assert [line.split()[:2] for line in shown[2:4]] == [["aws", "whole"], ["gcp", "whole"]]


def test_a_partial_refresh_ends_with_three_and_says_what_is_old_and_how_to_leave_it_out(
    refresh: Callable[..., Any],
) -> None:
    done = refresh(clouds=(aws(), gcp(ProviderFailure("no credentials; give GPUPLAN_GCP_API_KEY"))))
    assert done.code == 3
    assert "gcp: no credentials; give GPUPLAN_GCP_API_KEY" in done.out
    assert "to leave out gcp: gpuplan refresh --provider aws" in done.out
    assert done.out.splitlines()[-1].startswith("refresh: partial; aws ")
    assert "gcp stale since 2026-07-30 (no credentials" in done.out.splitlines()[-1]


@pytest.mark.slow(reason="one long case")
def test_quiet_prints_the_last_line_alone(refresh: Callable[..., Any]) -> None:
    done = refresh("--quiet")
    assert done.out.startswith("refresh: whole; ")
    assert done.out.count("\n") == 1


def test_json_is_the_whole_report(refresh: Callable[..., Any]) -> None:
    done = refresh("--json", "--provider", "aws")
    report = json.loads(done.out)
    assert (done.code, report["outcome"], [provider["provider"] for provider in report["providers"]]) == (
        0,
        "whole",
        ["aws"],
    )
    assert report["summary"].startswith("refresh: whole; ")


def test_what_was_set_aside_is_shown_with_its_reason_and_the_rest_counted(refresh: Callable[..., Any]) -> None:
    odd = [price("us-east-1", "p9.48xlarge", zone=f"z{i}") for i in range(30)]
    answer = Rows(
        instance_types=(machine(), machine("p9.48xlarge", accelerator="X900")),
        offers=(price("us-east-1"), *odd),
        whole_kinds=frozenset({"on_demand"}),
    )
    done = refresh(clouds=(aws(**{"us-east-1": answer}),))
    assert done.code == 0
    assert "Quarantined: 30" in done.out
    assert done.out.count("its accelerator 'X900' is unknown") == 20
    assert "and 10 more; --json shows all" in done.out
    assert "Accelerators missing from the catalogue" in done.out


@pytest.mark.slow(reason="one long case")
def test_a_refused_cloud_says_which_option_takes_it(refresh: Callable[..., Any]) -> None:
    regions = [f"us-east-{i}" for i in range(1, 5)]
    full = {
        region: Rows(instance_types=(machine(),), offers=(price(region),), whole_kinds=frozenset({"on_demand"}))
        for region in regions
    }
    assert refresh(clouds=(aws(**full),)).code == 0
    empty = full | {region: Rows(whole_kinds=frozenset({"on_demand"})) for region in regions[1:]}
    done = refresh(clouds=(aws(**empty),))
    assert done.code == 3
    assert "only 1 of 4 offers are still there; --accept-loss takes that" in done.out
    assert done.out.splitlines()[-1].startswith("refresh: refused; aws stale since ")
    assert refresh("--accept-loss", clouds=(aws(**empty),)).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--provider", "oracle"), "gpuplan: provider: no cloud is called 'oracle'; accepted: aws, gcp\n"),
        (("--provider", ""), "gpuplan: provider: no cloud is called ''; accepted: aws, gcp\n"),
        (("--metrics-file", "/nowhere/at/all.prom"), "gpuplan: metrics-file: cannot write '/nowhere/at/all.prom'"),
        (("--time-limit", "0"), "gpuplan: Invalid value for '--time-limit'"),
    ],
)
def test_an_unusable_option_ends_with_two_before_anything_is_read(
    refresh: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    done = refresh(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(message)


def test_a_refresh_that_another_keeps_out_ends_with_three_and_says_who(
    refresh: Callable[..., Any], tmp_path: Path
) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    with store.refreshing():
        done = refresh()
    store.close()
    assert done.code == 3
    assert done.err.startswith("gpuplan: another refresh is running (process ")
    assert done.out.startswith("refresh: failed; another refresh is running (process ")
    assert done.out.count("\n") == 1


def test_a_full_disk_ends_with_three_and_the_line_for_alerting(
    refresh: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database x: database or disk is full; nothing was written; free some space and run again")

    monkeypatch.setattr(Store, "record_refresh", full)
    done = refresh()
    assert (done.code, done.out.splitlines()[-1][:43]) == (3, "refresh: failed; database x: database or di")
    assert "Traceback" not in done.err


def test_the_metrics_say_how_it_went_and_how_old_prices_are(refresh: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "gpuplan.prom"
    assert refresh("--metrics-file", path, "--quiet").code == 0
    refresh("--metrics-file", path, "--quiet", clouds=(aws(), gcp(ProviderFailure("down"))))
    metrics = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(path.read_text(encoding="utf-8"))
        for sample in family.samples
    }
    assert metrics["gpuplan_refresh_outcome", "partial"] == 1
    assert metrics["gpuplan_refresh_outcome", "whole"] == 0
    assert metrics["gpuplan_offers_stale", "gcp"] == metrics["gpuplan_offers", "gcp"] > 0
    assert metrics["gpuplan_provider_fresh", "aws"] == 1
    assert 0 <= metrics["gpuplan_price_age_seconds", "aws", "newest"] < 3600
    assert metrics["gpuplan_price_age_seconds", "aws", "oldest"] > 86_400
    assert (
        0
        < metrics["gpuplan_refresh_last_success_timestamp_seconds",]
        <= metrics["gpuplan_refresh_finished_timestamp_seconds",]
    )
    assert sorted(path.name for path in tmp_path.iterdir() if "prom" in path.name) == ["gpuplan.prom"]


def test_offers_that_were_not_confirmed_say_so(
    refresh: Callable[..., Any], run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh(clouds=(aws(), gcp(ProviderFailure("down"))))
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    *lines, _, _ = run("offers", "--provider", "gcp").out.splitlines()
    assert all("not confirmed since 20" in line for line in lines[2:])
    [row] = [
        line
        for line in run("offers", "--provider", "aws", "--kind", "on_demand").out.splitlines()
        if "us-east-1 " in line
    ]
    assert "not confirmed" not in row


def test_what_holds_for_a_whole_provider_is_shown_without_a_region(refresh: Callable[..., Any]) -> None:
    answer = Rows(instance_types=(machine(),), offers=(price("us-east-1"),), provider_notes=("aws: no credentials",))
    assert "  - aws: no credentials\n" in refresh(clouds=(aws(**{"us-east-1": answer}),)).out


def test_watches_that_could_not_be_told_end_with_three(
    refresh: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    undelivered = FailedDelivery(
        notification_id="n", watch_id="i", watch="w", channel="ops", event="cheaper", error="HTTP 410", final=False
    )
    answer = WatchCheck(
        snapshot_id="s",
        checked=1,
        told=(),
        problems=(),
        deliveries=Deliveries(sent=0, held_elsewhere=0, failed=(undelivered,)),
        meta=CheckMeta(planning_milliseconds=0.0, sending_milliseconds=0.0),
    )
    monkeypatch.setattr("gpuplan.api.services.watched_jobs.WatchService.check", lambda _: answer)
    done = refresh()
    assert done.code == 3
    assert "w: cheaper not delivered to ops, tried again at the next run: HTTP 410" in done.out
    assert done.out.splitlines()[-1].startswith("refresh: whole; ")


@pytest.mark.parametrize(
    ("variable", "value"), [("HTTPS_PROXY", "nonsense://proxy"), ("PROMETHEUS_MULTIPROC_DIR", "/nowhere/at/all")]
)
def test_what_would_break_on_the_way_is_refused_before_anything_is_asked(
    refresh: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    refused = refresh("--metrics-file", tmp_path / "gpuplan.prom")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"gpuplan: {variable}: ")
