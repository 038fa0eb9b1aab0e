"""Figures and times as documents write them."""

from datetime import UTC, datetime


def moment(time: datetime) -> str:
    """A time as ISO 8601 in UTC to the second, `2026-11-21T08:00:00Z`."""
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def summed(values: list[float | None]) -> float | None:
    """The sum, None as soon as one is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def maybe_rounded(value: float | None) -> float | None:
    """As `rounded`, and None where the figure is unknown."""
    return None if value is None else rounded(value)


def rounded(value: float) -> float:
    """Nine significant digits: more than any input has, few enough that every machine prints the same."""
    return float(f"{value:.9g}")


def count(value: float) -> float | int:
    """A count as a whole number; of a card of which a node has a part, as a fraction to four places."""
    return int(value) if value == int(value) else round(value, 4)
