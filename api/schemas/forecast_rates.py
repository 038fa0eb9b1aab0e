"""Numbers of a forecast: runs, probabilities and growth, optionally by scenario."""

from collections.abc import Mapping

from gpuplan.catalog.parsing.document_fields import label
from gpuplan.catalog.parsing.quantities import count, fraction, shown

#: Runs by scenario, or one number for all.
Rates = float | Mapping[str, float]
_LONGEST = 20


def rates(value: object, *, most: float) -> Rates:
    """Runs as a number of at least 0, or a mapping of scenario names to such numbers."""
    if not isinstance(value, Mapping):
        return _rate(value, most)
    if not value or len(value) > _LONGEST:
        raise ValueError(f"has {len(value)} scenarios; give 1 to {_LONGEST}, or one number for all")
    rates_by_scenario = {}
    for name, rate in value.items():
        try:
            rates_by_scenario[label(name)] = _rate(rate, most)
        except ValueError as error:
            raise ValueError(f"{shown(name)}: {error}") from None
    return rates_by_scenario


def _rate(value: object, most: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        raise ValueError(f"{shown(value)} is negative; write the number of runs, 0 or more")
    return count(value, top=most, zero=True)


def share(value: object) -> float:
    """A share from 0 to below 1: 0.05 or `5%`."""
    return 0.0 if _is_zero(value) else fraction(value)


def share_or_none(value: object) -> float:
    """A probability above 0, up to 1: 0.3 or `30%`."""
    text = str(value).replace(" ", "")
    return 1.0 if not isinstance(value, bool) and text in {"1", "1.0", "100%"} else fraction(value)


def change(value: object) -> float:
    """A yearly change from -90 % to 500 %: `20%`, 0.2, `-10%`."""
    accepted = "write a change per year from -90% to 500%, such as 20% or 0.2"
    text = value.strip() if isinstance(value, str) else value
    percent = isinstance(text, str) and text.endswith("%")
    try:
        number = float(text.removesuffix("%")) if isinstance(text, str) else text
    except ValueError:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}") from None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    share = number / 100 if percent else float(number)
    if not -0.9 <= share <= 5.0:
        raise ValueError(f"{shown(value)} is not accepted; {accepted}")
    return share


def _is_zero(value: object) -> bool:
    if isinstance(value, str):
        return value.replace(" ", "") in {"0", "0%", "0.0"}
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0
