"""One call as a value, and what its response means: the part that is the same with and without `await`."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx
from tenacity import RetryCallState, stop_after_attempt
from tenacity.retry import retry_base
from tenacity.stop import stop_base
from tenacity.wait import wait_base, wait_exponential_jitter

from gpuplan_client.answers.problem import Problem
from gpuplan_client.errors import GpuplanError, TooMany, Unavailable, Unreachable, refused

#: Longer than any service asks one to wait between two tries.
LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call[Answer]:
    """A request to be sent, whose answer is an `Answer`."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False
    """Whether the answer is a file rather than JSON."""
    single_try: bool = False
    """Whether a second try would do it a second time: what answers with a secret is kept under no `Idempotency-Key`."""

    def tries(self, usual: stop_base) -> stop_base:
        """When to give up: as usual, or after one try."""
        return stop_after_attempt(1) if self.single_try else usual

    def sent_by(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request. Its `Idempotency-Key` is made here once, so that every try carries the same."""
        keyed = {"Idempotency-Key": uuid.uuid4().hex} if self.method == "POST" else {}
        return client.build_request(
            self.method,
            self.path,
            params={name: value for name, value in self.query.items() if value is not None},
            json=self.body,
            headers=keyed | dict(self.headers),
        )

    def read(self, response: httpx.Response) -> Answer:
        """The answer. Raises a `Refused` for a problem, `Unreachable` for what no gpuplan service says."""
        if response.is_success:
            if self.text:
                return cast(Answer, response.text)
            body = _object(response)
            if body is None:
                raise Unreachable(f"{response.url} answers {response.status_code}, but not in JSON, as gpuplan does")
            return cast(Answer, body)
        problem = _problem(response)
        raise refused(problem, retry_after_seconds=retry_after_seconds(response))


def _object(response: httpx.Response) -> dict[str, Any] | None:
    """The object that every answer of the service is; None for anything else, such as nests without end."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _problem(response: httpx.Response) -> Problem:
    """What the service says is wrong; a proxy on the way may say it in its own words."""
    problem = _object(response)
    if problem is not None and isinstance(problem.get("detail"), str) and isinstance(problem.get("title"), str):
        return cast(Problem, problem | {"status": response.status_code})
    detail = f"{response.url.host} answers {response.status_code} {response.reason_phrase}, which is no gpuplan problem"
    return {"type": "about:blank", "title": response.reason_phrase, "status": response.status_code, "detail": detail}


def retry_after_seconds(response: httpx.Response) -> float | None:
    """What `Retry-After` says, as seconds from now; None without one that can be read."""
    header = response.headers.get("retry-after", "").strip()
    if header.isdecimal():
        return float(header)
    try:
        then = parsedate_to_datetime(header)
        now = parsedate_to_datetime(response.headers["date"])
        return max(0.0, (then - now).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None


class MayPass(retry_base):
    """Another try for what passes by itself: no connection, a rate limit, a service that restarts.

    A call may be sent twice: reading changes nothing, and what changes something carries an `Idempotency-Key`; what may
    not is tried `once`.
    """

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Whether this outcome may pass."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        if isinstance(error, TooMany | Unavailable):
            return (error.retry_after_seconds or 0.0) <= LONGEST_WAIT_SECONDS
        return isinstance(error, Unreachable) and isinstance(error.__cause__, httpx.TransportError)


class AsAsked(wait_base):
    """As long as the service asks for, else longer and longer with some chance in it."""

    _otherwise = wait_exponential_jitter(multiplier=0.5, max=8)

    def __call__(self, retry_state: RetryCallState) -> float:
        """Seconds until the next try."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after_seconds if isinstance(error, TooMany | Unavailable) else None
        return self._otherwise(retry_state) if asked is None else asked


def tries(count: int) -> stop_base:
    """When to give up. Raises `ValueError` for less than one try."""
    if count < 1:
        raise ValueError(f"tries is {count}; accepted: 1 or more")
    return stop_after_attempt(count)


def unreachable(error: httpx.HTTPError, url: httpx.URL) -> GpuplanError:
    """A transport that failed, in words."""
    return Unreachable(f"no answer from {url.scheme}://{url.netloc.decode()}: {str(error) or type(error).__name__}")
