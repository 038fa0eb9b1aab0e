"""Read fields of a provider's JSON: a field of another type than documented is named, never guessed."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.contract import Quarantined


@cache
def accelerator_names(package: str) -> dict[str, str]:
    """gpuplan's name by the provider's, from `gpus.csv` of the package: its first column is the provider's name."""
    text = (files(package) / "gpus.csv").read_text(encoding="utf-8")
    rows = csv.reader(io.StringIO(text))
    next(rows)
    return {row[0]: row[1] for row in rows}


class WrongField(ValueError):
    """A field is missing or of another type; the message names it."""


@contextmanager
def documented(provider: str, what: str) -> Iterator[None]:
    """Raises `ProviderFailure` with the field where answers about `what` have another shape than the provider documents."""
    try:
        yield
    except WrongField as error:
        raise ProviderFailure(f"{provider}: {what} changed its shape: {error}") from error


def read_each[Entry, Machine](
    entries: Iterable[tuple[str, Entry]], read: Callable[[Entry], Iterable[Machine]]
) -> tuple[tuple[Machine, ...], tuple[Quarantined, ...]]:
    """What the named entries of a list hold, and those in which a field is wrong, set aside under their names."""
    machines: list[Machine] = []
    quarantined: list[Quarantined] = []
    for name, entry in entries:
        try:
            machines += list(read(entry))
        except WrongField as error:
            quarantined.append(Quarantined(what=name, reason=str(error)))
    return tuple(machines), tuple(quarantined)


def stated(row: Any, name: str) -> str:
    """What a field says, whatever it is, to name a row that cannot be read."""
    return str(row.get(name) if isinstance(row, dict) else None)


def mapping(row: Any, name: str) -> dict[str, Any]:
    """The object in a field. Raises `WrongField`."""
    return _typed(row, name, dict, "an object")


def sequence(row: Any, name: str) -> list[Any]:
    """The list in a field. Raises `WrongField`."""
    return _typed(row, name, list, "a list")


def text(row: Any, name: str) -> str:
    """The text in a field. Raises `WrongField`."""
    return _typed(row, name, str, "text")


def whole(row: Any, name: str) -> int:
    """The whole number in a field; true and false are none. Raises `WrongField`."""
    value = _typed(row, name, int, "a whole number")
    if isinstance(value, bool):
        raise WrongField(f"{name} is {value!r}, not a whole number")
    return value


def yes_no(row: Any, name: str) -> bool:
    """The flag in a field. Raises `WrongField`."""
    return _typed(row, name, bool, "true or false")


def number(row: Any, name: str) -> Decimal:
    """The number in a field, exactly as it is written. Raises `WrongField`."""
    value = row.get(name) if isinstance(row, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise WrongField(f"{name} is {'missing' if value is None else f'{value!r:.40}'}, not a number")
    return Decimal(repr(value))


def number_if_stated(row: Any, name: str) -> Decimal | None:
    """The number in a field that may be missing or null; None for zero too, which means unknown. Raises `WrongField`."""
    return None if not isinstance(row, dict) or row.get(name) is None else number(row, name) or None


def amount(row: Any, name: str) -> Decimal:
    """The number in a field that may write it as text, exactly as it is written. Raises `WrongField`."""
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, str):
        return number(row, name)
    try:
        read = Decimal(value)
    except InvalidOperation:
        raise WrongField(f"{name} is {value!r:.40}, not a number") from None
    if not read.is_finite():
        raise WrongField(f"{name} is {value!r:.40}, not a number")
    return read


def word[T](row: Any, name: str, accepted: Mapping[str, T]) -> T:
    """What one of the documented words in a field means. Raises `WrongField` for any other."""
    value = text(row, name)
    if value not in accepted:
        raise WrongField(f"{name} is {value!r:.40}, not one of {', '.join(accepted)}")
    return accepted[value]


def _typed[T](row: Any, name: str, kind: type[T], wanted: str) -> T:
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind):
        raise WrongField(f"{name} is {'missing' if value is None else f'{value!r:.40}'}, not {wanted}")
    return value
