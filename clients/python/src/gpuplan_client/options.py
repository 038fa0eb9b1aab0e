"""What both clients are made with, and how runs are polled."""

from typing import Any
from urllib.parse import urlsplit

from tenacity import RetryCallState
from tenacity.wait import wait_base, wait_exponential_jitter

from gpuplan_client.answers import Run

#: Where `gpuplan serve` listens.
DEFAULT_URL = "http://127.0.0.1:8080"


def client_options(url: str, key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """Keyword arguments of an httpx client. Raises `ValueError` for no web address, and for a key that is none."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"url is {url[:80]!r}; accepted: http://host[:port] or https://host[:port]")
    headers = {"User-Agent": "gpuplan-client", "Accept": "application/json, */*;q=0.1"}
    if key is not None:
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("key is no API key; accepted: one as `gpuplan keys create` printed it")
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "timeout": timeout_seconds, "follow_redirects": False}


class Polling(wait_base):
    """A run is looked at again soon at first, then every few seconds."""

    _then = wait_exponential_jitter(multiplier=0.2, max=5, jitter=0.1)

    def __call__(self, retry_state: RetryCallState) -> float:
        """Seconds until the next look."""
        return self._then(retry_state)

    @staticmethod
    def goes_on(run: Run) -> bool:
        """Whether a run has not ended."""
        return run["status"] in {"queued", "running"}


POLL = Polling()
