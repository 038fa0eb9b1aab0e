"""JSON calls to a provider's API with its key, below its rate; every failure is one line that names the key's variable."""

import weakref
from typing import Any

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.cloud_endpoints import RestAccount
from gpuplan.providers.feed_client import get_json, post_json, web_client
from gpuplan.providers.rate_limit import RateLimit


class RestClient:
    """Calls below `account.endpoint` with the account's key; thread-safe."""

    def __init__(
        self,
        account: RestAccount,
        *,
        calls_per_second: int | None = None,
        calls_per_minute: int | None = None,
        paced: bool = True,
        key_header: str | None = "Authorization",
        needs_key: bool = True,
        refused_key: tuple[str, ...] = ("HTTP 401", "HTTP 403"),
    ) -> None:
        """Send the key in `key_header`; None for an interface that is logged in to. `needs_key` is False for a public one.

        `refused_key` are the statuses of a key that is wrong, expired or of another provider, as `feed_client` words them.


        Raises `UnusableInput` at the endpoint's variable if it is not a web address.
        """
        address = _address(account.endpoint)
        if address is None:
            message = "is not an http or https address such as https://api.example.com/v1"
            raise UnusableInput.at(f"GPUPLAN_{account.provider.upper()}_ENDPOINT", message=message)
        self.account = account
        self._pace = RateLimit(
            (calls_per_minute or calls_per_second) if paced else None, seconds=60 if calls_per_minute else 1
        )
        self._client = web_client()
        weakref.finalize(self, self._client.close)
        self._refused_key = refused_key
        self._needs_key = needs_key and key_header is not None
        if account.key and key_header is not None:
            self._client.headers[key_header] = f"Bearer {account.key}" if key_header == "Authorization" else account.key

    def log_in(self, path: str, client_id: str) -> None:
        """Exchange the key for a token by OAuth2 client credentials (RFC 6749, 4.4), and send that from now on."""
        asked = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": self.account.key}
        url = self._url(path)
        self._pace.wait()
        try:
            document = post_json(self._client, url, asked)
        except ProviderFailure as failure:
            raise self._with_variable(failure) from failure
        token = document.get("access_token") if isinstance(document, dict) else None
        if not isinstance(token, str):
            raise ProviderFailure(f"{url}: answered without access_token; check the endpoint")
        self._client.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **params: str) -> dict[str, Any]:
        """The JSON object at a path. Raises `ProviderFailure` with the reason, for another kind of JSON too."""
        return self.get_page(path, **params)[0]

    def get_page(self, path: str, **params: str) -> tuple[dict[str, Any], httpx.Headers]:
        """The JSON object at a path, and the headers, which may say how many pages there are. Raises `ProviderFailure`."""
        document, headers = self._get(path, params)
        return self._object(path, document), headers

    def post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        """The JSON object that a path answers to a JSON object. Raises `ProviderFailure`."""
        self._pace.wait()
        try:
            return self._object(path, post_json(self._client, self._url(path), asked))
        except ProviderFailure as failure:
            raise self._with_variable(failure) from failure

    def get_list(self, path: str, **params: str) -> list[Any]:
        """The JSON list at a path. Raises `ProviderFailure` with the reason, for another kind of JSON too."""
        document, _ = self._get(path, params)
        if not isinstance(document, list):
            raise ProviderFailure(f"{self._url(path)}: answered with JSON that is no list; check the endpoint")
        return document

    def _object(self, path: str, document: Any) -> dict[str, Any]:
        if not isinstance(document, dict):
            raise ProviderFailure(f"{self._url(path)}: answered with JSON that is no object; check the endpoint")
        return document

    def _get(self, path: str, params: dict[str, str]) -> tuple[Any, httpx.Headers]:
        if self._needs_key and not self.account.key:
            raise ProviderFailure(f"{self.account.provider}: no key given; set {self.account.key_variable}")
        self._pace.wait()
        try:
            return get_json(self._client, self._url(path), params=params or None)
        except ProviderFailure as failure:
            raise self._with_variable(failure) from failure

    def _url(self, path: str) -> str:
        return f"{self.account.endpoint.rstrip('/')}{path}"

    def _with_variable(self, failure: ProviderFailure) -> ProviderFailure:
        """The failure, with the variable that holds the key if that was refused."""
        if self.account.key and any(status in str(failure) for status in self._refused_key):
            return ProviderFailure(f"{failure}; check {self.account.key_variable}")
        return failure


def _address(url: str) -> httpx.URL | None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    return address if address.scheme in ("http", "https") and address.host else None
