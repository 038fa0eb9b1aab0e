"""Calls to a provider's gRPC services with a bearer token, over grpcio, with the messages of the provider's table.

Protobuf messages of a small table, encoded without generated code.

The table has a row for each message: its fields as `name:number:type`, where the type is `int` (also of flags and enums),
`text`, or another message, and `*` marks a list. A field that is absent on the wire has its default value, so `decoded` leaves
it out. Unknown fields are skipped. https://protobuf.dev/programming-guides/encoding/
"""

import csv
import io
import os
import weakref
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.cloud_endpoints import RestAccount
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.feed_client import Again, Refused, patiently
from gpuplan.providers.price_lists.field_reading import WrongField
from gpuplan.providers.rate_limit import RateLimit

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


TIMEOUT_SECONDS = 30.0
PAGE_SIZE = 999
TRY_AGAIN = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "ABORTED", "INTERNAL"}
REFUSED_KEY = {"UNAUTHENTICATED", "PERMISSION_DENIED"}
CANNOT_BE_ASKED = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "UNIMPLEMENTED", "OUT_OF_RANGE"}
Message = Mapping[str, Any]


class GrpcClient:
    """Calls to SERVICE.HOST of `account.endpoint`; thread-safe. A plain http endpoint serves all, for a local server."""

    def __init__(self, account: RestAccount, package: str, *, calls_per_second: int, paced: bool) -> None:
        """`package` has the messages. Raises `UnusableInput` at the endpoint's variable for one that is not a web address."""
        try:
            self._address = httpx.URL(account.endpoint)
        except httpx.InvalidURL:
            self._address = httpx.URL("")
        if self._address.scheme not in {"http", "https"} or not self._address.host:
            message = "is not an http or https address such as https://api.example.com"
            raise UnusableInput.at(f"GPUPLAN_{account.provider.upper()}_ENDPOINT", message=message)
        self._account = account
        self._table = message_table(package)
        self._pace = RateLimit(calls_per_second if paced else None)
        self._channels: dict[str, Any] = {}
        self._lock = Lock()
        weakref.finalize(self, _close, self._channels)

    def call(self, service: str, method: str, asked: tuple[str, Message], answer: str) -> dict[str, Any]:
        """The answer to `asked`, a message's name and fields. Raises `Refused` or `ProviderFailure`."""
        grpc = _grpc()
        if not self._account.key:
            raise ProviderFailure(f"{self._account.provider}: no key given; set {self._account.key_variable}")
        send = self._channel(service).unary_unary(f"/{method}")
        request, metadata = encoded(self._table, *asked), (("authorization", f"Bearer {self._account.key}"),)

        def attempt() -> bytes:
            self._pace.wait()
            try:
                return bytes(send(request, timeout=TIMEOUT_SECONDS, metadata=metadata))
            except grpc.RpcError as error:
                raise self._failure(method, error.code().name, redacted_text(error.details() or "")) from error

        try:
            return decoded(self._table, answer, patiently(attempt, method))
        except WrongField as error:
            raise ProviderFailure(
                f"{self._account.provider}: the answer of {method} changed its shape: {error}"
            ) from error

    def pages(self, service: str, method: str, asked: tuple[str, Message], answer: str) -> Iterator[dict[str, Any]]:
        """The items of all pages. Raises `ProviderFailure`, also for a page that names itself as the next."""
        name, fields = asked
        token, seen = "", set[str]()
        while token not in seen:
            seen.add(token)
            page = self.call(service, method, (name, {**fields, "page_size": PAGE_SIZE, "page_token": token}), answer)
            yield from page.get("items", ())
            token = page.get("next_page_token", "")
            if not token:
                return
        raise ProviderFailure(f"{self._account.provider}: {method} names the page {token[:40]!r} twice")

    def _channel(self, service: str) -> Any:
        grpc = _grpc()
        address = self._address
        with self._lock:
            if service not in self._channels:
                if address.scheme == "http":
                    self._channels[service] = grpc.insecure_channel(f"{address.host}:{address.port or 80}")
                else:
                    host = f"{service}.{address.host}:{address.port or 443}"
                    self._channels[service] = grpc.secure_channel(host, grpc.ssl_channel_credentials())
            return self._channels[service]

    def _failure(self, method: str, code: str, details: str) -> Exception:
        line = f"{self._account.provider}: {method}: {code}{f', {details}' if details else ''}"
        if code in TRY_AGAIN:
            return Again(line)
        if code in REFUSED_KEY:
            return ProviderFailure(f"{line}; check {self._account.key_variable}")
        return Refused(line) if code in CANNOT_BE_ASKED else ProviderFailure(line)


def _grpc() -> Any:
    """The library, imported with the first call; it logs closed connections to the terminal unless told otherwise.

    Raises `ProviderFailure` if it is not installed.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        import grpc  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ProviderFailure(f"its interface needs {needed_module(error)}") from error
    return grpc


def _close(channels: dict[str, Any]) -> None:
    for channel in channels.values():
        channel.close()
