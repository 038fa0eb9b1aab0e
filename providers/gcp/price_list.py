"""The Cloud Billing Catalog over HTTPS, with bounded retries and clear errors.

Read without Google's client, so that an API key suffices to refresh prices without the extra `gcp`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
from pydantic import ValidationError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_before_delay, wait_exponential_jitter

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text
from gpuplan.providers.feed_client import TRY_AGAIN, Again, patiently
from gpuplan.providers.gcp.api_calls import (
    RATE_LIMIT_REASONS,
    RESTARTS,
    UNREADABLE_ANSWERS,
    NoAccess,
    NotOffered,
    Patience,
)
from gpuplan.providers.gcp.clients import Account, checked_endpoint, request_headers
from gpuplan.providers.gcp.sku_descriptions import SkuPage

ENDPOINT = "https://cloudbilling.googleapis.com"
COMPUTE_ENGINE = "services/6F81-5844-456A"
#: The service gives up to 5,000; smaller pages need less memory at once, and 25 more calls little time.
SKUS_PER_PAGE = 1000


class _ExpiredToken(ProviderFailure):
    """The page token is no longer valid: the list starts again."""


def listed_skus[Row](
    service: str,
    rows_of: Callable[[SkuPage], Iterable[Row]],
    account: Account,
    sources: Sources,
    *,
    patience: Patience,
) -> list[Row]:
    """The result of `rows_of` for every page of a service's SKUs.

    Raises `NoAccess`, `NotOffered` or else `ProviderFailure`, which also means an empty list.
    """
    what = f"gcp Cloud Billing Catalog, SKUs of {service}"
    url = _url(service, sources)
    with httpx.Client(timeout=patience.attempt_seconds, headers=request_headers(account, url)) as client:
        restarting = Retrying(
            retry=retry_if_exception_type(_ExpiredToken), stop=stop_after_attempt(1 + RESTARTS), reraise=True
        )
        try:
            return restarting(_rows, client, url, rows_of, patience)
        except _ExpiredToken as error:
            raise ProviderFailure(f"{what}: the page token expired {1 + RESTARTS} times") from error
        except ProviderFailure as error:
            raise type(error)(f"{what}: {redacted_text(error, secrets=(account.api_key,))}") from error


def check_access(account: Account, sources: Sources) -> None:
    """Read one SKU. Raises `ProviderFailure` if the price list does not answer this account."""
    url = _url(COMPUTE_ENGINE, sources)
    with httpx.Client(timeout=15, headers=request_headers(account, url)) as client:
        try:
            _page(client, url, {"pageSize": "1"}, Patience(seconds=0.0))
        except ProviderFailure as error:
            raise ProviderFailure(f"gcp: {redacted_text(error, secrets=(account.api_key,))}") from error


def _url(service: str, sources: Sources) -> str:
    return f"{checked_endpoint(sources.gcp_billing_endpoint, sources) or ENDPOINT}/v1/{service}/skus"


def _rows[Row](
    client: httpx.Client, url: str, rows_of: Callable[[SkuPage], Iterable[Row]], patience: Patience
) -> list[Row]:
    rows: list[Row] = []
    seen: set[str] = set()
    token, is_empty = "", True
    while True:
        parameters = {"currencyCode": "USD", "pageSize": str(SKUS_PER_PAGE)} | ({"pageToken": token} if token else {})
        page = _page(client, url, parameters, patience)
        is_empty = is_empty and not page.skus
        rows += rows_of(page)
        token = page.next_page_token
        if not token:
            break
        if token in seen:
            raise ProviderFailure(f"the page token {token[:40]!r} came twice; stopped there")
        seen.add(token)
    if is_empty:
        raise ProviderFailure("the list is empty, which a price list never is")
    return rows


def _page(client: httpx.Client, url: str, parameters: Mapping[str, str], patience: Patience) -> SkuPage:
    """One page. An answer that is not JSON is asked for a few times only: a web page does not pass."""
    unreadable = 0

    def attempt() -> SkuPage:
        nonlocal unreadable
        response = client.get(url, params=dict(parameters))
        if not response.is_success:
            raise _failure(response, has_token="pageToken" in parameters)
        try:
            return SkuPage.model_validate_json(response.content)
        except ValidationError as error:
            unreadable += 1
            kind = Again if unreadable < UNREADABLE_ANSWERS else ProviderFailure
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise kind(
                f"the answer does not have the form that the API documents ({place and f'{place}: '}{first['msg']}); check the endpoint and any proxy"
            ) from error

    wait = wait_exponential_jitter(
        multiplier=patience.first_wait_seconds, max=patience.longest_wait_seconds, jitter=patience.first_wait_seconds
    )
    return patiently(attempt, url, stop=stop_before_delay(patience.seconds), wait=wait)


def _failure(response: httpx.Response, *, has_token: bool) -> Exception:
    """The error of an answer, by its status and the reasons that its body gives."""
    status = response.status_code
    message, reasons = _error_of(response)
    line = f"{status} {message or response.reason_phrase}"
    if status in TRY_AGAIN or (status == httpx.codes.FORBIDDEN and reasons & RATE_LIMIT_REASONS):
        return Again(line)
    if status in {401, 403} or any("api_key" in reason for reason in reasons):
        return NoAccess(line)
    if status == httpx.codes.NOT_FOUND:
        return NotOffered(line)
    if status == httpx.codes.BAD_REQUEST and has_token and "token" in message.lower():
        return _ExpiredToken(line)
    return ProviderFailure(line)


def _error_of(response: httpx.Response) -> tuple[str, set[str]]:
    """Message and reasons of Google's error document, empty for anything else."""
    try:
        document: Any = json.loads(response.content)
    except ValueError:
        return "", set()
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        return "", set()
    details = [item for key in ("errors", "details") for item in error.get(key) or () if isinstance(item, dict)]
    return str(error.get("message") or ""), {str(item.get("reason", "")).lower() for item in details}
