"""Quantiles over hours and prices of a cost whose distribution is known."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from gpuplan.planner.verify.price_spread import PRICE_DEVIATIONS, RUN_DEVIATIONS, Spread, quantiles


@pytest.mark.parametrize(("of_hours", "of_price"), [(0.02, 0.5), (0.1, 0.3), (0.3, 0.3), (0.45, 0.1), (0.02, 0.05)])
def test_a_product_of_lognormals_is_within_a_thousandth_of_its_quantiles(of_hours: float, of_price: float) -> None:
    spread = Spread(
        machines_usd=np.exp(of_hours * RUN_DEVIATIONS),
        other_usd=np.zeros(len(RUN_DEVIATIONS)),
        prices=np.exp(of_price * PRICE_DEVIATIONS),
    )
    chances, sigma = (0.5, 0.95), math.hypot(of_hours, of_price)
    exact = [math.exp(sigma * NormalDist().inv_cdf(chance)) for chance in chances]
    assert quantiles([spread], chances) == pytest.approx(exact, rel=1e-3)
