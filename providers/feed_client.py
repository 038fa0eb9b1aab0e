"""Public feeds over HTTPS (retail prices, price files, the spot advisor), with bounded retries.

Throttling, server errors, resets and truncated answers are retried; a wait that the server requests is observed if short
enough. Persistent failures give a one-line message with the address.
"""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential_jitter,
)
from tenacity.stop import StopBaseT
from tenacity.wait import WaitBaseT

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.error_redaction import redacted_text, shown_url

ATTEMPTS = 5
#: The longest total time for a single address in a refresh, waits included.
MOST_SECONDS_PER_ADDRESS = 180.0
LONGEST_WAIT_SECONDS = 60.0
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
CANNOT_BE_ASKED = frozenset({400, 422, 501})


class Again(Exception):
    """A transient failure; `wait_seconds` if the server stated it."""

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class MissingResource(ProviderFailure):
    """The address answers 404: the resource does not exist."""


class Refused(ProviderFailure):
    """The address does not support such a query (HTTP 400, 422 or 501)."""


def web_client() -> httpx.Client:
    """A client with timeouts that follows redirects; close it after use."""
    return httpx.Client(timeout=TIMEOUT, follow_redirects=True, headers={"User-Agent": "gpuplan"})


def get_json(client: httpx.Client, url: str, *, params: dict[str, str] | None = None) -> tuple[Any, httpx.Headers]:
    """The JSON document at `url` and the answer's headers.

    Raises `MissingResource` for a 404, and `ProviderFailure` with the address for failures that persist after `ATTEMPTS`.
    """

    def attempt() -> tuple[Any, httpx.Headers]:
        response = client.get(url, params=params)
        _check_json(response, url)
        try:
            return response.json(), response.headers
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise Again(f"the answer is not whole JSON ({error})") from error

    return patiently(attempt, url)


def get_text(client: httpx.Client, url: str, *, attempts: int = ATTEMPTS) -> str:
    """The text at `url`. Raises `ProviderFailure` like `get_json`, after fewer attempts if so wished."""

    def attempt() -> str:
        response = client.get(url)
        _check(response)
        return response.text

    return patiently(attempt, url, stop=stop_after_attempt(attempts))


def post_json(client: httpx.Client, url: str, document: dict[str, Any]) -> Any:
    """The JSON answer of `url` to a JSON document. Raises `ProviderFailure` like `get_json`."""

    def attempt() -> Any:
        response = client.post(url, json=document)
        _check_json(response, url)
        try:
            return response.json()
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise Again(f"the answer is not whole JSON ({error})") from error

    return patiently(attempt, url)


@contextmanager
def open_stream(client: httpx.Client, url: str) -> Iterator[httpx.Response]:
    """The answer of `url` as an open stream, for large files; retries opening, not reading."""

    def attempt() -> httpx.Response:
        response = client.send(client.build_request("GET", url), stream=True)
        try:
            _check(response)
        except BaseException:
            response.close()
            raise
        return response

    response = patiently(attempt, url)
    try:
        yield response
    finally:
        response.close()


def patiently[T](
    attempt: Callable[[], T], url: str, *, stop: StopBaseT | None = None, wait: WaitBaseT | None = None
) -> T:
    """The result of `attempt`, retried while the failure is transient; raises the last failure as `ProviderFailure`.

    `stop` and `wait` replace the limits of public feeds.
    """
    retrying = Retrying(
        retry=retry_if_exception(_is_transient),
        stop=stop or stop_after_attempt(ATTEMPTS) | stop_after_delay(MOST_SECONDS_PER_ADDRESS),
        wait=wait or _wait,
        reraise=True,
    )
    try:
        return retrying(attempt)
    except (Again, httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderFailure(f"{shown_url(url)}: {redacted_text(error)}") from error


def _is_transient(failure: BaseException) -> bool:
    """An untrusted certificate is not transient."""
    cause: BaseException | None = failure
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is None and isinstance(failure, (Again, httpx.TransportError))


_backing_off = wait_exponential_jitter(multiplier=0.5, max=15, jitter=0.5)


def _wait(state: RetryCallState) -> float:
    """The wait that the server requests, else growing from half a second."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.wait_seconds if isinstance(error, Again) else None
    return _backing_off(state) if asked is None else min(asked, LONGEST_WAIT_SECONDS)


def _check_json(response: httpx.Response, url: str) -> None:
    """Raises `ProviderFailure` for a page of a proxy or a login in place of JSON too."""
    _check(response)
    if response.headers.get("content-type", "").startswith("text/html"):
        raise ProviderFailure(
            f"{shown_url(url)}: answered with an HTML page, not JSON; check the endpoint and any proxy"
        )


def _check(response: httpx.Response) -> None:
    if response.status_code in TRY_AGAIN:
        asked = response.headers.get("retry-after", "")
        seconds = float(asked) if asked.isdecimal() else None
        if seconds is not None and seconds > LONGEST_WAIT_SECONDS:
            raise ProviderFailure(
                f"{shown_url(str(response.url))}: throttled (HTTP {response.status_code}) and asks to wait {seconds:.0f} s; try later"
            )
        raise Again(f"HTTP {response.status_code} after {ATTEMPTS} attempts", seconds)
    if response.status_code == 404:
        raise MissingResource(f"{shown_url(str(response.url))}: not found (HTTP 404)")
    if response.is_error:
        kind = Refused if response.status_code in CANNOT_BE_ASKED else ProviderFailure
        raise kind(f"{shown_url(str(response.url))}: HTTP {response.status_code} {response.reason_phrase}")
