"""Read fields of a provider's JSON: a field of another type than documented is named, never guessed."""

from typing import Any


class WrongField(ValueError):
    """A field is missing or of another type; the message names it."""


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


def _typed[T](row: Any, name: str, kind: type[T], wanted: str) -> T:
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind):
        raise WrongField(f"{name} is {'missing' if value is None else f'{value!r:.40}'}, not {wanted}")
    return value
