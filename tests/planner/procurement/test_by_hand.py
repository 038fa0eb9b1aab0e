"""Break-even, life, residual value, PUE, electricity, scenarios and limits against figures worked out by hand."""

from typing import Any

import numpy as np
import pytest

from gpuplan.planner.procurement.capacity_expansion import expand
from gpuplan.planner.procurement.expansion_model import Expansion
from gpuplan.planner.procurement.served_jobs import served
from tests.planner.procurement.small import JOB, SETTINGS, catalogue, decided, forecast

CLOUD = catalogue(on_demand=2.0)


def test_a_machine_that_lives_shorter_than_the_horizon_is_paid_for_again() -> None:
    without_replacement = decided(forecast(horizon_years=4, life_years=4), CLOUD)
    twice = decided(forecast(horizon_years=4, life_years=2), CLOUD)
    assert without_replacement.costs.machines_usd == pytest.approx(1900)
    assert twice.costs.machines_usd == pytest.approx(3800)
    assert twice.costs.running_usd == pytest.approx(without_replacement.costs.running_usd)
    sold = decided(forecast(horizon_years=3, life_years=2, residual_share="20%", discount_rate="10%"), CLOUD)
    # 380 for the first after 2 years; the second has lost half of the 1,520 that it loses in its life.
    by_hand = 1900 + (1900 - 380) / 1.1**2 - (1900 - 760) / 1.1**3
    assert sold.costs.machines_usd == pytest.approx(by_hand)


def test_what_a_machine_is_sold_for_does_not_bring_its_break_even_forward() -> None:
    without, with_ = (decided(forecast(residual_share=share), CLOUD).buy[0] for share in (0, "40%"))
    assert without.breaks_even_years == pytest.approx(with_.breaks_even_years)
    assert with_.saves_usd == pytest.approx((without.saves_usd or 0) + 760)


@pytest.mark.slow(reason="one long case")
def test_pue_and_the_price_of_electricity_multiply_what_running_costs() -> None:
    kwh = 400 * float(served(forecast(), CLOUD, SETTINGS).kwh[0, 0])
    for pue, price in ((1.0, 0.25), (1.5, 0.25), (1.5, 0.5)):
        decision = decided(forecast(pue=pue, electricity_usd_per_kwh=price), CLOUD)
        assert decision.costs.running_usd == pytest.approx(kwh * pue * price)


def test_twice_the_runs_keep_the_machine_busy_twice_as_long_and_it_pays_in_half_the_time() -> None:
    one = decided(forecast(jobs=[{"job": JOB, "per_year": 300}], prices=_at(900)), CLOUD).buy[0]
    two = decided(forecast(jobs=[{"job": JOB, "per_year": 600}], prices=_at(900)), CLOUD).buy[0]
    assert two.busy == pytest.approx(2 * one.busy)
    assert one.breaks_even_years == pytest.approx(2 * (two.breaks_even_years or 0), rel=1e-6)


def _at(usd: float) -> list[dict[str, Any]]:
    return [{"accelerator": "L4", "usd": usd, "power_watts": 200, "form": "node"}]


def _per_run() -> tuple[float, float]:
    """USD of a run rented, and of its electricity at home."""
    given = served(forecast(), CLOUD, SETTINGS)
    assert given.rented[0] is not None
    return given.rented[0].cost.expected / 1e6, float(given.kwh[0, 0]) * 0.25


def test_the_price_of_electricity_at_which_renting_wins_is_exact() -> None:
    rent, power = _per_run()
    dear = decided(forecast(prices=_at(400 * (rent - 1.7 * power))), CLOUD).sensitivity.electricity
    assert dear is not None
    assert dear.changes_above is not None
    assert dear.changes_above.times_the_price == 1.7  # none of the factors that are tried


def test_the_probability_that_a_purchase_is_a_loss_is_that_of_the_scenarios_with_too_little_work() -> None:
    rent, power = _per_run()
    jobs = [{"job": JOB, "per_year": {"low": 0, "expected": 400, "high": 800}}]
    decision = decided(forecast(jobs=jobs), CLOUD)
    assert decision.risk is not None
    assert decision.risk.loses_probability == pytest.approx(0.3)
    savings = [float(scenario.saves_usd) for scenario in decision.risk.scenarios]
    assert savings == pytest.approx([runs * (rent - power) - 1900 for runs in (0, 400, 800)])
    mean = sum(one.probability * saved for one, saved in zip(decision.risk.scenarios, savings, strict=True))
    assert mean == pytest.approx((decision.costs.stay_usd or 0) - decision.costs.total_usd)


def test_what_is_not_bought_says_what_it_would_cost_more() -> None:
    rent, power = _per_run()
    decision = decided(forecast(jobs=[{"job": JOB, "per_year": 10}]), CLOUD)
    assert decision.buy == ()
    [other] = decision.instead
    assert float(other.extra_cost_usd) == pytest.approx(1900 - 10 * (rent - power))
    assert not other.electricity_alone_costs_more_than_renting
    idle = decided(forecast(), catalogue(on_demand=0.01)).instead[0]
    assert idle.electricity_alone_costs_more_than_renting
    assert float(idle.extra_cost_usd) == pytest.approx(1900)


CARD = [{"accelerator": "L4", "usd": 300, "power_watts": 200, "form": "card"}]


@pytest.mark.slow(reason="5 cases")
@pytest.mark.parametrize(
    ("limits", "extra", "bound", "message"),
    [
        ({"slots": 1}, {"prices": CARD}, "slots", "2 slots, and there are 1"),
        ({"power_watts": 500}, {}, "power_watts", "600 W of power, and there are 500"),
        ({"cooling_watts": 350}, {}, "cooling_watts", "400 W of cooling, and there are 350"),
        ({"upfront_usd": 5000}, {}, "upfront_usd", "5,700 USD upfront, and there are 5,000"),
        ({"machines": 2}, {}, "machines", "3 machines, and there are 2"),
    ],
)
def test_a_limit_that_binds_is_named_with_what_does_not_fit(
    limits: dict[str, Any], extra: dict[str, Any], bound: str, message: str
) -> None:
    jobs = [{"job": JOB, "per_year": 12_000}]
    free = decided(forecast(jobs=jobs, **({"limits": {"slots": 64}} | extra if "slots" in limits else extra)), CLOUD)
    decision = decided(forecast(jobs=jobs, limits=limits, **extra), CLOUD)
    [one] = decision.binding
    assert one.limit == bound
    assert message in one.short
    assert float(one.would_save_usd) == pytest.approx(decision.costs.total_usd - free.costs.total_usd)
    assert free.binding == ()


def test_two_limits_that_say_the_same_bind_together() -> None:
    jobs = [{"job": JOB, "per_year": 12_000}]
    decision = decided(forecast(jobs=jobs, limits={"power_watts": 500, "cooling_watts": 500, "machines": 500}), CLOUD)
    [one] = decision.binding
    assert one.limit == "power_watts and cooling_watts"


def test_a_limit_with_room_to_spare_binds_nothing() -> None:
    assert decided(forecast(limits={"power_watts": 50_000, "machines": 30}), CLOUD).binding == ()


@pytest.mark.slow(reason="one long case")
def test_an_old_price_is_flagged_and_a_quotation_is_not() -> None:
    jobs = [{"job": JOB, "per_year": 30_000}]
    old = decided(forecast(machines=["RTX 4090"], prices=[], jobs=jobs), CLOUD)
    assert any("years old" in warning for warning in old.warnings)
    quoted = [{"accelerator": "RTX 4090", "usd": 1500, "power_watts": 600}]
    new = decided(forecast(machines=["RTX 4090"], prices=quoted, jobs=jobs), CLOUD)
    assert new.buy
    assert not any("years old" in warning for warning in new.warnings)


def test_a_machine_that_must_be_had_costs_what_it_adds() -> None:
    model = Expansion(
        fixed_usd=np.array([100.0]),
        most_units=np.array([np.inf]),
        machine_hours=np.ones((1, 1)),
        running_usd=np.array([[1.0]]),
        rent_usd=np.array([2.0]),
        hours=np.array([10.0]),
        runs_per_hour=np.array([[1.0]]),
        lasts=np.ones((1, 1), np.bool_),
        uses=np.zeros((0, 1)),
        available=np.zeros(0),
        least_units=np.array([1.0]),
    )
    expansion = expand(model)
    assert expansion is not None
    assert expansion.units.tolist() == [1]
    assert expansion.objective_usd == pytest.approx(110)


@pytest.mark.slow(reason="8 cases")
@pytest.mark.parametrize(
    "changes",
    [
        {"horizon_years": 0.001},
        {"life_years": 0.1, "horizon_years": 15},
        {"jobs": [{"job": JOB, "per_year": 0}]},
        {"jobs": [{"job": JOB, "per_year": 1e-9}]},
        {"jobs": [{"job": JOB, "per_year": 1e6}]},
        {"limits": {"machines": 0, "upfront_usd": 1}},
        {"horizon_years": 2.5, "commitments": ["reserved_1y", "reserved_3y"], "held_until": "2027-05-01T00:00Z"},
        {"jobs": [{"job": JOB, "per_year": {"low": 0, "expected": 0, "high": 0}}]},
    ],
)
def test_extremes_are_answered_and_the_answer_adds_up(changes: dict[str, Any]) -> None:
    decision = decided(forecast(**changes), catalogue(on_demand=2.0, reserved_1y=1.0, reserved_3y=0.8))
    assert decision.costs.total_usd == pytest.approx(float(decision.proof.objective_usd), rel=1e-6, abs=1e-6)
    assert decision.proof.bound_usd <= decision.proof.objective_usd
