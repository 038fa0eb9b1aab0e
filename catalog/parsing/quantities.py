"""Parse quantities (`36h`, `80 GiB`, `300B`, `$250k`) into plain numbers in one fixed unit.

Every reader takes a number or text and raises `ValueError` with one line that shows the input and what is accepted.
Arithmetic is exact (fractions) until the last step, so two spellings of an amount give the same number.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction

Reader = Callable[[object], float]

#: Longer text is rejected; the bound also keeps exact arithmetic cheap.
_LONGEST_TEXT = 60
#: Ten years: longer than any job or deadline that can be planned with today's prices.
MAX_HOURS = 87_600.0
MAX_GIB = 1e9
MAX_COUNT = 1e18
#: A thousand times the compute of the largest published runs (about 5e26 FLOPs, Epoch AI 2025).
MAX_FLOPS = 1e30
MAX_USD = 1e12
#: The world emits some 5e13 kg of CO2 equivalents a year (UNEP, Emissions Gap Report 2024: 57 Gt).
MAX_CARBON_KG = 1e14
_KG_PER: dict[str, Fraction] = {
    "": Fraction(1),
    **dict.fromkeys(("g", "gram", "grams"), Fraction(1, 1000)),
    **dict.fromkeys(("kg", "kgs"), Fraction(1)),
    **dict.fromkeys(("t", "ton", "tons", "tonne", "tonnes"), Fraction(1000)),
}

_DIGITS = r"(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?|\.\d+"
_NUMBER = re.compile(rf"([-+]?(?:{_DIGITS})(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)
_DURATION_PART = re.compile(rf"\s*((?:{_DIGITS})(?:[eE][-+]?\d+)?)\s*([A-Za-z]+)\s*")
_ISO_DURATION = re.compile(
    r"P(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<min>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)

_HOURS_PER: dict[str, Fraction] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1, 3600)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Fraction(1, 60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(1)),
    **dict.fromkeys(("d", "day", "days"), Fraction(24)),
    **dict.fromkeys(("w", "week", "weeks"), Fraction(168)),
}
_BYTES_PER: dict[str, int] = {
    "B": 1,
    **{prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T", "P"), 1)},
    **{prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), 1)},
}
_BYTES_FOLDED = {unit.lower(): size for unit, size in _BYTES_PER.items()}
_COUNT_PER: dict[str, int] = {
    "": 1,
    **dict.fromkeys(("k", "thousand"), 10**3),
    **dict.fromkeys(("m", "million"), 10**6),
    **dict.fromkeys(("b", "g", "billion"), 10**9),
    **dict.fromkeys(("t", "trillion"), 10**12),
}
_DURATIONS = "write hours as a number (168) or a duration such as 36h, 7d, 90min, 1d 12h or P7D"
_COUNTS = "write a number such as 300e9, or 300B, 4M, 2T"


#: The most characters of a quoted text.
_LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """The user's text, quoted and cut to one short line."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        text = "a very long number"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def hours(value: object, *, zero: bool = False) -> float:
    """A duration in hours, above 0 (or 0, with `zero`) and at most ten years; a bare number means hours.

    Accepts `7d`, `36h`, `90min`, `1d 12h`, `1h30min`, `2 weeks`, ISO 8601 (`P7D`, `PT36H`), 168.
    """
    return _bounded(_duration(value), value, top=MAX_HOURS, zero=zero, accepted=_DURATIONS, unit=" hours")


def _duration(value: object) -> Fraction:
    if not isinstance(value, str):
        return _plain(value, _DURATIONS)
    text = _text(value, _DURATIONS)
    if text[:1] in {"P", "p"}:
        return _iso_duration(text.upper(), value)
    if _is_number(text):
        return _exact(text, value, _DURATIONS)
    if text[0] == "-":
        raise ValueError(f"{shown(value)} is negative; {_DURATIONS}")
    total, at = Fraction(0), 0
    while at < len(text):
        part = _DURATION_PART.match(text, at)
        if part is None:
            raise ValueError(f"{shown(value)} is not a duration; {_DURATIONS}")
        unit = part[2].lower()
        if unit not in _HOURS_PER:
            raise ValueError(f"{shown(value)}: {shown(part[2])} is not a unit of time; {_DURATIONS}")
        total += _exact(part[1], value, _DURATIONS) * _HOURS_PER[unit]
        at = part.end()
    return total


def _iso_duration(text: str, value: object) -> Fraction:
    match = _ISO_DURATION.fullmatch(text)
    parts = {unit: digits for unit, digits in match.groupdict().items() if digits} if match else {}
    if not parts:
        raise ValueError(
            f"{shown(value)} is not an ISO 8601 duration in weeks, days, hours, minutes, seconds; {_DURATIONS}"
        )
    return sum((Fraction(digits) * _HOURS_PER[unit] for unit, digits in parts.items()), Fraction(0))


def gib(value: object, *, zero: bool = False) -> float:
    """Memory in GiB; a bare number means GiB, `80 GB` is 74.5 GiB."""
    return _memory(value, bare="GiB", zero=zero)


def gb(value: object, *, zero: bool = False) -> float:
    """Storage in GB (10^9 bytes); a bare number means GB, `1 GiB` is 1.073741824 GB."""
    return _memory(value, bare="GB", zero=zero)


def _memory(value: object, *, bare: str, zero: bool) -> float:
    accepted = f"write {bare} as a number, or 80 GiB, 80 GB, 4 TB (GiB is not GB: 1 GiB = 1.0737 GB)"
    number, unit = _number_and_unit(value, accepted)
    # `Gb` is gigabit in data sheets; reject it rather than risk an error by a factor of eight.
    size = _BYTES_PER.get(unit) or (_BYTES_FOLDED.get(unit) if unit in {unit.lower(), unit.upper()} else None)
    if unit and size is None:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not a unit of memory; {accepted}")
    exact = number * (size or _BYTES_PER[bare]) / _BYTES_PER[bare]
    return _bounded(exact, value, top=MAX_GIB, zero=zero, accepted=accepted, unit=f" {bare}")


def count(value: object, *, top: float = MAX_COUNT, zero: bool = False) -> float:
    """A number of tokens, samples, parameters or FLOPs: a number, or text with k, M, B (or G), T."""
    number, unit = _number_and_unit(value, _COUNTS)
    if unit.lower() not in _COUNT_PER:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not a multiple; {_COUNTS}")
    return _bounded(number * _COUNT_PER[unit.lower()], value, top=top, zero=zero, accepted=_COUNTS)


def usd(value: object, *, top: float = MAX_USD, zero: bool = False) -> float:
    """US dollars, at least a micro-dollar: 250000, `$250,000`, `250k`, `250000 USD`."""
    accepted = "write US dollars as 250000, $250,000 or 250k"
    if isinstance(value, str):
        trimmed = re.sub(
            r"^\s*(?:USD|US\$|\$)\s*|\s*(?:USD|dollars?)\s*$", "", value[: _LONGEST_TEXT + 1], flags=re.IGNORECASE
        )
    number, unit = _number_and_unit(trimmed if isinstance(value, str) else value, accepted, given=value)
    if unit.lower() not in _COUNT_PER:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not understood; {accepted}")
    return _bounded(
        number * _COUNT_PER[unit.lower()], value, top=top, zero=zero, accepted=accepted, unit=" USD", low=1e-6
    )


def carbon_kg(value: object) -> float:
    """CO2 equivalents in kg: 500, `500 kg`, `2 t`, `800 kgCO2e`; a ton is 1000 kg."""
    accepted = "write kg of CO2 equivalents as a number, or 500 kg, 2 t"
    number, unit = _number_and_unit(value, accepted)
    name = re.sub(r"\s*co2(?:e|eq)?$", "", unit.lower())
    if name not in _KG_PER:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not a unit of carbon; {accepted}")
    return _bounded(number * _KG_PER[name], value, top=MAX_CARBON_KG, zero=False, accepted=accepted, unit=" kg")


def fraction(value: object) -> float:
    """A share strictly between 0 and 1: 0.9 or `90%`."""
    accepted = "write a share between 0 and 1, such as 0.9 or 90%"
    number, unit = _number_and_unit(value, accepted)
    if unit not in {"", "%"}:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not understood; {accepted}")
    share = number / 100 if unit else number
    if not 0 < float(share) < 1:
        raise ValueError(f"{shown(value)} is out of range; {accepted}")
    return float(share)


def whole(value: object, *, low: int, high: int) -> int:
    """A whole number from `low` to `high`; `4e3` and `4k` are whole, `4.5` is not."""
    accepted = f"write a whole number from {low} to {high:,}".replace(",", " ")
    number, unit = _number_and_unit(value, accepted)
    if unit.lower() not in _COUNT_PER:
        raise ValueError(f"{shown(value)}: {shown(unit)} is not understood; {accepted}")
    number *= _COUNT_PER[unit.lower()]
    if number.denominator != 1 or not low <= number <= high:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    return int(number)


def moment(value: object) -> datetime:
    """An ISO 8601 time with its zone, as UTC. A time without a zone is rejected."""
    accepted = "write an ISO 8601 time with its zone, such as 2026-12-01T09:00Z or 2026-12-01T09:00+01:00"
    text = _text(value, accepted)
    try:
        time = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(f"{shown(value)} is not a time; {accepted}") from None
    if not 2000 <= time.year < 2200:
        raise ValueError(f"{shown(value)} is outside the years 2000 to 2199; {accepted}")
    if time.tzinfo is None:
        full = text if "T" in text.upper() or ":" in text else f"{text}T00:00"
        raise ValueError(f"{shown(value)} has no time zone; write {full}Z for UTC or {full}+01:00 for an offset")
    return time.astimezone(UTC)


def looks_like_time(value: object) -> bool:
    """Whether text looks like a point in time rather than a duration: it starts with a year and a dash."""
    return isinstance(value, str) and re.match(r"\s*\d{4}-", value) is not None


def _text(value: object, accepted: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    if len(value) > _LONGEST_TEXT:
        raise ValueError(f"{shown(value)} is too long; {accepted}")
    return value.strip()


def _number_and_unit(value: object, accepted: str, *, given: object = None) -> tuple[Fraction, str]:
    """The leading number and the rest of the text."""
    given = value if given is None else given
    if not isinstance(value, str):
        return _plain(value, accepted), ""
    match = _NUMBER.fullmatch(_text(value, accepted))
    if match is None:
        raise ValueError(f"{shown(given)} is not a number; {accepted}")
    return _exact(match[1], given, accepted), match[2].strip()


def _plain(value: object, accepted: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{shown(value)} is not a number; {accepted}")
    if not math.isfinite(value) if isinstance(value, float) else value.bit_length() > 1024:
        raise ValueError(f"{shown(value)} is not a finite number; {accepted}")
    # The user wrote the shortest decimal that parses to this float.
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _is_number(text: str) -> bool:
    match = _NUMBER.fullmatch(text)
    return match is not None and not match[2]


def _exact(digits: str, value: object, accepted: str) -> Fraction:
    """The exact value of the decimal `digits`, unless it exceeds the range of a float."""
    digits = digits.replace(",", "").replace("_", "")
    size = float(digits)
    if not math.isfinite(size):
        raise ValueError(f"{shown(value)} is absurdly large; {accepted}")
    return Fraction(digits) if size else Fraction(0)


def _bounded(
    exact: Fraction, value: object, *, top: float, zero: bool, accepted: str, unit: str = "", low: float = 1e-9
) -> float:
    if exact < 0:
        raise ValueError(f"{shown(value)} is negative; {accepted}")
    if exact == 0 and not zero:
        raise ValueError(f"{shown(value)} is zero, and must be more; {accepted}")
    if exact > top:
        raise ValueError(f"{shown(value)} is absurdly large (at most {top:g}{unit}); {accepted}")
    number = float(exact)
    if exact and number < low:
        raise ValueError(f"{shown(value)} is absurdly small; {accepted}")
    return number
