"""Public feeds over plain HTTPS (retail prices, price files, the spot advisor): patient, bounded, and clear.

Throttling, server errors, resets and cut-off answers are tried again; a wait that the server asks for
is kept if it is short enough. What is left after that is one line that names the address.
"""

import json
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

from catalog.errors import ProviderFailure
from providers.said import said, shown_url

ATTEMPTS = 5
#: No single address may hold up a nightly run for longer than this, waits included.
MOST_SECONDS_PER_ADDRESS = 180.0
LONGEST_WAIT_SECONDS = 60.0
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
CANNOT_BE_ASKED = frozenset({400, 422, 501})


class _Again(Exception):
    """An answer that may be better next time; `wait_seconds` if the server said so."""

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class NotThere(ProviderFailure):
    """The address answers 404: what was asked for does not exist."""


class Refused(ProviderFailure):
    """The address answers that it cannot take such a question (HTTP 400, 422 or 501)."""


def web_client() -> httpx.Client:
    """A client with bounded waits that follows redirects; close it after use."""
    return httpx.Client(timeout=TIMEOUT, follow_redirects=True, headers={"User-Agent": "gpuplan"})


def get_json(client: httpx.Client, url: str, *, params: dict[str, str] | None = None) -> tuple[Any, httpx.Headers]:
    """The JSON document at `url` and the answer's headers.

    Raises `NotThere` for a 404, `ProviderFailure` naming the address for what still fails after `ATTEMPTS`.
    """

    def once() -> tuple[Any, httpx.Headers]:
        response = client.get(url, params=params)
        _check(response)
        if response.headers.get("content-type", "").startswith("text/html"):
            raise ProviderFailure(
                f"{shown_url(url)}: answered with an HTML page, not JSON; check the endpoint and any proxy"
            )
        try:
            return response.json(), response.headers
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise _Again(f"the answer is not whole JSON ({error})") from error

    return patiently(once, url)


@contextmanager
def opened(client: httpx.Client, url: str) -> Iterator[httpx.Response]:
    """The answer of `url` as an open stream, for what is too large to hold; opening it is tried again, reading is not."""

    def once() -> httpx.Response:
        response = client.send(client.build_request("GET", url), stream=True)
        try:
            _check(response)
        except BaseException:
            response.close()
            raise
        return response

    response = patiently(once, url)
    try:
        yield response
    finally:
        response.close()


def patiently[T](once: Callable[[], T], url: str) -> T:
    """The result of `once`, tried again while the failure may pass; the last failure as a `ProviderFailure`."""
    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, (_Again, httpx.TransportError))),
        stop=stop_after_attempt(ATTEMPTS) | stop_after_delay(MOST_SECONDS_PER_ADDRESS),
        wait=_wait,
        reraise=True,
    )
    try:
        return retrying(once)
    except (_Again, httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderFailure(f"{shown_url(url)}: {said(error)}") from error


_backing_off = wait_exponential_jitter(multiplier=0.5, max=15, jitter=0.5)


def _wait(state: RetryCallState) -> float:
    """As long as the server asks for, else growing from half a second."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.wait_seconds if isinstance(error, _Again) else None
    return _backing_off(state) if asked is None else min(asked, LONGEST_WAIT_SECONDS)


def _check(response: httpx.Response) -> None:
    if response.status_code in TRY_AGAIN:
        asked = response.headers.get("retry-after", "")
        seconds = float(asked) if asked.isdecimal() else None
        if seconds is not None and seconds > LONGEST_WAIT_SECONDS:
            raise ProviderFailure(
                f"{shown_url(str(response.url))}: throttled (HTTP {response.status_code}) and asks to wait {seconds:.0f} s; try later"
            )
        raise _Again(f"HTTP {response.status_code} after {ATTEMPTS} attempts", seconds)
    if response.status_code == 404:
        raise NotThere(f"{shown_url(str(response.url))}: not found (HTTP 404)")
    if response.is_error:
        kind = Refused if response.status_code in CANNOT_BE_ASKED else ProviderFailure
        raise kind(f"{shown_url(str(response.url))}: HTTP {response.status_code} {response.reason_phrase}")
