"""Tables of keys: which key of a format states which fact, how its value is read, and what the framework assumes without it."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpuplan.api.imports.facts import AUTO, FactValue, Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located, scalar

#: Numbers beyond this are typing errors: more tokens than any corpus, more layers than any model.
_LARGEST = 1e18


class NotReadable(ValueError):
    """A value that does not fit its key; the message says what was expected."""


def as_scalar(value: Any) -> Any:
    """Text that holds a number or boolean, as flags and quoted values do, as that value."""
    return scalar(value.strip()) if isinstance(value, str) else value


def real(value: Any) -> FactValue | None:
    """A number of at least zero; `auto` stays. Raises `NotReadable`."""
    plain = as_scalar(value)
    if plain is None or plain == AUTO:
        return plain  # type: ignore[no-any-return]
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise NotReadable("is no number")
    if not math.isfinite(plain) or not 0 <= plain <= _LARGEST:
        raise NotReadable("is out of range")
    return plain


def whole(value: Any) -> FactValue | None:
    """A whole number; `auto` stays. Raises `NotReadable`."""
    plain = real(value)
    if isinstance(plain, float):
        if plain != int(plain):
            raise NotReadable("is no whole number")
        return int(plain)
    return plain


def size(value: Any) -> FactValue | None:
    """A whole number above zero; `auto` stays. Raises `NotReadable`."""
    plain = whole(value)
    if plain == 0 or (isinstance(plain, int) and plain > 10**10):
        raise NotReadable("is out of range")
    return plain


def count(value: Any) -> FactValue | None:
    """A whole number above zero, without a bound on tokens and samples; what is below means that it is not set."""
    plain = as_scalar(value)
    if isinstance(plain, int | float) and not isinstance(plain, bool) and plain <= 0:
        return None
    return whole(plain)


def yes_no(value: Any) -> FactValue | None:
    """True or false. Raises `NotReadable`."""
    plain = as_scalar(value)
    if plain is None or isinstance(plain, bool):
        return plain
    if plain in {0, 1}:
        return bool(plain)
    raise NotReadable("is neither true nor false")


def words(value: Any) -> FactValue | None:
    """Text on one line. Raises `NotReadable`."""
    if value is None or value == "":
        return None
    if isinstance(value, dict | list):
        raise NotReadable("is no text")
    text = re.sub(r"\s+", " ", str(value)).strip()
    return text[:300] or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One row: the fact, the keys that state it (the first that is there counts), how to read it, and its default."""

    fact: str
    keys: tuple[str, ...]
    read: Callable[[Any], FactValue | None] = words
    default: FactValue | None = None


def read_keys(table: Sequence[Key], document: Located, facts: TrainingFacts, framework: str) -> None:
    """State every fact of the table; a value that does not fit is listed among what was not understood, with no default."""
    for row in table:
        refused = len(facts.not_understood)
        for path in row.keys:
            place = document.find(path)
            if place is not None:
                value = readable(row.read, place[0], path, document, facts)
                if value is not None:
                    facts.put(row.fact, value, document.at(path))
                    break
        if row.default is not None and len(facts.not_understood) == refused:
            facts.put(row.fact, row.default, Origin(default_of=framework))


def readable(
    read: Callable[[Any], FactValue | None], value: Any, path: str, document: Located, facts: TrainingFacts
) -> FactValue | None:
    """`value` as `read` reads it; None with an entry among what was not understood if it cannot."""
    if isinstance(value, str) and ("${" in value or "$(" in value or value.startswith("$")):
        facts.not_understood.append(f"{document.at(path)}: {path} is {value[:80]!r}, which nothing here states")
        return None
    try:
        return read(value)
    except NotReadable as error:
        facts.not_understood.append(f"{document.at(path)}: {path} {str(value)[:60]!r} {error}")
        return None
