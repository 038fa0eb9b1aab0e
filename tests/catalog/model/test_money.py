"""Money on the wire: every micro-dollar, at least cents, no more digits than there are."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.money import usd_micros, usd_text


@given(st.integers(-(10**18), 10**18))
def test_the_text_of_an_amount_is_that_amount_with_at_least_cents_and_no_zeros_after_them(micros: int) -> None:
    text = usd_text(micros)
    assert Decimal(text) * 1_000_000 == micros
    assert usd_micros(text) == micros
    digits = text.partition(".")[2]
    assert len(digits) == 2 or (2 < len(digits) <= 6 and not digits.endswith("0"))


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0.00"),
        (1, "0.000001"),
        (-1, "-0.000001"),
        (1_500_000, "1.50"),
        (-2_000_000, "-2.00"),
        (98_765_432, "98.765432"),
    ],
)
def test_amounts_read_as_people_write_them(micros: int, text: str) -> None:
    assert usd_text(micros) == text
