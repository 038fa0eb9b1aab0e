"""JSON calls to a provider's API with its key, below its rate; every failure is one line that names the key's variable."""

import weakref
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.cloud_endpoints import RestAccount
from gpuplan.providers.feed_client import get_json, web_client
from gpuplan.providers.rate_limit import RateLimit

#: HTTP statuses of a key that is wrong, expired or of another provider, as `feed_client` words them.
_REFUSED_KEY = ("HTTP 401", "HTTP 403")


class RestClient:
    """Calls below `account.endpoint` with a bearer key; thread-safe."""

    def __init__(self, account: RestAccount, *, calls_per_second: int, paced: bool = True) -> None:
        """Raise `UnusableInput` at the endpoint's variable if it is not a web address."""
        address = _address(account.endpoint)
        if address is None:
            message = "is not an http or https address such as https://api.example.com/v1"
            raise UnusableInput.at(f"GPUPLAN_{account.provider.upper()}_ENDPOINT", message=message)
        self.account = account
        self._pace = RateLimit(calls_per_second if paced else None)
        self._client = web_client()
        weakref.finalize(self, self._client.close)
        if account.key:
            self._client.headers["Authorization"] = f"Bearer {account.key}"

    def get(self, path: str, **params: str) -> dict[str, Any]:
        """The JSON object at a path. Raises `ProviderFailure` with the reason, for another kind of JSON too."""
        if not self.account.key:
            raise ProviderFailure(f"{self.account.provider}: no key given; set {self.account.key_variable}")
        self._pace.wait()
        url = f"{self.account.endpoint.rstrip('/')}{path}"
        try:
            document, _ = get_json(self._client, url, params=params or None)
        except ProviderFailure as failure:
            if any(status in str(failure) for status in _REFUSED_KEY):
                raise ProviderFailure(f"{failure}; check {self.account.key_variable}") from failure
            raise
        if not isinstance(document, dict):
            raise ProviderFailure(f"{url}: answered with JSON that is no object; check the endpoint")
        return document


def _address(url: str) -> httpx.URL | None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    return address if address.scheme in ("http", "https") and address.host else None
