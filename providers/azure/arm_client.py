"""The SKU list through azure-mgmt-compute. Imported only when needed, because the SDK's import is slow."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from typing import Any
from urllib.parse import quote

import ijson  # type: ignore[import-untyped]
from azure.core.credentials import AccessToken, TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import RetryPolicy, SansIOHTTPPolicy
from azure.core.rest import HttpRequest
from azure.identity import DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure.skus import Skus, skus_of
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.error_redaction import redacted_text

API_VERSION = "2021-07-01"
CONNECT_SECONDS = 5
READ_SECONDS = 120
#: Azure asks for up to 20 minutes when a subscription has used up its calls; longer waits are left to the next refresh.
LONGEST_WAIT_SECONDS = 60.0
#: Error codes of rejected credentials.
_REFUSED = re.compile(r"AADSTS\d+[^\n]*")
NO_CREDENTIALS = (
    "no credentials: give AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or log in with az login"
)
OVER_PLAIN_HTTP = (
    "credentials are not sent over plain http: give an https GPUPLAN_AZURE_ARM_ENDPOINT, "
    "or GPUPLAN_ANONYMOUS=1 for a test server"
)
_CALL = "resource_skus.list of azure-mgmt-compute"

# The SDK logs every credential source that it tried; `reason_of` gives the relevant part.
logging.getLogger("azure").addHandler(logging.NullHandler())


class _BrokenOff(Exception):
    """A truncated answer."""


class _Anonymous:
    """A credential for a server without authentication."""

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken("anonymous", 2**40)


class _BoundedRetries(RetryPolicy[Any, Any]):
    """The SDK's own retries, without waits that would delay a refresh."""

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        asked = self.get_retry_after(response)
        return (asked is None or asked <= LONGEST_WAIT_SECONDS) and super().is_retry(settings, response)


def read_skus(sources: Sources) -> Skus:
    """Every accelerated size of every region visible to the subscription, in one list.

    Raises `ProviderFailure` with the call and the reason if any page cannot be fetched or read.
    """
    try:
        with ExitStack() as resources:
            skus = skus_of(
                _resources(compute_client(sources, resources, call=_CALL), sources.azure_subscription_id or "")
            )
    except AzureError as error:
        raise ProviderFailure(f"{_CALL}: {reason_of(error)}") from error
    except (ijson.JSONError, ValueError) as error:
        raise ProviderFailure(f"{_CALL}: the answer is not whole JSON, check the endpoint and any proxy") from error
    if not skus.regions:
        raise ProviderFailure(f"{_CALL}: the list came back without any virtual machine")
    return skus


def _resources(client: ComputeManagementClient, subscription: str) -> Iterator[object]:
    """The entries of every page, read one by one.

    A subscription sees 40,000 of them; the SDK's models would take 2 ms and 30 kB each.
    """
    path = f"/subscriptions/{quote(subscription, safe='')}/providers/Microsoft.Compute/skus"
    request = HttpRequest("GET", path, params={"api-version": API_VERSION})
    seen: set[str] = set()
    again = Retrying(retry=retry_if_exception_type(_BrokenOff), stop=stop_after_attempt(3), wait=wait_fixed(1))
    while True:
        try:
            body = again(_body, client, request)
        except RetryError as error:
            raise ProviderFailure(f"{_CALL}: the answer breaks off") from error
        has_resources = False
        for resource in ijson.items(BytesIO(body), "value.item", use_float=True):
            has_resources = True
            yield resource
        if not has_resources:
            _check_empty(body)
        link = next(ijson.items(BytesIO(body), "nextLink"), None) if b'"nextLink"' in body else None
        if not link:
            return
        if not isinstance(link, str) or link in seen:
            raise ProviderFailure(f"{_CALL}: its pages lead back to one another; the list is not whole")
        seen.add(link)
        request = HttpRequest("GET", link)


def _body(client: ComputeManagementClient, request: HttpRequest) -> bytes:
    """The raw answer, streamed; otherwise the SDK would decode all of it only to discard the result."""
    with client.send_request(request, stream=True) as response:
        try:
            body = response.read()
        except AzureError as error:
            raise _BrokenOff from error
        response.raise_for_status()
        return body


def _check_empty(body: bytes) -> None:
    """Distinguish a page without entries from other content."""
    document = json.loads(body)
    if not isinstance(document, dict) or not isinstance(document.get("value"), list):
        raise ProviderFailure(f"{_CALL}: answered without a list in value; check the endpoint")


def compute_client(sources: Sources, exit_stack: ExitStack, *, call: str) -> ComputeManagementClient:
    """The SDK's client, closed with `exit_stack`, for this call. Raises `ProviderFailure` for settings that the SDK rejects."""
    settings: dict[str, Any] = {
        "retry_policy": _BoundedRetries(retry_total=4, retry_connect=2, retry_read=2, retry_status=3),
        "connection_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
    }
    if sources.azure_arm_endpoint:
        settings["base_url"] = sources.azure_arm_endpoint.rstrip("/")
    if sources.anonymous:
        settings["authentication_policy"] = SansIOHTTPPolicy()
    try:
        credential: TokenCredential = _Anonymous() if sources.anonymous else _default_credential(exit_stack)
        client = ComputeManagementClient(credential, sources.azure_subscription_id or "", **settings)
    except ValueError as error:
        raise ProviderFailure(f"{call}: a setting is not accepted ({redacted_text(error)})") from error
    return exit_stack.enter_context(client)


def _default_credential(exit_stack: ExitStack) -> TokenCredential:
    """The credential from the environment, the machine or a login, with short timeouts."""
    credential = DefaultAzureCredential(
        process_timeout=10, connection_timeout=CONNECT_SECONDS, read_timeout=10, retry_total=2
    )
    return exit_stack.enter_context(credential)


def reason_of(error: AzureError) -> str:
    """Code and message of either error format (Resource Manager wraps it in `error`, Compute does not), on one line."""
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        refused = _REFUSED.search(str(error.message))
        if refused:
            return redacted_text(f"credentials refused: {refused[0]}")
        return NO_CREDENTIALS
    if "non-TLS" in str(error.message):
        return OVER_PLAIN_HTTP
    details = getattr(error, "error", None)
    code, message = getattr(details, "code", None), getattr(details, "message", None)
    status = getattr(error, "status_code", None)
    text = f"{code}: {message}" if code and message else error.message
    return redacted_text(f"HTTP {status}, {text}" if status else text)
