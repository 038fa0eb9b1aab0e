"""What the user has already serves first: figures worked out by hand."""

from datetime import timedelta

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.settings import ExistingCommitment, ExistingSpendCommitment
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.procurement.served_jobs import served
from tests.planner.procurement.small import JOB, NOW, SETTINGS, an_own_l4, catalogue, decided, forecast
from tests.planner.spot_settings import replaced_at_once

COMMITMENT = ExistingCommitment(
    provider="aws", region="us-east-1", instance_type="g6.xlarge", price_kind="reserved_1y", nodes=1
)


def test_an_own_machine_does_the_work_for_its_electricity_alone() -> None:
    asked, columns, owned = forecast(), catalogue(on_demand=2.0), an_own_l4()
    given = served(asked, columns, SETTINGS, owned)
    decision = decided(asked, columns, owned=owned)
    assert decision.buy == ()
    [used] = decision.use
    assert used.name == "old"
    assert used.busy_share == pytest.approx(400 * float(given.machine_hours[1, 0]) / HOURS_PER_YEAR)
    assert decision.costs.total_usd == pytest.approx(400 * float(given.kwh[1, 0]) * 0.4)
    assert decision.costs.stay_usd == pytest.approx(decision.costs.total_usd)


def test_an_own_machine_whose_electricity_costs_more_than_renting_stands_still() -> None:
    decision = decided(forecast(machines=[]), catalogue(on_demand=0.05), owned=an_own_l4())
    assert [usage.busy_share for usage in decision.use] == [0]
    assert decision.rent[0].share == 1


def test_a_machine_that_is_free_half_of_the_time_does_half_the_work() -> None:
    half = [
        {"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "from": "00:00", "to": "12:00", "timezone": "UTC"}
    ]
    columns, asked = catalogue(on_demand=2.0), forecast(machines=[])
    whole = served(asked, columns, SETTINGS, an_own_l4()).machine_hours[0, 0]
    owned = an_own_l4(free_windows=half)
    assert served(asked, columns, SETTINGS, owned).machine_hours[0, 0] == pytest.approx(2 * whole)
    busy = forecast(machines=[], jobs=[{"job": JOB, "per_year": float(HOURS_PER_YEAR / whole)}])
    assert decided(busy, columns, owned=owned).rent[0].share == pytest.approx(0.5)


@pytest.mark.slow(reason="one long case")
def test_only_what_is_beyond_the_owned_machines_is_bought() -> None:
    columns = catalogue(on_demand=20.0)
    hours = float(served(forecast(), columns, SETTINGS, an_own_l4()).machine_hours[0, 0])
    asked = forecast(jobs=[{"job": JOB, "per_year": 2.9 * HOURS_PER_YEAR / hours}])
    alone, beside = decided(asked, columns), decided(asked, columns, owned=an_own_l4())
    assert [purchase.units for purchase in alone.buy] == [3]
    assert [purchase.units for purchase in beside.buy] == [2]


def test_a_held_reservation_costs_nothing_more_until_it_ends() -> None:
    columns, settings = catalogue(on_demand=2.0, reserved_1y=1.0), replaced_at_once(held=(COMMITMENT,))
    decision = decided(forecast(machines=[]), columns, settings)
    storage = 400 * float(served(forecast(machines=[]), columns, settings).other_usd[0, 0])
    assert decision.costs.total_usd == pytest.approx(storage)
    rented = decided(forecast(machines=[]), columns).costs.total_usd
    ends = (NOW + timedelta(hours=HOURS_PER_YEAR / 4)).isoformat()
    quarter = decided(forecast(machines=[], held_until=ends), columns, settings)
    assert quarter.costs.total_usd == pytest.approx(0.75 * rented + 0.25 * storage)


def test_a_savings_plan_is_committed_to_as_far_as_it_is_used_for_an_even_load() -> None:
    asked = forecast(machines=[], commitments=["savings_plan_1y"])
    columns = catalogue(on_demand=2.0, savings_plan_1y=1.2)
    decision = decided(asked, columns)
    run = decided(forecast(machines=[]), columns).rent[0].choice
    assert run is not None
    hours = run.hours.expected
    [plan] = decision.spend
    assert plan.usd_per_hour == pytest.approx(400 * hours * 1.2 / HOURS_PER_YEAR)
    assert plan.busy == pytest.approx(1.0)
    storage = (run.cost.storage + run.cost.egress) / 1e6
    assert decision.costs.total_usd == pytest.approx(400 * (hours * 1.2 + storage))
    assert plan.obligation_usd == pytest.approx(plan.usd_per_hour * HOURS_PER_YEAR)


@pytest.mark.parametrize("rate", [0.3, 0.8, 1.4, 1.9])
def test_a_savings_plan_for_a_load_that_varies_is_the_level_that_is_busy_as_often_as_its_rate_asks(rate: float) -> None:
    chances = {"quiet": "20%", "usual": "50%", "busy": "30%"}
    runs = {"quiet": 100, "usual": 400, "busy": 900}
    asked = forecast(
        machines=[], commitments=["savings_plan_1y"], scenarios=chances, jobs=[{"job": JOB, "per_year": runs}]
    )
    columns = catalogue(on_demand=2.0, savings_plan_1y=rate)
    decision = decided(asked, columns)
    run = decided(forecast(machines=[]), columns).rent[0].choice
    assert run is not None
    # The committed level is worth it while P(load above it) x 2.0 exceeds the rate.
    above = {100: 1.0, 400: 0.8, 900: 0.3}
    level = max((n for n, p in above.items() if p * 2.0 > rate), default=0)
    committed = sum(spend.usd_per_hour for spend in decision.spend)
    assert committed == pytest.approx(level * run.hours.expected * rate / HOURS_PER_YEAR, abs=1e-6)


def test_a_held_savings_plan_covers_up_to_its_dollars_and_the_rest_is_rented() -> None:
    columns = catalogue(on_demand=2.0, savings_plan_1y=1.0)
    run = decided(forecast(machines=[]), columns).rent[0].choice
    assert run is not None
    needed = 400 * run.hours.expected / HOURS_PER_YEAR
    existing_spend_commitment = ExistingSpendCommitment(
        provider="aws", price_kind="savings_plan_1y", usd_per_hour=needed / 4
    )
    decision = decided(forecast(machines=[]), columns, replaced_at_once(held_spend=(existing_spend_commitment,)))
    assert decision.rent[0].share == pytest.approx(0.75)
    storage = (run.cost.storage + run.cost.egress) / 1e6
    assert decision.costs.total_usd == pytest.approx(400 * (0.75 * run.cost.expected / 1e6 + 0.25 * storage))


def test_what_is_held_and_not_in_the_snapshot_is_refused() -> None:
    existing_spend_commitment = ExistingSpendCommitment(provider="aws", price_kind="savings_plan_3y", usd_per_hour=5)
    with pytest.raises(UnusableInput, match=r"settings.held_spend\[0\]: covers nothing"):
        decided(forecast(), catalogue(on_demand=2.0), replaced_at_once(held_spend=(existing_spend_commitment,)))
    with pytest.raises(UnusableInput, match=r"settings.held\[0\].price_kind"):
        decided(forecast(), catalogue(on_demand=2.0), replaced_at_once(held=(COMMITMENT,)))
