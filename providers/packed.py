"""What a provider gave as bytes and back, so that one process can fetch a region and another write it down.

JSON, compressed: every field as it is (fractions and times exactly), for as long as a refresh takes. A release that
cannot read what another packed refuses it; rows are never guessed at.
"""

import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from providers.contract import Rows

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Fast, and still a tenth of the size: rows of a region differ in little but their prices.
_LEVEL = 3


class Unpackable(ValueError):
    """These bytes are none that this release has packed."""


def packed(rows: Rows) -> bytes:
    """The rows as bytes."""
    return zlib.compress(_adapter(Rows).dump_json(rows), _LEVEL)


def unpacked(content: bytes) -> Rows:
    """The rows that were packed, equal in every field. Raises `Unpackable`."""
    return _read(Rows, content)  # type: ignore[no-any-return]


def packed_regions(regions: tuple[str, ...]) -> bytes:
    """A provider's list of regions as bytes."""
    return zlib.compress(_adapter(tuple[str, ...]).dump_json(regions), _LEVEL)


def unpacked_regions(content: bytes) -> tuple[str, ...]:
    """The regions that were packed, in their order. Raises `Unpackable`."""
    return _read(tuple[str, ...], content)  # type: ignore[no-any-return]


def _read(kind: Any, content: bytes) -> Any:
    try:
        return _adapter(kind).validate_json(zlib.decompress(content))
    except (zlib.error, ValueError) as error:
        raise Unpackable(f"a packed part cannot be read: {type(error).__name__}") from error


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    # Here, since only workers need it.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
