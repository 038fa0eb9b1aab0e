"""Money as integer micro-dollars, rounded half to even as the last step.

Money is float64 dollars inside arrays and linear programmes, and a decimal string on the wire.
"""

from decimal import ROUND_HALF_EVEN, Decimal

MICROS_PER_USD = 1_000_000


def usd_micros(usd: Decimal | str | float) -> int:
    """Dollars to micro-dollars, rounded half to even.

    Raises `decimal.InvalidOperation` for text that is not a number and `ValueError` for a value that is not finite.
    """
    value = Decimal(repr(usd)) if isinstance(usd, float) else Decimal(usd)
    if not value.is_finite():
        raise ValueError(f"{usd!r} is not an amount of money")
    return int((value * MICROS_PER_USD).to_integral_value(rounding=ROUND_HALF_EVEN))


def usd_exactly(usd: float) -> Decimal:
    """Computed dollars as an amount of whole micro-dollars, with all six decimals."""
    return Decimal(f"{usd:.6f}")


def usd_text(micros: int) -> str:
    """Micro-dollars as the decimal string used on the wire: at least cents, no trailing zeros."""
    whole, rest = divmod(abs(micros), MICROS_PER_USD)
    cents = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micros < 0 else ''}{whole}.{cents}"


def usd_display(micros: int) -> str:
    """Micro-dollars for people: `$1,234.56`."""
    sign = "-" if micros < 0 else ""
    cents = (Decimal(abs(micros)) / MICROS_PER_USD).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    return f"{sign}${cents:,}"
