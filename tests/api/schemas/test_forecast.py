"""The forecast document: what is read, what is filled in and said, and what is refused by name."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.catalog.model.purchase_prices import host_usd, purchase_prices
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput

NOW = datetime(2026, 11, 21, tzinfo=UTC)
JOB: dict[str, Any] = {"workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"}, "deadline": "5d"}
RUNS: list[dict[str, Any]] = [{"job": JOB, "per_month": 4}]


def asked(**changes: Any) -> dict[str, Any]:
    return {"electricity_usd_per_kwh": 0.3, "jobs": RUNS} | changes


def test_rates_are_runs_a_year_in_every_scenario() -> None:
    forecast = parse_forecast(asked(), now=NOW)
    assert forecast.scenarios == (("expected", 1.0),)
    assert forecast.jobs[0].runs_per_year == (48.0,)
    three = parse_forecast(asked(jobs=[{"job": JOB, "per_year": {"low": 1, "expected": 2, "high": 9}}, *RUNS]), now=NOW)
    assert three.scenarios == (("low", 0.3), ("expected", 0.4), ("high", 0.3))
    assert [job.runs_per_year for job in three.jobs] == [(1.0, 2.0, 9.0), (48.0, 48.0, 48.0)]


def test_what_is_filled_in_is_said() -> None:
    assumptions = " ".join(parse_forecast(asked(), now=NOW).assumptions)
    for name in ("pue", "life_years", "residual_share", "discount_rate", "host"):
        assert name in assumptions


def test_a_quotation_goes_before_the_table() -> None:
    given = asked(machines=["RTX 4090"], prices=[{"accelerator": "RTX 4090", "usd": 2500}])
    by_name = {machine.name: machine for machine in parse_forecast(given, now=NOW).machines}
    assert by_name["RTX-4090"].usd == 2500 + host_usd(1)
    assert by_name["RTX-4090 (4 cards)"].usd == 4 * 2500 + host_usd(4)
    assert by_name["RTX-4090"].source == "the forecast document"


def test_cards_for_machines_that_you_have_cost_no_host_and_take_slots() -> None:
    forecast = parse_forecast(asked(machines=["RTX 4090"], limits={"slots": 2}), now=NOW)
    assert [(machine.name, machine.slots) for machine in forecast.machines] == [
        ("RTX-4090", 1),
        ("RTX-4090 (2 cards)", 2),
    ]
    assert forecast.machines[0].usd == purchase_prices()["RTX-4090"].usd
    assert dict(forecast.turned_down)["RTX-4090 (4 cards)"] == "takes 4 slots, and only 2 are available"


@pytest.mark.parametrize(
    ("limits", "machine", "reason"),
    [
        ({"ecc": True}, "RTX-4090", "no ECC"),
        ({"vendors": ["amd"]}, "RTX-4090", "is made by NVIDIA"),
        ({"power_watts": 500}, "RTX-4090", "draws 675 W"),
        ({"cooling_watts": 500}, "RTX-4090", "gives off 675 W"),
        ({"upfront_usd": 2000}, "RTX-4090", "costs 2,799 USD"),
    ],
)
def test_a_machine_without_room_is_turned_down_with_the_reason(
    limits: dict[str, Any], machine: str, reason: str
) -> None:
    forecast = parse_forecast(asked(machines=["RTX 4090", "H100-80GB-PCIe"], limits=limits), now=NOW)
    assert reason in dict(forecast.turned_down)[machine]


def test_no_machines_need_no_electricity() -> None:
    forecast = parse_forecast({"machines": [], "jobs": RUNS}, now=NOW)
    assert forecast.machines == ()


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"jobs": []}, "jobs", "empty"),
        ({"jobs": [{"job": JOB}]}, "jobs[0].per_month", "either per_month or per_year"),
        ({"jobs": [{"job": JOB, "per_month": -2}]}, "jobs[0].per_month", "negative"),
        ({"jobs": [{"job": JOB, "per_month": {"low": -1, "expected": 2, "high": 3}}]}, "jobs[0].per_month", "negative"),
        ({"jobs": [{"job": JOB, "per_month": 2, "per_year": 3}]}, "jobs[0].per_month", "beside per_year"),
        ({"jobs": [{"job": JOB, "per_year": {"low": 5, "expected": 2, "high": 9}}]}, "jobs[0].per_year.low", "order"),
        ({"jobs": [{"job": JOB, "per_year": {"low": 5, "high": 9}}]}, "jobs[0].per_year.expected", "missing"),
        ({"jobs": [{"job": JOB, "per_year": 2, "growth_per_year": "900%"}]}, "jobs[0].growth_per_year", "500%"),
        ({"jobs": [{"job": JOB | {"start": "2027-01-01T00:00Z"}, "per_year": 2}]}, "jobs[0].job.start", "forecast"),
        ({"jobs": [{"job": JOB | {"deadlne": "3d"}, "per_year": 2}]}, "jobs[0].job.deadlne", "deadline"),
        (
            {"jobs": [{"job": {"workload": JOB["workload"], "deadline": "-3d"}, "per_year": 2}]},
            "jobs[0].job.deadline",
            "",
        ),
        ({"life_years": 0}, "life_years", "0"),
        ({"horizon_years": 0}, "horizon_years", "0"),
        ({"horizon_years": 99}, "horizon_years", "15"),
        ({"pue": 0.8}, "pue", "below 1"),
        ({"electricity_usd_per_kwh": None}, "electricity_usd_per_kwh", "missing"),
        ({"electricity_usd_per_kwh": -1}, "electricity_usd_per_kwh", "-1"),
        ({"discount_rate": 1.5}, "discount_rate", "1.5"),
        ({"residual_share": "120%"}, "residual_share", "120%"),
        ({"machines": ["RTX 409"]}, "machines[0]", "RTX-4090"),
        ({"prices": [{"accelerator": "H1000", "usd": 5}]}, "prices[0].accelerator", "H100"),
        ({"prices": [{"accelerator": "L4", "usd": 0}]}, "prices[0].usd", "0"),
        ({"prices": [{"accelerator": "L4", "usd": 5, "residual_usd": 9}]}, "prices[0].residual_usd", "more than usd"),
        ({"prices": [{"accelerator": "L4", "usd": 5}] * 2}, "prices[1].name", "two prices"),
        ({"prices": [{"accelerator": "TPU-v5e", "usd": 5}]}, "prices[0].power_watts", "not published"),
        (
            {"prices": [{"accelerator": "L4", "accelerators": 3, "form": "card", "usd": 5}]},
            "prices[0].accelerators",
            "node",
        ),
        ({"prices": [{"accelerator": "L4", "usd": 5, "name": "x" * 150}]}, "prices[0].name", "at most 100"),
        ({"prices": [{"accelerator": "L4", "usd": 5, "name": "RTX-4090 (2 cards)"}]}, "prices", "other names"),
        ({"commitments": ["spot"]}, "commitments[0]", "no term"),
        ({"scenarios": {"calm": 0.5, "busy": 0.4}}, "scenarios", "add up to 1"),
        ({"host": "buy", "limits": {"slots": 2}}, "host", "contradicts"),
        ({"host": "have"}, "limits.slots", "missing"),
        ({"host_usd": 500, "limits": {"slots": 2}}, "host_usd", "host: have"),
        ({"limits": {"slots": -1}}, "limits.slots", "-1"),
        ({"limits": {"watts": 1}}, "limits.watts", "power_watts"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        parse_forecast(asked(**changes), now=NOW)
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert field in faults
    assert message in faults[field]


def test_a_scenario_that_is_not_named_is_refused() -> None:
    given = asked(scenarios={"calm": "60%", "busy": "40%"}, jobs=[{"job": JOB, "per_year": {"calm": 1, "bussy": 2}}])
    with pytest.raises(UnusableInput, match=r"jobs\[0\].per_year.bussy: is not a scenario; name calm, busy"):
        parse_forecast(given, now=NOW)


def test_every_purchase_price_has_a_source_a_date_and_a_machine_that_can_be_had() -> None:
    for row in purchase_prices().values():
        assert "http" in row.source
        assert NOW.date() > datetime.fromisoformat(row.as_of).date()
    names = {machine.name for machine in parse_forecast(asked(), now=NOW).machines}
    assert set(purchase_prices()) <= names


def test_the_example_is_a_forecast_with_something_to_buy() -> None:
    path = Path(__file__).parents[3] / "examples" / "forecasts" / "lab.yaml"
    forecast = parse_forecast(read_document(path.read_bytes(), name=path.name), now=NOW)
    assert len(forecast.jobs) == 2
    assert any(machine.name == "RTX-PRO-6000-Blackwell" for machine in forecast.machines)
