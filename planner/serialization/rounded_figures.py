"""Figures and times as documents and sentences show them."""

import math
from datetime import UTC, datetime
from decimal import Decimal

from gpuplan.catalog.model.money import MICROS_PER_USD, usd_display

UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}


def moment(time: datetime) -> str:
    """A time as ISO 8601 in UTC to the second, `2026-11-21T08:00:00Z`."""
    return to_second(time).isoformat().replace("+00:00", "Z")


def to_second(time: datetime) -> datetime:
    """A time in UTC to the second, as answers have it."""
    return time.astimezone(UTC).replace(microsecond=0)


def summed(values: list[float | None]) -> float | None:
    """The sum; None where a term is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def maybe_rounded(value: float | None) -> float | None:
    """`rounded` of a figure; None where it is unknown."""
    return None if value is None else rounded(value)


def rounded(value: float) -> float:
    """Nine significant digits: more than any input has, few enough that every machine prints the same."""
    return float(f"{value:.9g}")


def count(value: float) -> float | int:
    """A count of accelerators: a whole number, or a fraction to four places where a node has part of one."""
    return int(value) if value == int(value) else round(value, 4)


def format_usd(micros: int) -> str:
    """A sum in a sentence: `$1,234.56`; below a cent the text says so."""
    if 0 < abs(micros) < MICROS_PER_USD // 100:
        return "<$0.01" if micros > 0 else ">-$0.01"
    return usd_display(micros)


def format_price(micros: int) -> str:
    """A price per hour in a sentence: four decimals below ten dollars, where cents would hide the difference."""
    return f"${Decimal(micros) / MICROS_PER_USD:,.4f}" if abs(micros) < 10 * MICROS_PER_USD else format_usd(micros)


def format_hours(hours: float) -> str:
    """Hours as people say them: `40 s`, `12 min`, `5.2 h`, `3 d 4 h`, `2.1 years`; `never` where they never end."""
    if not math.isfinite(hours):
        return "never"
    if hours < 1 / 60:
        return f"{hours * 3600:.3g} s"
    if hours < 1:
        return f"{hours * 60:.3g} min"
    if hours < 48:
        return f"{hours:.3g} h"
    if hours < 24 * 365:
        days, rest = divmod(round(hours), 24)
        return f"{days:,} d {rest} h" if rest and days < 100 else f"{days:,} d"
    years = f"{hours / (24 * 365):,.3g}"
    return f"{years} {'year' if years == '1' else 'years'}"
