"""Fields of an answer as exports accept them; each reader raises `UnusableInput` at the field."""

import math
import re
from datetime import datetime
from decimal import InvalidOperation

from gpuplan.api.presentation.text_formatting import plain
from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.model.provider_names import CLOUD, is_own_rates, provider_names
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

#: Names of regions, zones and machine types, such as `n1-standard-16+1xT4` and Azure's with underscores.
_CLOUD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
#: Names of machine types at providers whose price pages name them in words, such as `NVIDIA GB200 NVL72 (4 GPUs)`.
_PAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()-]{0,79}")
#: Upper limit of the rows of a list, above any plan.
MOST_PHASES = 20
Where = tuple[str | int, ...]


def read_kind(row: JsonObject, at: Where) -> PriceKind:
    """The price kind of a row."""
    name = row.get("price_kind")
    if not isinstance(name, str) or name not in price_kinds():
        accepted = ", ".join(price_kinds())
        raise UnusableInput.at(*at, "price_kind", message=f"{shown(name)} is not accepted; it is one of {accepted}")
    return price_kinds()[name]


def read_name(row: JsonObject, field: str, at: Where, provider: str) -> str:
    """A cloud's name unchanged; an owned machine's name as one cleaned line."""
    value = row.get(field)
    if provider == "local" and isinstance(value, str) and value:
        return plain(value, limit=80)
    if field == "instance_type" and (is_own_rates(provider) or provider_names()[provider].kind != CLOUD):
        return read_text(
            row, field, at, _PAGE_NAME, "a name in letters, digits, blanks, brackets, dots, dashes and underscores"
        )
    return read_text(row, field, at, _CLOUD_NAME, "a name in letters, digits, dots, dashes and underscores")


def read_usd(row: JsonObject, field: str, at: Where) -> tuple[int, str]:
    """An amount that is not negative, in micro-dollars and as the decimal string of them."""
    value = row.get(field)
    try:
        micros = usd_micros(value) if isinstance(value, str) and len(value) <= 40 else -1
    except (InvalidOperation, ValueError):
        micros = -1
    if not 0 <= micros < 10**18:
        raise UnusableInput.at(*at, field, message=f'{shown(value)} is not accepted; it is dollars as text, "12.34"')
    return micros, usd_text(micros)


def read_time(row: JsonObject, field: str, at: Where) -> datetime:
    """A time with a zone."""
    value = row.get(field)
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None or not 2000 <= parsed.year <= 2200:
        message = f"{shown(value)} is not accepted; it is a time such as 2026-11-21T08:00:00Z"
        raise UnusableInput.at(*at, field, message=message)
    return parsed


def read_text(row: JsonObject, field: str, at: Where, pattern: re.Pattern[str], accepted: str) -> str:
    """A text of a pattern."""
    value = row.get(field)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise UnusableInput.at(*at, field, message=f"{shown(value)} is not accepted; it is {accepted}")
    return value


def read_maybe(row: JsonObject, field: str, at: Where, *, high: float) -> float | None:
    """A number that is not negative, or None."""
    return None if row.get(field) is None else read_number(row, field, at, low=0.0, high=high)


def read_number(
    row: JsonObject,
    field: str,
    at: Where,
    *,
    low: float,
    high: float,
    whole: bool = False,
    default: float | None = None,
) -> float:
    """A number within limits."""
    value = row.get(field, default)
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
    )
    if not isinstance(value, int | float) or not fits or (whole and value != int(value)):
        what = "a whole number" if whole else "a number"
        raise UnusableInput.at(
            *at, field, message=f"{shown(value)} is not accepted; it is {what} from {low:g} to {high:g}"
        )
    return float(value)


def read_mapping(value: object, at: Where) -> JsonObject:
    """A mapping."""
    if not isinstance(value, dict):
        raise UnusableInput.at(*at, message=f"{shown(value)} is not accepted; it is a mapping in a plan")
    return value
