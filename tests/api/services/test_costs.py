"""Costs by month: which plans count, how a plan is split over months and names, reports, and budgets of teams."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpuplan.api.schemas.costs_answer import Costs, CostTotal
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import Identity
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.ownership import NotOwned
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
START = datetime(2026, 11, 30, 23, tzinfo=UTC)
MONTHS = ("2026-11", "2026-12")


@pytest.fixture(scope="module")
def alone(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Services:
    """A store whose plans no other test adopts."""
    path = tmp_path_factory.mktemp("costs") / "store.db"
    path.write_bytes(embedded_store.read_bytes())
    return open_services(Environment(database_url=f"sqlite:///{path}"))


@pytest.fixture(scope="module")
def plans(alone: Services) -> dict[str, dict[str, Any]]:
    """Plans of three jobs that begin an hour before the month ends, by name; that of `idea` does not count."""
    made = {name: planned(alone, name, team) for name, team in (("chat", "research"), ("ads", "sales"), ("idea", ""))}
    for name in ("chat", "ads"):
        alone.costs.adopt(made[name]["id"], now=NOW)
    return made


def planned(gpuplan: Services, name: str, team: str) -> dict[str, Any]:
    job: dict[str, Any] = {
        "name": name,
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
        "training": {"method": "lora", "precision": "bf16"},
        "start": START.isoformat(),
        "constraints": {"price_kinds": ["on_demand"], "max_phases": 1},
    }
    plan: dict[str, Any] = wire(gpuplan.plans.plan(job | ({"team": team} if team else {}), now=NOW))["plan"]
    return plan


def micros(plan: dict[str, Any]) -> int:
    return usd_micros(plan["cost_usd"]["expected"])


def total_micros(costs: Costs) -> dict[str, int]:
    return {name: usd_micros(getattr(costs.total, f"{name}_usd")) for name in ("planned", "actual", "expected")}


def test_a_plan_is_split_over_its_months_by_its_hours(alone: Services, plans: dict[str, dict[str, Any]]) -> None:
    parts = [alone.costs.of_month(month, "team") for month in MONTHS]
    assert [{row.plan_id for row in part.plans} for part in parts] == [{plans["chat"]["id"], plans["ads"]["id"]}] * 2
    whole = micros(plans["chat"]) + micros(plans["ads"])
    assert sum(total_micros(part)["planned"] for part in parts) == pytest.approx(whole, abs=10)
    share = 1.0 / plans["chat"]["phases"][0]["hours"]
    assert total_micros(parts[0])["planned"] == pytest.approx(whole * share, rel=1e-3)
    assert alone.costs.of_month("2027-01").total == CostTotal(
        planned_usd="0.00", actual_usd="0.00", expected_usd="0.00", plans=0
    )


@pytest.mark.parametrize("by", ["team", "project", "provider", "kind"])
def test_the_rows_add_up_to_the_total(alone: Services, plans: dict[str, dict[str, Any]], by: str) -> None:
    costs = alone.costs.of_month("2026-11", by)
    for name, whole in total_micros(costs).items():
        assert sum(usd_micros(getattr(row, f"{name}_usd")) for row in costs.rows) == whole
    names = {row.name for row in costs.rows}
    phase = plans["chat"]["phases"][0]
    wanted = {"team": {"research", "sales"}, "project": {""}, "provider": {phase["provider"]}, "kind": {"on_demand"}}
    assert names == wanted[by]


def test_the_focus_dataset_has_the_planned_charges_of_the_month(
    alone: Services, plans: dict[str, dict[str, Any]]
) -> None:
    rows = list(csv.DictReader(io.StringIO(alone.costs.focus("2026-12"))))
    charged = sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0))
    assert usd_micros(charged) == total_micros(alone.costs.of_month("2026-12"))["planned"]
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-12-01T00:00:00Z"}
    assert {row["Tags"] for row in rows} == {'{"job": "chat", "team": "research"}', '{"job": "ads", "team": "sales"}'}


def test_a_report_makes_a_plan_count_and_its_hours_are_the_actual_cost(alone: Services) -> None:
    plan = planned(alone, "run", "ops")
    hours, expected = plan["phases"][0]["hours"], micros(plan)

    def of_team() -> list[int]:
        months = [alone.costs.of_month(month, "team") for month in MONTHS]
        rows = [row for costs in months for row in costs.rows if row.name == "ops"]
        return [
            sum(usd_micros(getattr(row, f"{name}_usd")) for row in rows) for name in ("planned", "actual", "expected")
        ]

    def state() -> str:
        [row] = (row for row in alone.costs.of_month("2026-11").plans if row.plan_id == plan["id"])
        return row.state

    assert of_team() == [0, 0, 0]
    at = START
    for share, running in ((0.5, True), (0.9, True), (1.0, False)):
        at += timedelta(hours=1)
        figures = {"hours": hours * share * 1.2} | ({"running": True, "share_done": share} if running else {})
        alone.actuals.report(plan["id"], figures, now=at)
        wanted = expected * share * 1.2
        assert of_team() == pytest.approx([expected, wanted, max(expected, wanted)], rel=0.01)
        assert state() == ("running" if running else "finished")
    # A second run of the same plan, half as long.
    alone.actuals.report(plan["id"], {"hours": hours * 0.6}, now=at + timedelta(hours=1))
    assert of_team() == pytest.approx([expected, 1.8 * expected, 1.8 * expected], rel=0.01)
    alone.costs.drop(plan["id"])
    assert of_team() == [0, 0, 0]


def test_a_budget_says_what_is_left_and_is_for_every_month(alone: Services, plans: dict[str, dict[str, Any]]) -> None:
    alone.costs.set_budget({"team": "research", "usd": "1"})
    alone.costs.set_budget({"team": "nobody", "usd": "$5k"})
    rows = {row.name: row for row in alone.costs.of_month("2026-12", "team").rows}
    assert (rows["nobody"].budget_usd, rows["nobody"].left_usd, rows["nobody"].plans) == ("5000.00", "5000.00", 0)
    research = rows["research"]
    assert research.left_usd is not None
    assert usd_micros(research.left_usd) == 1_000_000 - usd_micros(research.expected_usd)
    assert research.left_usd.startswith("-")
    assert rows["sales"].budget_usd is None
    assert all(row.budget_usd is None for row in alone.costs.of_month("2026-12", "kind").rows)
    alone.costs.set_budget({"team": "nobody"})
    alone.costs.set_budget({"team": "research"})
    assert {row.name for row in alone.costs.of_month("2026-12", "team").rows} == {"research", "sales"}


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda costs: costs.of_month("2026-13"), "month"),
        (lambda costs: costs.of_month("november"), "month"),
        (lambda costs: costs.of_month("2026-11 "), "month"),
        (lambda costs: costs.focus("11-2026"), "month"),
        (lambda costs: costs.of_month("2026-11", "pod"), "by"),
        (lambda costs: costs.set_budget({"team": "research", "usd": -5}), "usd"),
        (lambda costs: costs.set_budget({"team": "research", "usd": "nan"}), "usd"),
        (lambda costs: costs.set_budget({"usd": 5}), "team"),
        (lambda costs: costs.set_budget({"team": "research", "eur": 5}), "eur"),
    ],
)
def test_bad_input_is_refused_by_its_field(alone: Services, call: Callable[[Any], object], field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        call(alone.costs)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_others_see_and_count_only_what_they_may(alone: Services) -> None:
    def as_user(name: str) -> Requester:
        return Requester(identity=Identity(id=name, name=name, scopes=frozenset({"read", "plan"}), via="key"))

    with acting_as(as_user("ann")):
        plan_id = planned(alone, "secret", "anns")["id"]
        alone.costs.adopt(plan_id)
        assert "anns" in {row.name for row in alone.costs.of_month("2026-12", "team").rows}
    with acting_as(as_user("bob")):
        assert "anns" not in {row.name for row in alone.costs.of_month("2026-12", "team").rows}
        for change in (alone.costs.adopt, alone.costs.drop):
            with pytest.raises((NotStored, NotOwned)):
                change(plan_id)
    alone.costs.drop(plan_id)


def test_the_command_the_service_and_the_page_show_a_month(run: Callable[..., Ended], client: httpx.Client) -> None:
    job = {"name": "by hand", "team": "=cmd()", "workload": {"kind": "preset", "model": "bert-large", "tokens": "3B"}}
    plan_id = client.post("/v1/plans", json=job | {"start": "2031-01-30T00:00Z"}).json()["plan"]["id"]
    assert "No plan counts in this month" in client.get("/costs?month=2031-01").text
    assert client.post("/costs/plans", data={"plan": plan_id, "month": "2031-01", "by": "kind"}).headers[
        "location"
    ] == ("/costs?month=2031-01&by=kind")
    assert run("costs", "budget", "=cmd()", "0.01").out == "=cmd(): $0.01 a month\n"
    ended = run("costs", "--month", "2031-01")
    assert (ended.code, ended.err) == (0, "")
    assert "=cmd() is $" in ended.out
    assert "over its budget of $0.01" in ended.out
    assert "'=cmd()" in run("costs", "--month", "2031-01", "--csv").out
    page = client.get("/costs?month=2031-01").text
    assert f'href="/plans/{plan_id}"' in page
    assert "over its budget" in page
    answer = client.get("/v1/costs?month=2031-01&by=kind").json()
    assert answer["total"]["plans"] == 1
    for path in ("/costs.csv?month=2031-01", "/v1/costs/export?month=2031-01"):
        assert "'=cmd()" in client.get(path).text
    assert plan_id in client.get("/costs.focus.csv?month=2031-01").text
    refused = client.post("/costs/budgets", data={"team": "x", "usd": "-5", "month": "2031-01", "seen": "{}"})
    assert refused.status_code == 422
    assert "is negative" in refused.text
    assert client.get("/costs?month=2031-1").status_code == 422
    assert run("costs", "budget", "x", "-5").err.startswith("gpuplan: usd: ")
    assert run("costs", "--json", "budget", "x", "5").err.startswith("gpuplan: json: stands before budget")
    assert run("costs", "drop", plan_id).out == f"{plan_id} does not count in the costs\n"
    assert run("costs", "budget", "=cmd()", "none").code == 0
    assert client.get("/v1/costs?month=2031-01").json()["rows"] == []


def test_a_budget_changed_in_another_tab_is_shown_and_not_overwritten(client: httpx.Client) -> None:
    def seen_by_a_reader() -> str:
        return unescape(re.findall(r'name="seen" value="([^"]*)"', client.get("/costs").text)[0])

    def sent(usd: str, seen: str) -> httpx.Response:
        return client.post("/costs/budgets", data={"team": "tabs", "usd": usd, "seen": seen})

    first, second = seen_by_a_reader(), seen_by_a_reader()
    assert sent("50", first).status_code == 303
    refused = sent("60", second)
    assert refused.status_code == 409
    assert "the budget of tabs was set to $50.00 elsewhere" in refused.text
    assert 'value="60"' in refused.text
    again = unescape(re.findall(r'name="seen" value="([^"]*)"', refused.text)[0])
    assert sent("60", again).status_code == 303
    assert sent("", first).status_code == 409
    assert sent("", again).status_code == 409
    newest = seen_by_a_reader()
    assert sent("", newest).status_code == 303
    gone = sent("70", newest)
    assert gone.status_code == 409
    assert "was removed elsewhere" in gone.text
    for wrong in ("", "[]", '{"tabs": "x"}'):
        assert sent("70", wrong).status_code == 422
