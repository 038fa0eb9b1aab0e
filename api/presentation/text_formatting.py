"""Formats money, hours, counts and untrusted text for display."""

import math
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal, Protocol

from gpuplan.catalog.model.money import usd_micros
from gpuplan.catalog.model.regions import is_place_unknown
from gpuplan.planner.model.shared import Layout
from gpuplan.planner.serialization.rounded_figures import format_hours, format_price, format_usd

UNKNOWN = "unknown"
#: Sizes of counts, shown as 300B rather than 300000000000.
COUNT_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
_SECOND = 1 / 3600
_YEAR_HOURS = 365.25 * 24
_AGES = ((24.0, "day"), (1.0, "hour"), (1 / 60, "minute"))


class PlacedOffer(Protocol):
    """A price of machines in a place."""

    @property
    def provider(self) -> str:
        """The cloud."""

    @property
    def region(self) -> str:
        """The region."""

    @property
    def zone(self) -> str:
        """The zone; empty for a whole region."""

    @property
    def price_kind(self) -> str:
        """Spot or another kind."""


def plain(value: object, *, limit: int = 2_000) -> str:
    """Text as one line: control and bidirectional characters become U+FFFD, newlines become spaces.

    Names of jobs and machines are user input and must not move the cursor or change colours of a terminal.
    """
    text = " ".join(str(value).split())
    shown = "".join(char if char.isprintable() else "\ufffd" for char in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def usd(value: object) -> str:
    """A decimal string of dollars as `$1,234.56`; `unknown` for None. A sum below a cent is marked as such."""
    if value is None:
        return UNKNOWN
    try:
        micros = usd_micros(Decimal(str(value)))
    except (InvalidOperation, ValueError):
        return plain(value)
    return format_usd(micros)


def usd_per_hour(value: object) -> str:
    """A price per hour, with four decimals below ten dollars, where cents would hide differences."""
    if value is None:
        return UNKNOWN
    return format_price(usd_micros(str(value)))


def duration(hours: float | None) -> str:
    """Hours in a readable unit: `40 s`, `12 min`, `5.2 h`, `3 d 4 h`, `2.1 years`."""
    return UNKNOWN if hours is None else format_hours(hours)


def ago(hours: float) -> str:
    """How long ago something was, rounded for readers: `40 minutes ago`, `69 days ago`, `1.7 years ago`."""
    if hours >= _YEAR_HOURS:
        return f"{hours / _YEAR_HOURS:.1f} years ago"
    size, unit = next((size, unit) for size, unit in _AGES if hours >= size or unit == "minute")
    count = int(hours / size)
    return f"{count} {unit}{'' if count == 1 else 's'} ago"


def additional_hours(hours: float | None) -> str:
    """A signed difference of hours: `13.7 h`, `-24 s`; less than a second is `0 s`."""
    if hours is None or not math.isfinite(hours):
        return UNKNOWN
    if abs(hours) < _SECOND:
        return "0 s"
    return f"-{duration(-hours)}" if hours < 0 else duration(hours)


def difference_text(amount: str) -> str:
    """A difference in words: `$4.74 more`, `24 s less`."""
    return f"{amount[1:]} less" if amount.startswith("-") else f"{amount} more"


def number(value: float | None, digits: int = 3) -> str:
    """A figure with `digits` significant digits and thousands separators; `unknown` for None."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "never" if value > 0 else UNKNOWN
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def count_in_short(count: float) -> str:
    """A count to four digits: `300B`, `2.164B`."""
    return next((f"{count / size:.4g}{unit}" for size, unit in COUNT_UNITS if count >= size), f"{count:.4g}")


def percent(share: float | None, digits: int = 0) -> str:
    """A share between 0 and 1 as a percentage."""
    return UNKNOWN if share is None else f"{share * 100:.{digits}f} %"


def done_below(share: float | None, digits: int = 0) -> str:
    """How much of the work is done, if less than this share: `less than 42 %`, or `nothing` of a share that rounds to none."""
    if share is None:
        return "not enough"
    return "nothing" if round(100 * share, digits) <= 0 else f"less than {percent(share, digits)}"


def chance(probability: float | None) -> str:
    """A probability as a percentage, never 0 or 100 %."""
    if probability is None:
        return UNKNOWN
    if probability > 0.999:
        return "more than 99.9 %"
    return "less than 0.1 %" if probability < 0.001 else percent(probability, 1)


def when(text: object) -> str:
    """An ISO time as `2026-11-21 15:14 UTC`; a bare date stays a date."""
    if text is None:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return plain(text)
    if moment.tzinfo is None:
        return plain(text)
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".rstrip()


def located(region: str, zone: str | None) -> str:
    """Region and zone; only the zone if its name begins with the region's."""
    if is_place_unknown(region):
        return "(place not stated)"
    if not zone:
        return plain(region)
    return plain(zone if zone.startswith(region) else f"{region} {zone}")


def offer_place(offer: PlacedOffer) -> str:
    """`aws us-east-1 use1-az4, spot`: the place and the price kind of an offer."""
    place = f"{offer.provider} {located(offer.region, offer.zone)}"
    return plain(f"{place}, {offer.price_kind.replace('_', ' ')}")


_PARALLEL: tuple[Literal["data", "tensor", "pipeline", "context", "expert", "interleave"], ...] = (
    "data",
    "tensor",
    "pipeline",
    "context",
    "expert",
    "interleave",
)


def layout(parts: Layout | None) -> str:
    """A layout as one phrase: `data 32, tensor 2, ZeRO-3, micro-batch 2, full checkpointing`."""
    if not parts:
        return UNKNOWN
    words = [f"{name} {parts[name]}" for name in _PARALLEL if name == "data" or int(parts.get(name) or 1) > 1]
    words.append(f"ZeRO-{parts['zero_stage']}" if parts.get("zero_stage") else "no ZeRO")
    words.append(f"micro-batch {parts.get('micro_batch', UNKNOWN)}")
    checkpointing = parts.get("checkpointing", UNKNOWN)
    words.append("no checkpointing" if checkpointing == "none" else f"{checkpointing} checkpointing")
    return plain(", ".join(words))
