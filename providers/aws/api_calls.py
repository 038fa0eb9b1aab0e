"""Calls to AWS through boto3: clients with timeouts, rate limits below the published ones, complete answers.

A call returns all of its pages or raises `CallFailed` with a one-line message. The SDK retries throttling, server errors
and lost connections. Failures that the SDK treats as final although they are transient (a truncated reply, an expired page)
are retried here, a bounded number of times.
"""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.rate_limit import RateLimit

#: Short, so that a dead region does not delay the others (the SDK's default is a minute, five times).
CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 15
SDK_ATTEMPTS = 5
#: Attempts for a server that does not answer at all; throttling and server errors get more.
SILENT_ATTEMPTS = 2
POOL_CONNECTIONS = 16
#: Attempts for answers that are broken or whose pages expire.
WHOLE_ATTEMPTS = 3
#: More pages than any of our lists has; stops a server that never ends.
MOST_PAGES = 2_000
#: The Price List API exists in three regions of the commercial partition and covers all regions.
PRICING_REGION = "us-east-1"

#: Calls per second and burst by service. EC2 refills 20 a second into a bucket of 100 per region and action, the Price List
#: API 5 into 10: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
#: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-pelong.html Savings Plans publishes no limit and uses
#: the lower one. Service Quotas allows 10 with a burst of 10 more:
#: https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html
PACES = {"ec2": (15, 50), "pricing": (5, 10), "savingsplans": (5, 10), "service-quotas": (8, 10)}

EXPIRED_PAGE = frozenset(
    {"ExpiredNextToken", "ExpiredNextTokenException", "InvalidNextToken", "InvalidNextTokenException"}
)
#: Error codes of rejected credentials. A region that is not enabled also answers AuthFailure.
BAD_CREDENTIALS = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
NOT_PERMITTED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired"})


class CallFailed(Exception):
    """A call failed; the message is one line for people, without the region. `code` is AWS's own, or "".

    `unreachable` if no answer came at all, so that other calls to the same endpoint would fail too.
    """

    def __init__(self, message: str, *, code: str = "", unreachable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.unreachable = unreachable

    @property
    def is_for_all(self) -> bool:
        """Whether the same call with other parameters would fail too."""
        return self.unreachable or self.code in BAD_CREDENTIALS or self.code in NOT_PERMITTED


class _Broken(Exception):
    """An answer that cannot be read or is truncated; a retry may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Time limits and attempts of one request, for callers that would rather do without an answer than wait."""

    connect_seconds: float
    read_seconds: float
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    items: list[Any]
    next_token: str


class Calls:
    """All calls to one account; thread-safe."""

    def __init__(self, session: Any, *, paced: bool, limits: CallLimits | None = None) -> None:
        """Without `limits`, those of a refresh: it waits for slow answers and repeats failed calls."""
        self._session = session
        self._paced = paced
        self._limits = limits
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}
        self._paces: dict[tuple[str, str, str], RateLimit] = {}

    def every(self, service: str, region: str, operation: str, key: str, /, **parameters: Any) -> list[Any]:
        """The items under `key` of all pages of an operation; parameters as the SDK names them.

        Raises `CallFailed`.
        """
        label = f"{service} {operation}"
        retrying = Retrying(
            retry=retry_if_exception_type(_Broken),
            stop=stop_after_attempt(self._limits.attempts if self._limits else WHOLE_ATTEMPTS),
            wait=wait_exponential_jitter(multiplier=0.2, max=5, jitter=0.2),
            reraise=True,
        )
        try:
            return retrying(lambda: list(self._pages(service, region, operation, key, parameters)))
        except _Broken as error:
            raise CallFailed(f"{label}: {redacted_text(error)}") from error
        except CallFailed as error:
            raise CallFailed(f"{label}: {error}", code=error.code, unreachable=error.unreachable) from error

    def account(self) -> str:
        """A hash that tells the credentials of accounts apart, without a call."""
        credentials = self._session.get_credentials()
        return hashlib.sha256(f"{self._session.profile_name} {credentials.access_key}".encode()).hexdigest()[:16]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _pages(self, service: str, region: str, operation: str, key: str, parameters: dict[str, Any]) -> Iterator[Any]:
        token_name = "nextToken" if service == "savingsplans" else "NextToken"
        call = getattr(self._client(service, region), operation)
        rate_limit = self._rate_limit(service, region, operation)
        token, seen = "", set[str]()
        for _ in range(MOST_PAGES):
            rate_limit.wait()
            answer = _answer(call, key, token_name, {**parameters, **({token_name: token} if token else {})})
            yield from answer.items
            token = answer.next_token
            if not token:
                return
            if token in seen:
                raise CallFailed("the answer sends from page to page in a circle")
            seen.add(token)
        raise CallFailed(f"the answer has more than {MOST_PAGES} pages")

    def _client(self, service: str, region: str) -> Any:
        """The client of a service in a region; creating one is not thread-safe, using it is."""
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

        with self._lock:
            if (service, region) not in self._clients:
                limits = self._limits or CallLimits(
                    connect_seconds=CONNECT_TIMEOUT_SECONDS, read_seconds=READ_TIMEOUT_SECONDS, attempts=SDK_ATTEMPTS
                )
                config = Config(
                    connect_timeout=limits.connect_seconds,
                    read_timeout=limits.read_seconds,
                    retries={"mode": "standard", "total_max_attempts": limits.attempts},
                    max_pool_connections=POOL_CONNECTIONS,
                    user_agent_extra="gpuplan",
                )
                try:
                    self._clients[service, region] = self._session.client(service, region_name=region, config=config)
                except (BotoCoreError, ValueError) as error:
                    raise CallFailed(redacted_text(error), unreachable=True) from error
                self._clients[service, region].meta.events.register("needs-retry", _give_up_on_silence)
            return self._clients[service, region]

    def _rate_limit(self, service: str, region: str, operation: str) -> RateLimit:
        with self._lock:
            key = (service, region, operation)
            if key not in self._paces:
                per_second, burst = PACES[service]
                self._paces[key] = RateLimit(per_second if self._paced else None, burst=burst)
            return self._paces[key]


def _give_up_on_silence(attempts: int, caught_exception: Exception | None, **_: Any) -> None:
    """End the SDK's attempts early if no connection was made or it stayed silent: raises the error."""
    from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

    silent = (ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError)
    if attempts >= SILENT_ATTEMPTS and isinstance(caught_exception, silent):
        raise caught_exception


def _answer(call: Any, key: str, token_name: str, parameters: dict[str, Any]) -> _Answer:
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

    try:
        response = call(**parameters)
    except ClientError as error:
        raise _of_client_error(error) from error
    except (NoConnection, HTTPClientError) as error:
        raise CallFailed(f"no answer ({redacted_text(error)})", unreachable=True) from error
    except ResponseParserError as error:
        what = redacted_text(error)
        advice = "" if "proxy" in what else "; check the endpoint and any proxy"
        raise _Broken(f"not what AWS sends{advice}: {what}") from error
    except BotoCoreError as error:
        raise CallFailed(redacted_text(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CallFailed(f"the answer is not understood ({type(error).__name__}: {redacted_text(error)})") from error
    return _checked(response, key, token_name)


def _of_client_error(error: Any) -> Exception:
    details = error.response.get("Error", {}) if isinstance(error.response, dict) else {}
    code = str(details.get("Code") or "")
    if code in EXPIRED_PAGE:
        return _Broken(f"{code}: its pages expired {WHOLE_ATTEMPTS} times while they were read")
    message = str(details.get("Message") or details.get("message") or "")
    text = f"{code}: {message}" if code and message else code or redacted_text(error)
    return CallFailed(redacted_text(text), code=code)


def _checked(response: Any, key: str, token_name: str) -> _Answer:
    """The items of a page. A foreign page (a proxy's, say) has neither the list nor a request id."""
    about = response.get("ResponseMetadata", {})
    kind = str(about.get("HTTPHeaders", {}).get("content-type", ""))
    items = response.get(key)
    if items is None and ("html" in kind or not (about.get("RequestId") or token_name in response)):
        raise _Broken(f"the answer has no {key} (content type {kind or 'unknown'}); check the endpoint and any proxy")
    if items is not None and not isinstance(items, list):
        raise CallFailed(f"the answer is not understood ({key} is {type(items).__name__}, a list is expected)")
    return _Answer(items=items or [], next_token=str(response.get(token_name) or ""))
