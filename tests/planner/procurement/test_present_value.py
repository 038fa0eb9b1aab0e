"""Present values against sums and integrals written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.procurement.present_value import commitment, present, purchase_flows, purchase_value, running_years


@given(start=st.floats(0, 8), duration=st.floats(0.1, 8), rate=st.floats(0, 0.5))
@settings(max_examples=40, deadline=None)
def test_a_dollar_a_year_is_the_integral_of_its_present_values(start: float, duration: float, rate: float) -> None:
    at = start + (np.arange(20_000) + 0.5) * duration / 20_000
    assert running_years(start, duration, rate) == pytest.approx(float(((1 + rate) ** -at).mean() * duration), rel=1e-6)


def test_a_machine_that_lasts_the_horizon_costs_its_price_less_its_discounted_residual() -> None:
    assert purchase_value(1000, 100, 3, 3, 0.1) == pytest.approx(1000 - 100 / 1.1**3)
    assert purchase_value(1000, 100, 3, 3, 0.0) == 900


def test_a_short_lived_machine_is_bought_again_and_the_last_is_sold_for_its_book_value() -> None:
    assert purchase_flows(900, 300, 2, 5) == [(0.0, 900), (2.0, -300), (2.0, 900), (4.0, -300), (4.0, 900), (5, -600.0)]


@given(life=st.floats(0.5, 10), horizon=st.floats(0.5, 10), residual=st.floats(0, 500))
@settings(max_examples=40, deadline=None)
def test_without_discounting_a_machine_costs_its_wear(life: float, horizon: float, residual: float) -> None:
    assert purchase_value(500, residual, life, horizon, 0.0) == pytest.approx(
        (500 - residual) / life * horizon, rel=1e-6
    )


def test_an_upfront_share_is_paid_at_the_start_of_the_term() -> None:
    assert commitment(1.0, 3.0, 1.0, 2.0, 0.1) == pytest.approx(3 * 8760 * present(2.0, 0.1))
    assert commitment(1.0, 3.0, 0.0, 0.0, 0.0) == pytest.approx(3 * 8760)
    assert commitment(1.0, 1.0, 0.0, 0.0, 0.1) < commitment(1.0, 1.0, 0.5, 0.0, 0.1)
