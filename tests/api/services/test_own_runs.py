"""Tries of own runs: reported by every interface, counted in live chances, and quoted by plans."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.presentation.live_capacity import source_of
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.capacity_candidates import candidate_of
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.own_runs import PRIOR_TRIES, with_own_runs
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.planner.availability.obtainable import modelled_chance
from gpuplan.planner.model.plan import PlannedAnswer
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
MACHINE, REGION = "g5.xlarge", "us-east-1"
REFUSED = {"machine": MACHINE, "region": REGION, "refused": "InsufficientInstanceCapacity"}
GOT = {"machine": MACHINE, "region": REGION, "obtained": True}


@pytest.fixture
def gpuplan_alone(embedded_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    """A store of its own, and no cloud that could be asked."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    path = tmp_path / "store.db"
    path.write_bytes(embedded_store.read_bytes())
    return open_services(Environment(database_url=f"sqlite:///{path}"))


def reported(gpuplan_alone: Services, *reports: tuple[dict[str, Any], timedelta]) -> None:
    for report, ago in reports:
        gpuplan_alone.capacity.report(report, now=NOW - ago)


def on_demand(gpuplan_alone: Services, **where: Any) -> list[dict[str, Any]]:
    answers = gpuplan_alone.capacity.of_machine(MACHINE, kind="on_demand", regions=(REGION,), now=NOW, **where).answers
    return [dict(wire(row)) for row in answers]


def test_refusals_of_the_last_week_lower_the_chance_and_are_quoted(gpuplan_alone: Services) -> None:
    hours = [timedelta(hours=number) for number in range(1, 6)]
    reported(gpuplan_alone, *zip([REFUSED] * 3 + [GOT] * 2, hours, strict=True), (REFUSED, timedelta(days=8)))
    [answer] = on_demand(gpuplan_alone)
    assert answer["published"] == "refused 3 of 5 times in the last 7 days"
    assert (answer["source"], answer["asked_at"]) == ("your own runs", "2026-11-27T12:00:00Z")
    [row] = (row for row in embedded_instance_types() if row.name == MACHINE)
    before = modelled_chance(row, 1, is_spot=False, year=2026)
    assert answer["probability"] == pytest.approx((2 + PRIOR_TRIES * before) / (5 + PRIOR_TRIES))
    assert "probability" in answer["modelled"]
    # Of other numbers of machines nothing is known.
    assert on_demand(gpuplan_alone, nodes=2) == []


def test_a_plan_with_live_answers_says_what_own_runs_got(gpuplan_alone: Services, job: dict[str, Any]) -> None:
    job = job | {
        "start": "2026-11-27T12:00Z",
        "constraints": {"instance_types": [MACHINE], "price_kinds": ["on_demand"]},
    }
    job["deadline"] = "60d"
    first = wire(gpuplan_alone.plans.plan(job, now=NOW, save=False, live=True))["plan"]["phases"][0]
    asked = {"machine": MACHINE, "region": first["region"], "nodes": first["nodes"]}
    reported(gpuplan_alone, (asked | {"refused": "no-capacity"}, timedelta(hours=1)))
    typed = gpuplan_alone.plans.plan(job, now=NOW, save=False, live=True)
    assert isinstance(typed, PlannedAnswer)
    assert typed.plan.capacity_ladder is not None
    stated_source = source_of(typed.plan.capacity_ladder)
    answer = wire(typed)
    plan = answer["plan"]
    assert stated_source.startswith("your own runs: refused 1 of 1 time in the last 7 days, asked")
    [stated] = plan["live_capacity"]["answers"]
    assert (stated["source"], stated["region"]) == ("your own runs", first["region"])
    assert gpuplan_alone.verification.verify(answer).outcome == "verified"


def test_the_answer_of_a_cloud_is_what_own_runs_are_counted_into() -> None:
    cloud = CapacityAnswer(
        provider="aws",
        region=REGION,
        zone="",
        instance_type=MACHINE,
        nodes=1,
        price_kind="spot",
        probability=0.65,
        published="7",
        asked_at=NOW,
        source="EC2 GetSpotPlacementScores",
        interruptions_per_hour=0.1,
    )
    tried = replace(cloud, zone="use1-az4", probability=0.0, published="InsufficientInstanceCapacity", source="own run")
    later = replace(tried, asked_at=NOW + timedelta(hours=1))
    region, zone = with_own_runs([cloud], [candidate_of(cloud)], [tried, later], None, NOW)  # type: ignore[arg-type]
    assert region == cloud
    assert (zone.zone, zone.published) == ("use1-az4", "refused 1 of 1 time in the last 7 days; 7")
    assert zone.probability == pytest.approx(2 * 0.65 / 3)
    assert (zone.interruptions_per_hour, zone.source) == (0.1, "your own runs; EC2 GetSpotPlacementScores")


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        (REFUSED | {"refused": "VcpuLimitExceeded"}, "refused", "other errors are no lack of machines"),
        (REFUSED | {"refused": "ZONE_RESOURCE_POOL_EXHAUSTED"}, "refused", "InsufficientInstanceCapacity"),
        (REFUSED | {"obtained": True}, "refused", "and not both"),
        ({"machine": MACHINE, "region": REGION}, "refused", "or obtained"),
        (GOT | {"region": "eu-nowhere-1"}, "region", "no price in"),
        ({"machine": MACHINE, "obtained": True}, "region", "is missing"),
        (GOT | {"machine": "p9.48xlarge"}, "machine", "no instance type"),
        (GOT | {"nodes": 0}, "nodes", "from 1 to"),
    ],
)
def test_a_report_that_says_nothing_about_machines_is_refused_by_its_field(
    gpuplan_alone: Services, document: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(UnusableInput, match=message) as refused:
        gpuplan_alone.capacity.report(document)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert gpuplan_alone.store.capacity.since(NOW - timedelta(days=900), own_runs=True) == ()


def test_the_command_reports_a_try_and_says_what_counts(run: Callable[..., Ended], client: Any) -> None:
    words = ("capacity", "--machine", "g6.xlarge", "--kind", "on_demand", "--region", REGION, "--zone", "use1-az4")
    assert "g6.xlarge on demand in use1-az4: refused 0 of 1 time" in run(*words, "--obtained").out
    answer = json.loads(run(*words, "--refused", "insufficientinstancecapacity", "--json").out)
    assert (answer["code"], answer["own_runs"]) == (
        "InsufficientInstanceCapacity",
        "refused 1 of 2 times in the last 7 days",
    )
    assert run(*words).err.startswith("gpuplan: zone")
    reply = client.post(
        "/v1/capacity/reports", json={"machine": "g6.xlarge", "region": REGION, "zone": "use1-az4", "obtained": True}
    )
    assert reply.json()["own_runs"] == "refused 1 of 3 times in the last 7 days"
