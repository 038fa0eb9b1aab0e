"""Own, commit or rent over a small catalogue: figures worked out by hand, and the laws that hold whatever the figures."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.schemas.forecast import parse_forecast
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.procurement import ProcurementPlan
from gpuplan.planner.model.settings import Discount, PlannerSettings
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.procurement.procurement_answer import typed_answer
from gpuplan.planner.procurement.procurement_decision import decide
from gpuplan.planner.procurement.procurement_plan import Decided, Impossible
from gpuplan.planner.procurement.served_jobs import served
from gpuplan.planner.workload import work_of
from tests.planner.procurement import small
from tests.planner.spot_settings import replaced_at_once

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)


def catalogue(**usd_per_hour: float) -> Columns:
    """One machine with an L4 of a cloud without savings plans."""
    return small.catalogue(("gcp", "us-central1"), "g2-standard-4", **usd_per_hour)


def forecast(**changes: Any) -> Forecast:
    """A year of one job with one card to buy, nothing discounted, no residual value."""
    given = {
        "horizon_years": 1,
        "discount_rate": 0,
        "residual_share": 0,
        "life_years": 1,
        "electricity_usd_per_kwh": 0.25,
        "host_usd": 100,
        "machines": ["L4"],
        "prices": [{"accelerator": "L4", "usd": 1900, "power_watts": 200, "form": "node"}],
        "jobs_wait": True,
        "commitments": [],
        "jobs": [{"job": {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}}, "per_year": 400}],
    }
    return parse_forecast(given | changes, now=NOW)


def decided(asked: Forecast, columns: Columns, settings: PlannerSettings = SETTINGS) -> Decided:
    decision = decide(asked, columns, settings)
    assert isinstance(decision, Decided)
    return decision


def test_a_machine_is_bought_when_its_work_costs_more_to_rent_and_pays_for_itself_on_the_day_by_hand() -> None:
    columns, asked = catalogue(on_demand=2.0), forecast()
    sources = served(asked, columns, SETTINGS)
    hours, kwh = float(sources.machine_hours[0, 0]), float(sources.kwh[0, 0])
    rented = sources.rented[0]
    assert rented is not None
    saved = 400 * (rented.cost.expected / 1e6 - kwh * 0.25)
    busy = 400 * hours / HOURS_PER_YEAR
    assert kwh == pytest.approx(hours * 0.2)
    assert busy < 1, "one machine is enough for the figures of this test"
    decision = decided(asked, columns)
    [priced_configurations] = decision.buy
    assert priced_configurations.units == 1
    assert priced_configurations.busy == pytest.approx(busy)
    assert priced_configurations.breaks_even_years == pytest.approx(1900 / saved, rel=1e-6)
    assert priced_configurations.saves_usd == pytest.approx(saved - 1900)
    assert decision.costs.total_usd == pytest.approx(1900 + 400 * kwh * 0.25)
    assert decision.costs.total_usd == pytest.approx(float(decision.proof.objective_usd))
    assert decision.rent[0].share == 0


def test_nothing_is_bought_when_renting_costs_less() -> None:
    decision = decided(forecast(), catalogue(on_demand=0.05))
    assert (decision.buy, decision.commit) == ((), ())
    assert decision.rent[0].share == 1
    assert decision.costs.total_usd == pytest.approx(decision.costs.rent_only_usd)


def test_a_term_is_committed_to_when_its_share_of_the_year_is_busy() -> None:
    asked = forecast(machines=[], commitments=["committed_1y"])
    hours = float(served(asked, catalogue(on_demand=2.0, committed_1y=1.0), SETTINGS).machine_hours[0, 0])
    share = 400 * hours / HOURS_PER_YEAR
    for ratio, units in ((share * 0.9, 1), (share * 1.1, 0)):
        decision = decided(asked, catalogue(on_demand=2.0, committed_1y=2.0 * ratio))
        assert sum(commit.units for commit in decision.commit) == units
    assert decision.sensitivity.electricity is None


def test_a_whole_term_is_owed_although_the_horizon_ends_within_it() -> None:
    asked = forecast(machines=[], commitments=["committed_3y"], horizon_years=1)
    decision = decided(asked, catalogue(on_demand=20.0, committed_3y=0.5))
    [term] = decision.commit
    assert term.obligation_usd == pytest.approx(0.5 * 3 * HOURS_PER_YEAR)


def test_a_negotiated_discount_changes_what_is_bought() -> None:
    columns = catalogue(on_demand=2.0)
    assert decided(forecast(), columns).buy
    cheap = replaced_at_once(discounts=(Discount(provider="gcp", percent=95.0),))
    assert not decided(forecast(), columns, cheap).buy


@pytest.mark.slow(reason="one long case")
def test_costs_never_fall_with_more_runs_dearer_power_or_less_room() -> None:
    columns = catalogue(on_demand=2.0)
    base = decided(forecast(jobs_wait=False), columns).costs.total_usd
    job = forecast().jobs[0]
    asked = forecast(jobs_wait=False)
    busier = replace(asked, jobs=(replace(job, runs_per_year=(500.0,)),))
    dearer = replace(asked, electricity_usd_per_kwh=0.5)
    confined = replace(asked, limits=replace(asked.limits, machines=0))
    for other in (busier, dearer, confined):
        assert decided(other, columns).costs.total_usd >= base * (1 - 1e-9)


def test_the_change_with_fewer_runs_lies_where_the_machine_no_longer_pays() -> None:
    columns, asked = catalogue(on_demand=2.0), forecast()
    sources = served(asked, columns, SETTINGS)
    rented = sources.rented[0]
    assert rented is not None
    saved = 400 * (rented.cost.expected / 1e6 - float(sources.kwh[0, 0]) * 0.25)
    below = decided(asked, columns).sensitivity.utilisation.changes_below
    assert below is not None
    assert below.answer == "rent everything"
    assert below.times_the_runs == pytest.approx(1900 / saved, rel=0.06)


def test_a_job_that_nothing_can_do_is_named() -> None:
    job = {"workload": {"kind": "preset", "model": "gpt3-175b", "tokens": "1B"}, "deadline": "1h"}
    decision = decide(forecast(jobs=[{"job": job, "per_year": 1}]), catalogue(on_demand=2.0), SETTINGS)
    assert isinstance(decision, Impossible)
    assert decision.jobs == (0,)


def test_a_job_that_cannot_be_rented_waits_for_a_machine_instead_of_for_one_more() -> None:
    job = {
        "workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"},
        "constraints": {"price_kinds": ["owned"]},
    }
    decision = decided(forecast(jobs=[{"job": job, "per_year": 400}], jobs_wait=False), catalogue(on_demand=2.0))
    assert [purchase.units for purchase in decision.buy] == [1]
    assert decision.costs.rent_only_usd is None
    assert any("wait until a machine is free" in assumption for assumption in decision.assumptions)


def test_growth_makes_each_year_a_period_and_costs_what_its_years_cost() -> None:
    grown = forecast(horizon_years=2, life_years=2, machines=[])
    grown = replace(grown, jobs=(replace(grown.jobs[0], growth=1.0),))
    flat = decided(forecast(machines=[]), catalogue(on_demand=2.0)).costs.total_usd
    assert decided(grown, catalogue(on_demand=2.0)).costs.total_usd == pytest.approx(3 * flat)


@pytest.mark.slow(reason="one long case")
def test_the_same_forecast_gives_the_same_answer() -> None:
    columns = catalogue(on_demand=2.0, committed_1y=1.0)
    asked = forecast(jobs_wait=False, commitments=["committed_1y"])
    first, second = (typed_answer(decide(asked, columns, SETTINGS), SETTINGS, version="1") for _ in range(2))
    assert first == second
    assert isinstance(first, ProcurementPlan)
    assert first.id.startswith("buy-")


@pytest.mark.slow(reason="one long case")
def test_a_forecast_beyond_what_can_be_solved_is_refused_with_what_to_leave_out() -> None:
    job = {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}}
    jobs = [{"job": job, "per_year": 40 + i, "growth_per_year": "1%"} for i in range(50)]
    chances = {f"s{i}": "5%" for i in range(20)}
    asked = forecast(jobs=jobs, scenarios=chances, horizon_years=15, jobs_wait=False, machines=None)
    with pytest.raises(UnusableInput, match="jobs: with these scenarios and years come to"):
        decide(asked, catalogue(on_demand=200.0), SETTINGS)


def test_what_the_user_s_own_runs_took_counts_for_machines_to_buy_and_to_rent() -> None:
    columns, asked = catalogue(on_demand=2.0), forecast()
    job = asked.jobs[0].job
    slow = PastRun(task=work_of(job.workload, job.training).task, accelerator="L4", log_hours=math.log(3.0))
    plain, taught = served(asked, columns, SETTINGS), served(replace(asked, past_runs=(slow,) * 20), columns, SETTINGS)
    assert taught.machine_hours[0, 0] > 1.5 * plain.machine_hours[0, 0]
    before, after = plain.rented[0], taught.rented[0]
    assert before is not None
    assert after is not None
    assert after.cost.expected > 1.5 * before.cost.expected
