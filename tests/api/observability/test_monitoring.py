"""Dashboard and alerts name nothing that a service does not tell, parse, and lead to what to do."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import promql_parser
import pytest
import yaml
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.observability.service_telemetry import Watching
from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.observability.telemetry_settings import USUAL_STALE_AFTER_HOURS, TelemetrySettings
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.store.refresh_store import RefreshRecord

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/rules.yaml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((ROOT / "deploy/grafana/gpuplan.json").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
RECORDED = {rule["record"]: rule["expr"] for group in RULES["groups"] for rule in group["rules"] if "record" in rule}
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
#: What Prometheus itself knows of a target.
OF_PROMETHEUS = {"up"}
#: What a service tells only once a request has failed by its own fault.
SEEN_IN_TROUBLE = ("status", "5xx")
#: What Grafana puts in.
VARIABLES = {"$__rate_interval": "5m", "$job": ".+"}


@dataclass(frozen=True)
class Selector:
    """One metric as an expression names it, with the labels that it is chosen by."""

    name: str
    labels: dict[str, str]


def selectors(expression: str) -> Iterator[Selector]:
    """Every metric that an expression names; fails where it cannot be parsed."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    selectors: list[Selector] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            labels = {
                matcher.name: matcher.value
                for matcher in node.matchers.matchers
                if matcher.op == promql_parser.MatchOp.Equal
            }
            selectors.append(Selector(node.name or "", labels))
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    assert selectors, expression
    yield from selectors


Series = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def series(
    tmp_path_factory: pytest.TempPathFactory, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
) -> Series:
    """What a service tells that has planned and refreshed, metric by metric with the labels of each."""
    gpuplan = open_services(Environment(database_url=f"sqlite:///{tmp_path_factory.mktemp('told') / 'x.sqlite3'}"))
    at = datetime.now(UTC)
    whole = RefreshRecord(id="r", started_at=at, finished_at=at, outcome="whole", snapshot_id=None, report={})
    gpuplan.store.record_refresh(whole, None)
    watching, service = Watching(TelemetrySettings()), create_service(gpuplan)
    watching.watch(service)
    job = {"workload": {"kind": "preset", "model": "resnet-50", "samples": "1M"}, "deadline": "36h"}
    with pytest.MonkeyPatch.context() as patched, served(service) as client:
        # A queue needs PostgreSQL; what is told of it has the shape of its own function's answer.
        patched.setattr(StoreFigures, "queue", lambda _: {"runs": {"todo": 1, "doing": 0, "failed": 0}})
        patched.setattr(StoreFigures, "workers", lambda _: 1)
        client.post("/v1/plans", json=job).raise_for_status()
        client.post("/v1/plans", json={})
        client.get("/v1/offers?limit=1")
        text = client.get("/metrics").text
    by_family: Series = {}
    for family in text_string_to_metric_families(text):
        by_family.setdefault(family.name, [])
        for sample in family.samples:
            by_family.setdefault(sample.name, []).append(sample.labels)
    return by_family


def is_exported(series: Series, selector: Selector) -> bool:
    """Whether there is such a metric, with labels of these names and values, and bounds of buckets that are its own."""
    if selector.name in OF_PROMETHEUS | RECORDED.keys():
        return True
    if selector.name not in series:
        return False
    ours = {name: value for name, value in selector.labels.items() if name != "job"}
    rows = series[selector.name]
    names = {name for row in rows for name in row} or set(ours)
    exported = {(name, value) for row in rows for name, value in row.items()} | {SEEN_IN_TROUBLE}
    return ours.keys() <= names and all(item in exported for item in ours.items())


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_what_a_service_tells(series: Series, panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        for selector in selectors(target["expr"]):
            assert is_exported(series, selector), selector


@pytest.mark.parametrize("record", RECORDED)
def test_a_recorded_figure_rests_on_what_a_service_tells(series: Series, record: str) -> None:
    for selector in selectors(RECORDED[record]):
        assert selector.name not in RECORDED
        assert is_exported(series, selector), selector


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_rests_on_what_a_service_tells_and_leads_to_what_to_do(series: Series, alert: dict[str, Any]) -> None:
    for selector in selectors(alert["expr"]):
        assert is_exported(series, selector), selector
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"]
    path, _, anchor = alert["annotations"]["runbook"].partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert anchor in {slugify(heading, "-") for heading in headings}


def test_a_metric_that_is_not_told_would_be_noticed(series: Series) -> None:
    misspelt = ('gpuplan_offers{cloud="aws"}', 'gpuplan_offers{provider="amazon"}')
    for wrong in ("gpuplan_nothing", 'gpuplan_plan_gap_bucket{le="0.5"}', *misspelt):
        [selector] = selectors(wrong)
        assert not is_exported(series, selector)


def test_every_alert_is_in_the_runbook_and_the_other_way_round() -> None:
    text = (ROOT / "docs/operations/runbook.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (Gpuplan\w+)$", text, re.MULTILINE) == [alert["alert"] for alert in ALERTS]


def test_prices_count_as_old_by_the_same_limit_everywhere() -> None:
    [alert] = [alert for alert in ALERTS if alert["alert"] == "GpuplanPricesOld"]
    assert f"> {USUAL_STALE_AFTER_HOURS:g} * 3600" in alert["expr"]


def test_the_example_scrapes_by_the_name_that_rules_take_for_granted() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text(encoding="utf-8"))
    assert [scrape_config["job_name"] for scrape_config in config["scrape_configs"]] == ["gpuplan"]
    assert config["rule_files"] == ["rules.yaml"]


def test_panels_have_ids_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in DASHBOARD["panels"])
