"""Figures as a procurement decision states them."""

from decimal import Decimal

from gpuplan.catalog.model.money import usd_micros
from gpuplan.planner.serialization.phase_document import usd


def money(value: float) -> Decimal:
    """Dollars, in whole micro-dollars."""
    return usd(usd_micros(round(value, 6)))


def signed_money(value: float) -> Decimal:
    """A difference that may be a loss."""
    return money(-value).copy_negate() if value < 0 else money(value)


def maybe_money(value: float | None) -> Decimal | None:
    """Dollars, or None for None."""
    return None if value is None else money(value)


def six_digits(value: float) -> float:
    """Six significant digits: more than a forecast has."""
    return float(f"{value:.6g}")
