"""Every example that is shipped has an answer at today's prices: the page's, and those of the documented API.

That job files have a plan is seen where their short answers are (`tests/api/presentation/test_short_answer.py`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.web.examples import FORECAST, JOBS, PORTFOLIO

FILES = Path(__file__).resolve().parents[2] / "examples"


def test_the_example_inventory_is_planned_on(database_url: str) -> None:
    with_machines = open_services(Environment(database_url=database_url, inventory=FILES / "inventory.yaml"))
    job = yaml.safe_load((FILES / "mnist-cnn.yaml").read_text(encoding="utf-8"))
    assert with_machines.plans.plan(job, save=False).outcome == "planned"


@pytest.mark.parametrize("name", JOBS)
def test_an_example_of_the_page_has_a_plan(gpuplan: Services, name: str) -> None:
    assert gpuplan.plans.plan(JOBS[name]["job"], save=False).outcome == "planned"


@pytest.mark.slow(reason="one long case")
def test_the_pages_portfolio_runs_every_job_and_its_forecast_is_decided(gpuplan: Services) -> None:
    answer = gpuplan.portfolios.plan(yaml.safe_load(PORTFOLIO), iterations=50, seed=0).portfolio
    assert answer.left_out == ()
    assert gpuplan.procurement.decide(yaml.safe_load(FORECAST)).outcome == "decided"


def documented(described: dict[str, Any], path: str) -> Iterator[Any]:
    """The examples of a body, as a reader of the OpenAPI document sees them."""
    for example in described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"].values():
        yield example["value"]


def test_the_documented_examples_of_jobs_and_portfolios_have_plans(client: httpx.Client, gpuplan: Services) -> None:
    described = client.get("/openapi.json").json()
    jobs = [*documented(described, "/v1/plans"), *described["components"]["schemas"]["JobDocument"]["examples"]]
    assert len(jobs) >= 3
    for job in jobs:
        assert gpuplan.plans.plan(job, save=False).outcome == "planned", job
    for portfolio in documented(described, "/v1/portfolios"):
        assert gpuplan.portfolios.plan(portfolio, iterations=50, seed=0).portfolio.left_out == (), portfolio
