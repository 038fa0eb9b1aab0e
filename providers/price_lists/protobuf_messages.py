"""Protobuf messages of a small table, encoded without generated code.

The table has a row for each message: its fields as `name:number:type`, where the type is `int` (also of flags and enums),
`text`, or another message, and `*` marks a list. A field that is absent on the wire has its default value, so `decoded` leaves
it out. Unknown fields are skipped. https://protobuf.dev/programming-guides/encoding/
"""

import csv
import io
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.providers.price_lists.field_reading import WrongField

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}

type Table = dict[str, dict[str, tuple[int, str]]]


@cache
def message_table(package: str) -> Table:
    """The fields of each message by name, from `messages.csv` of a package."""
    text = (files(package) / "messages.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(io.StringIO(text))
    return {row["message"]: dict(_field(field) for field in row["fields"].split()) for row in rows}


def encoded(table: Table, name: str, fields: Mapping[str, Any]) -> bytes:
    """A message as protobuf; default values are left out, as proto3 does."""
    data = b""
    for field, value in fields.items():
        number, kind = table[name][field]
        if kind == "int":
            data += _varint(number << 3 | VARINT) + _varint(value) if value else b""
        else:
            part = value.encode() if kind == "text" else encoded(table, kind, value)
            data += _varint(number << 3 | BYTES) + _varint(len(part)) + part if part or kind != "text" else b""
    return data


def decoded(table: Table, name: str, data: bytes) -> dict[str, Any]:
    """The known fields of a message. Raises `WrongField` for bytes that are no such message."""
    fields = {number: (field, kind) for field, (number, kind) in table[name].items()}
    message: dict[str, Any] = {}
    position = 0
    try:
        while position < len(data):
            tag, position = _read_varint(data, position)
            value, position = _read_value(data, position, tag & 7)
            field, kind = fields.get(tag >> 3, ("", ""))
            if not field:
                continue
            if isinstance(value, bytes) == (kind == "int"):
                raise WrongField(f"{name}.{field} has wire type {tag & 7}, not that of {kind}")
            read = _read(table, kind, value)
            if kind.endswith("*"):
                message.setdefault(field, []).append(read)
            else:
                message[field] = read
    except (IndexError, UnicodeDecodeError):
        raise WrongField(f"{name} is no protobuf message") from None
    return message


def _field(text: str) -> tuple[str, tuple[int, str]]:
    name, number, kind = text.split(":")
    return name, (int(number), kind)


def _read(table: Table, kind: str, value: int | bytes) -> Any:
    if isinstance(value, int):
        return value
    return value.decode() if kind == "text" else decoded(table, kind.rstrip("*"), value)


def _read_value(data: bytes, position: int, wire: int) -> tuple[int | bytes, int]:
    """The value at a position, and the position behind it. Raises `IndexError` where there is none."""
    if wire == VARINT:
        return _read_varint(data, position)
    size = _FIXED_BYTES.get(wire, -1)
    if wire == BYTES:
        size, position = _read_varint(data, position)
    if not 0 <= size <= len(data) - position:
        raise IndexError(position)
    return data[position : position + size], position + size


def _varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data, value = data + bytes((value & 0x7F | 0x80,)), value >> 7
    return data + bytes((value,))


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, signed as int64, and the position behind it. Raises `IndexError` where there is none."""
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return (value - (1 << 64) if value >= 1 << 63 else value), position
