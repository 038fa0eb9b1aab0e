"""Listing through Google's clients, with bounded retries and clear errors.

The clients' defaults are not enough: Compute retries only 503, for ten minutes; Cloud Billing retries nothing. A rate limit
of Compute is a 403 that only its reason distinguishes from a missing permission.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.error_redaction import redacted_text

#: Reasons of a transient 403: the quota is refilled at the next minute.
RATE_LIMIT_REASONS = frozenset(("ratelimitexceeded", "rate_limit_exceeded", "userratelimitexceeded"))
#: Restarts of a listing whose page token has expired.
RESTARTS = 2
#: Retries of an answer that is not JSON: a truncated body is transient, a web page is not.
UNREADABLE_ANSWERS = 3
#: Exceptions of the clients for bodies that are not text or not an object, in addition to their own errors.
ODD_ANSWERS = (ValueError, TypeError, AttributeError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits for one page (waits included), one attempt, and the first wait."""

    seconds: float = 75.0
    attempt_seconds: float = 30.0
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 15.0


class NoAccess(ProviderFailure):
    """The service rejects the caller: a wrong key, a missing permission, or a disabled API."""


class NotOffered(ProviderFailure):
    """The requested resource does not exist, such as a location without TPUs."""


class _Pager(Protocol):
    @property
    def pages(self) -> Iterable[Any]: ...


def listed[Row](
    what: str,
    ask: Callable[..., _Pager],
    request: Any,
    rows_of: Callable[[Any], Iterable[Row]],
    *,
    patience: Patience,
) -> list[Row]:
    """The result of `rows_of` for every page of a listing; `what` names the call in errors.

    Raises `NoAccess`, `NotOffered` or else `ProviderFailure`.
    """
    from google.api_core.exceptions import BadRequest

    for attempt in range(1 + RESTARTS):
        seen: set[str] = set()
        rows: list[Row] = []
        pages = _pages(ask, request, patience)
        while True:
            try:
                page = next(pages, None)
            except BadRequest as error:
                if seen and attempt < RESTARTS and "token" in str(error).lower():
                    break
                raise _failure(what, error) from error
            except Exception as error:
                raise _failure(what, error) from error
            if page is None:
                return rows
            rows += rows_of(page)
            token = page.next_page_token
            if token and token in seen:
                raise ProviderFailure(f"{what}: the page token {redacted_text(token)[:40]!r} came twice; stopped there")
            seen.add(token)
    raise ProviderFailure(f"{what}: the page token expired {1 + RESTARTS} times")


def single(what: str, ask: Callable[..., Any], request: Any, *, patience: Patience) -> Any:
    """The answer to one request; `what` names the call in errors. Raises as `listed` does."""
    try:
        return ask(request, retry=_retry(patience), timeout=patience.attempt_seconds)
    except Exception as error:
        raise _failure(what, error) from error


def _pages(ask: Callable[..., _Pager], request: Any, patience: Patience) -> Iterator[Any]:
    """Only Google's client runs in here, so any exception is about the answer."""
    yield from ask(request, retry=_retry(patience), timeout=patience.attempt_seconds).pages


def _failure(what: str, error: Exception) -> ProviderFailure:
    """The error for display; the clients raise errors of any type for an answer of another shape."""
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, InvalidOperation
    from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]
    from requests.exceptions import RequestException

    cause = error.cause if isinstance(error, exceptions.RetryError) else error
    message = f"{what}: {redacted_text(cause or error)}"
    if isinstance(cause, (exceptions.Unauthorized, exceptions.Forbidden)) or _is_wrong_key(cause):
        return NoAccess(message)
    if isinstance(cause, InvalidOperation):
        return NoAccess(f"{what}: 401, credentials are required and GPUPLAN_ANONYMOUS=1 sends none")
    if isinstance(cause, exceptions.NotFound):
        return NotOffered(message)
    if isinstance(cause, (exceptions.GoogleAPIError, GoogleAuthError, RequestException)):
        return ProviderFailure(message)
    if isinstance(cause, (ParseError, *ODD_ANSWERS)):
        return ProviderFailure(
            f"{what}: the answer does not have the form that the API documents ({redacted_text(cause)}); check the endpoint and any proxy"
        )
    raise error


def _is_wrong_key(error: BaseException | None) -> bool:
    return "API_KEY" in str(getattr(error, "reason", "") or "")


def _retry(patience: Patience) -> Any:
    from google.api_core.retry import Retry

    return Retry(
        predicate=_may_pass(),
        initial=patience.first_wait_seconds,
        maximum=patience.longest_wait_seconds,
        multiplier=2.0,
        timeout=patience.seconds,
    )


def _may_pass() -> Callable[[Exception], bool]:
    """Whether an error may be transient; one per listing, since it counts unreadable answers."""
    from google.api_core import exceptions
    from google.auth.exceptions import InvalidOperation, TransportError
    from google.protobuf.json_format import ParseError
    from requests.exceptions import ChunkedEncodingError, ContentDecodingError, SSLError, Timeout
    from requests.exceptions import ConnectionError as Unreachable

    unreadable = 0
    passing = (
        exceptions.TooManyRequests,
        exceptions.InternalServerError,
        exceptions.BadGateway,
        exceptions.ServiceUnavailable,
        exceptions.GatewayTimeout,
        Unreachable,
        ChunkedEncodingError,
        ContentDecodingError,
        Timeout,
        TransportError,
    )

    def may_pass(error: Exception) -> bool:
        nonlocal unreadable
        if isinstance(error, (InvalidOperation, SSLError)):
            return False
        if isinstance(error, passing):
            return True
        if isinstance(error, exceptions.Forbidden):
            return _is_a_rate_limit(error)
        if isinstance(error, (ParseError, *ODD_ANSWERS)):
            unreadable += 1
            return unreadable < UNREADABLE_ANSWERS
        return False

    return may_pass


def _is_a_rate_limit(error: Any) -> bool:
    reasons = [str(error.reason or "")] + [
        str(error.get("reason", "")) for error in error.errors if hasattr(error, "get")
    ]
    return any(reason.lower() in RATE_LIMIT_REASONS for reason in reasons)
