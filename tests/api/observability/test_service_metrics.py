"""Figures for Prometheus: what happened is counted, with labels that no user can make many of."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.observability.service_telemetry import Watching
from gpuplan.api.observability.telemetry_settings import TelemetrySettings
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(client: httpx.Client) -> Figures:
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(response.text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def figure(figures: Figures, name: str, **labels: str) -> float:
    return figures.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture(scope="module")
def watched(gpuplan: Services, served: Served) -> Iterator[httpx.Client]:
    """A service whose process counts plans and their stages."""
    watching, service = Watching(TelemetrySettings()), create_service(gpuplan)
    watching.watch(service)
    with served(service) as client:
        yield client


def test_a_plan_is_counted_with_its_proof_and_stages(watched: httpx.Client, job: dict[str, Any]) -> None:
    before = scraped(watched)
    watched.post("/v1/plans", json=job).raise_for_status()
    after = scraped(watched)

    def increase(name: str, **labels: str) -> float:
        return figure(after, name, **labels) - figure(before, name, **labels)

    route = {"method": "POST", "route": "/v1/plans", "status": "2xx"}
    assert increase("gpuplan_http_request_seconds_count", **route) == 1
    assert increase("gpuplan_plans_total", outcome="planned") == 1
    assert increase("gpuplan_plan_gap_bucket", le="0.0") == increase("gpuplan_plan_gap_count") == 1
    assert increase("gpuplan_plan_candidates_sum") > 10
    assert increase("gpuplan_solver_seconds_sum") > 0
    for stage in ("parse", "candidates", "solve", "store"):
        assert increase("gpuplan_plan_stage_seconds_count", stage=stage) == 1


def test_no_plan_is_an_outcome_of_its_own(watched: httpx.Client, hopeless: dict[str, Any]) -> None:
    before = scraped(watched)
    watched.post("/v1/plans", json=hopeless)
    assert figure(scraped(watched), "gpuplan_plans_total", outcome="infeasible") == 1 + figure(
        before, "gpuplan_plans_total", outcome="infeasible"
    )


def test_the_state_of_the_store_is_looked_up(watched: httpx.Client, gpuplan: Services) -> None:
    metrics = scraped(watched)
    assert figure(metrics, "gpuplan_store_up") == 1
    offers = sum(value for (name, _), value in metrics.items() if name == "gpuplan_offers")
    assert offers == len(gpuplan.context.columns())
    for provider in ("aws", "gcp", "azure"):
        newest, oldest = (
            figure(metrics, "gpuplan_price_age_seconds", provider=provider, row=row) for row in ("newest", "oldest")
        )
        assert 0 < newest <= oldest
    assert figure(metrics, "gpuplan_database_bytes") > 0
    assert ("gpuplan_runs", frozenset()) not in metrics


def test_scans_and_strange_methods_make_no_new_figures(watched: httpx.Client) -> None:
    watched.get("/a")
    watched.request("BREW", "/a")
    before = len(scraped(watched))
    for i in range(20):
        watched.get(f"/scan/{i}")
        watched.request(f"BREW{chr(65 + i)}", "/v1/plans")
        watched.get(f"/v1/plans/plan-{i}")
    assert len(scraped(watched)) <= before + 3 * 20  # three new children at most, each with its buckets


def test_a_store_that_is_away_is_a_figure_and_no_error(tmp_path: Path, served: Served) -> None:
    path = tmp_path / "broken.sqlite3"
    path.write_bytes(b"no database " * 200)
    with served(create_service(open_services(Environment(database_url=f"sqlite:///{path}")))) as client:
        assert figure(scraped(client), "gpuplan_store_up") == 0


_TWO_PROCESSES = """
import os, sys
from gpuplan.api.observability import service_metrics as metrics
child = os.fork()
metrics.request_answered("GET", "/healthz", 200, 0.001)
metrics.IN_FLIGHT.inc()
if child == 0:
    metrics.process_ends()
    os._exit(0)
os.waitpid(child, 0)
sys.stdout.write(metrics.exposition().decode())
"""


def test_processes_of_one_service_count_together(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _TWO_PROCESSES]
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    families = {family.name: family for family in text_string_to_metric_families(done.stdout)}
    counts = [
        sample.value for sample in families["gpuplan_http_request_seconds"].samples if sample.name.endswith("_count")
    ]
    assert counts == [2.0]
    # What a process that has ended had in flight is nobody's.
    assert [sample.value for sample in families["gpuplan_http_requests_in_flight"].samples] == [1.0]
