"""The expected price: fresh prices stay, old ones move by documented causes, and none is above on-demand."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.cost.planned_prices import drift_columns, drift_row, expected_prices

PROVIDERS = st.sampled_from(("aws", "gcp", "azure"))
FAMILIES = st.sampled_from(("p5.48xlarge", "p4d.24xlarge", "g6.xlarge", "tpu-v6e-1", "a3-highgpu-8g", "Standard_ND96"))
SHARES = st.floats(0.02, 1.0)
DAYS = st.integers(0, 1500)


class ExpectedPrice(NamedTuple):
    """USD per node-hour: the expected price, and the band that holds 80 % of prices."""

    expected: float
    low: float
    high: float


def expected_price(
    observed_usd: float,
    on_demand_usd: float | None,
    age_days: float,
    provider: str,
    family: str,
    *,
    interruptible: bool = True,
) -> ExpectedPrice:
    """The expected price of one machine; `on_demand_usd` is None if it has no on-demand price."""
    row = drift_columns((drift_row(provider, family, interruptible=interruptible),))
    demand = np.array([math.nan if on_demand_usd is None else on_demand_usd])
    return ExpectedPrice(
        *(
            float(price[0])
            for price in expected_prices(np.array([observed_usd]), demand, np.array([float(age_days)]), row)
        )
    )


@given(provider=PROVIDERS, family=FAMILIES, share=SHARES)
def test_a_fresh_price_is_its_own_expectation_with_no_band(provider: str, family: str, share: float) -> None:
    price = expected_price(10 * share, 10.0, 0, provider, family)
    assert price.expected == price.low == price.high == 10 * share


@given(provider=PROVIDERS, family=FAMILIES, share=SHARES)
def test_a_start_before_the_observation_counts_as_age_0(provider: str, family: str, share: float) -> None:
    assert expected_price(share, 1.0, -40, provider, family) == expected_price(share, 1.0, 0, provider, family)


@given(provider=PROVIDERS, family=FAMILIES, share=st.floats(0.02, 1.5), days=st.integers(1, 1500))
def test_no_expected_price_and_no_band_is_above_on_demand(provider: str, family: str, share: float, days: int) -> None:
    price = expected_price(10 * share, 10.0, days, provider, family)
    assert price.low <= price.expected <= price.high <= 10.0


@given(provider=PROVIDERS, family=FAMILIES, share=SHARES, first=DAYS, later=DAYS)
@settings(max_examples=60)
def test_a_band_widens_with_age(provider: str, family: str, share: float, first: int, later: int) -> None:
    young, old = (expected_price(share, None, days, provider, family) for days in sorted((first, later)))
    assert old.high / old.expected >= young.high / young.expected - 1e-12
    assert old.low / old.expected <= young.low / young.expected + 1e-12


@pytest.mark.parametrize("family", ["p5.48xlarge", "g6.xlarge"])
def test_cheap_prices_of_aws_rise_and_dear_ones_fall_the_more_the_older(family: str) -> None:
    cheap = [expected_price(1.2, 10.0, days, "aws", family).expected for days in (0, 30, 90, 180, 720)]
    dear = [expected_price(7.0, 10.0, days, "aws", family).expected for days in (0, 30, 90, 180, 720)]
    assert cheap == sorted(cheap)
    assert cheap[-1] > 1.5
    assert dear == sorted(dear, reverse=True)
    assert dear[-1] < 6.0
    # It saturates: a day moves a price less and less, and never beyond the usual share.
    late = [expected_price(1.2, 10.0, days, "aws", family).expected for days in (3000, 6000)]
    assert late[1] - late[0] < 0.01 * (cheap[1] - cheap[0]) + 0.001
    assert late[1] < 4.0


def test_cheap_prices_of_training_machines_return_faster_than_those_of_graphics_machines() -> None:
    training = expected_price(1.6, 10.0, 159, "aws", "p5.48xlarge")
    graphics = expected_price(1.6, 10.0, 159, "aws", "g6.xlarge")
    assert training.expected > graphics.expected > 1.6


def test_prices_of_google_do_not_return_to_a_share_of_on_demand() -> None:
    moves = {
        round(math.log(expected_price(10 * share, 10.0, 132, "gcp", "tpu-v6e-1").expected / (10 * share)), 12)
        for share in (0.1, 0.3, 0.6)
    }
    assert len(moves) == 1
    assert abs(moves.pop()) < 0.05


def test_a_spot_price_at_the_on_demand_price_stays_there() -> None:
    assert expected_price(10.0, 10.0, 159, "aws", "p4d.24xlarge").expected == pytest.approx(10.0, rel=0.01)


def test_without_an_on_demand_price_a_price_only_drifts() -> None:
    assert expected_price(20.0, None, 159, "aws", "p5e.48xlarge").expected == pytest.approx(20.0, rel=0.01)


def test_an_on_demand_price_of_a_flagship_older_than_a_year_may_have_been_cut() -> None:
    old = expected_price(98.32, 98.32, 400, "aws", "p5.48xlarge", interruptible=False)
    young = expected_price(98.32, 98.32, 300, "aws", "p5.48xlarge", interruptible=False)
    settled = expected_price(1.006, 1.006, 400, "aws", "g5.xlarge", interruptible=False)
    assert old.expected == 98.32
    assert old.low < 0.6 * 98.32
    assert old.high == 98.32
    assert young.low == young.expected == 98.32
    assert settled.low == settled.high == 1.006
