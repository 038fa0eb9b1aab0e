"""Calls to a provider's gRPC services with a bearer token, over grpcio, with the messages of the provider's table."""

import os
import weakref
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.runtime.extras import needed_module
from gpuplan.providers.cloud_endpoints import RestAccount
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.feed_client import Again, Refused, patiently
from gpuplan.providers.price_lists.field_reading import WrongField
from gpuplan.providers.price_lists.protobuf_messages import decoded, encoded, message_table
from gpuplan.providers.rate_limit import RateLimit

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
