"""The fit of expected prices: its figures on regions left out, and that the table is what it writes."""

import pytest

from gpuplan.catalog.model.price_drift import price_drifts
from tools.fitting.spot_drift import catalogue_shares, fitted, score_left_out
from tools.fitting.spot_price_pairs import price_pairs


@pytest.mark.slow(reason="47 fits")
def test_expected_prices_of_regions_that_no_fit_has_seen_are_as_close_as_documented() -> None:
    left_out = score_left_out(price_pairs(), catalogue_shares())
    assert left_out.pairs == 361
    assert left_out.median <= left_out.observed_median
    assert left_out.p90 <= 0.9 * left_out.observed_p90
    assert abs(left_out.cheapest_bias) <= 0.1
    assert 0.75 <= left_out.inside <= 0.85


def test_the_table_holds_what_the_fit_gives() -> None:
    written = [row for row in price_drifts() if row.interruptible]
    assert list(fitted(price_pairs(), catalogue_shares(), "2026-07-21")) == written
