"""The cost of a decision year by year: against figures worked out by hand, and against the cost of each scenario."""

from itertools import pairwise
from typing import Any

import pytest

from gpuplan.planner.procurement.procurement_plan import Decided
from gpuplan.planner.procurement.served_jobs import served
from tests.planner.procurement.small import JOB, SETTINGS, catalogue, decided, forecast

CLOUD = catalogue(on_demand=2.0)


def test_a_price_is_spread_over_the_years_and_renting_follows_the_scenario() -> None:
    given = served(forecast(), CLOUD, SETTINGS)
    assert given.rented[0] is not None
    power, rent = float(given.kwh[0, 0]) * 0.25, given.rented[0].cost.expected / 1e6
    jobs = [{"job": JOB, "per_year": {"low": 0, "expected": 400, "high": 800}}]
    decision = decided(forecast(jobs=jobs, horizon_years=4, life_years=4), CLOUD)
    assert [purchase.units for purchase in decision.buy] == [1]
    for scenario, runs in zip(decision.over_years, (0, 400, 800), strict=True):
        [years] = scenario.years
        assert (years.from_year, years.until_year) == (0, 4)
        assert float(years.own_usd_per_year) == pytest.approx(1900 / 4 + runs * power, abs=1e-5)
        assert not years.commitments_usd_per_year
        assert not years.renting_usd_per_year
    none = decided(forecast(jobs=jobs, machines=[], horizon_years=4), CLOUD)
    rented = [float(scenario.years[0].renting_usd_per_year) for scenario in none.over_years]
    assert rented == pytest.approx([runs * rent for runs in (0, 400, 800)], abs=1e-4)


def discounted(decision: Decided, rate: float) -> dict[str, float]:
    """The present value of the years by scenario, by the trapezoid rule on thousandths of a year."""
    values = {}
    for scenario in decision.over_years:
        total = 0.0
        for years in scenario.years:
            usd = float(years.own_usd_per_year + years.commitments_usd_per_year + years.renting_usd_per_year)
            steps = round(1000 * (years.until_year - years.from_year))
            worth = [(1 + rate) ** -(years.from_year + step / 1000) for step in range(steps + 1)]
            total += usd * sum((first + then) / 2000 for first, then in pairwise(worth))
        values[scenario.name] = total
    return values


@pytest.mark.parametrize(
    ("changes", "prices"),
    [
        ({"residual_share": "20%", "life_years": 2}, {"on_demand": 2.0}),
        ({"machines": [], "commitments": ["reserved_1y", "savings_plan_1y"]}, {"on_demand": 2.0, "reserved_1y": 0.5}),
        (
            {"machines": [], "commitments": ["savings_plan_1y"], "jobs_wait": False},
            {"on_demand": 2.0, "savings_plan_1y": 1.0},
        ),
    ],
)
def test_discounted_the_years_are_the_cost_of_the_scenario(changes: dict[str, Any], prices: dict[str, float]) -> None:
    runs = {"low": 3000, "expected": 6000, "high": 9000}
    jobs = [{"job": JOB, "per_year": runs, "growth_per_year": "30%"}]
    decision = decided(forecast(jobs=jobs, horizon_years=2.5, discount_rate="10%", **changes), catalogue(**prices))
    assert decision.buy or decision.commit or decision.spend
    assert decision.risk is not None
    costs = {scenario.name: float(scenario.cost_usd) for scenario in decision.risk.scenarios}
    assert discounted(decision, 0.1) == pytest.approx(costs, rel=1e-6)
    assert [years.until_year for years in decision.over_years[0].years] == [1, 2, 2.5]
    bases = [years.own_usd_per_year + years.commitments_usd_per_year for years in decision.over_years[2].years]
    assert max(bases) > 0
