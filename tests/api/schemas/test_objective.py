"""What a job may want least of, and the carbon that it may cause."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.api.schemas.portfolio import parse_portfolio
from gpuplan.api.schemas.why import parse_why
from gpuplan.catalog.runtime.errors import UnusableInput

NOW = datetime(2026, 11, 21, tzinfo=UTC)
JOB: dict[str, Any] = {"workload": {"kind": "preset", "model": "gpt2", "tokens": "1B"}, "deadline": "2d"}


@pytest.mark.parametrize(
    ("given", "meant"), [("cost", "cost"), ("CO2", "carbon"), ("Carbon", "carbon"), ("speed", "time"), ("time", "time")]
)
def test_an_objective_is_understood_however_it_is_written(given: str, meant: str) -> None:
    assert parse_job(JOB | {"objective": given}, now=NOW).objective == meant


def test_a_job_without_an_objective_is_planned_for_least_cost_at_any_carbon() -> None:
    job = parse_job(JOB, now=NOW)
    assert (job.objective, job.constraints.carbon_budget_kg) == ("cost", None)


def test_objective_and_carbon_budget_survive_the_echo() -> None:
    given = JOB | {"objective": "carbon", "constraints": {"carbon_budget_kg": "1.5 t"}}
    echoed = canonical(parse_job(given, now=NOW))
    again = parse_job(echoed, now=NOW)
    assert (again.objective, again.constraints.carbon_budget_kg) == ("carbon", 1500.0)


@pytest.mark.parametrize("value", ["beauty", 1, None, ["cost"], ""])
def test_another_objective_is_refused_with_those_there_are(value: object) -> None:
    with pytest.raises(UnusableInput, match=r"objective: .*write one of cost, carbon, time"):
        parse_job(JOB | {"objective": value}, now=NOW)


@pytest.mark.parametrize("value", ["0", -5, "2 lb", True, "much"])
def test_no_amount_of_carbon_is_refused_at_its_field(value: object) -> None:
    with pytest.raises(UnusableInput) as caught:
        parse_job(JOB | {"constraints": {"carbon_budget_kg": value}}, now=NOW)
    assert caught.value.faults[0].path == ("constraints", "carbon_budget_kg")


def test_many_jobs_together_have_no_objective_of_their_own() -> None:
    with pytest.raises(UnusableInput) as caught:
        parse_portfolio({"jobs": [JOB, JOB | {"objective": "carbon"}]}, now=NOW)
    assert caught.value.faults[0].path == ("jobs", 1, "objective")
    job = {name: value for name, value in JOB.items() if name != "start"} | {"objective": "time"}
    with pytest.raises(UnusableInput) as caught:
        parse_forecast({"horizon_years": 3, "jobs": [{"job": job, "per_month": 4}]}, now=NOW)
    assert ("jobs", 0, "job", "objective") in {fault.path for fault in caught.value.faults}


@pytest.mark.parametrize("name", ["", "  ", 7, "x" * 101, "a\nb"])
def test_what_is_no_name_is_refused_where_it_stands(name: object) -> None:
    for field in ("not", "with"):
        with pytest.raises(UnusableInput) as caught:
            parse_why({"job": JOB, field: name}, now=NOW)
        assert caught.value.faults[0].path == (field,)


def test_a_question_without_a_job_is_refused() -> None:
    with pytest.raises(UnusableInput, match="job: is missing"):
        parse_why({"not": "H100"}, now=NOW)
