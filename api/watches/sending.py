"""One message to one receiver: signed, tried again while the failure may pass, and never shown with a secret.

Nothing is followed and nothing is believed but a status of the 2xx: redirects are refused, so are names that lead into
the network of this machine, and every attempt ends within its time, whatever the receiver does.
"""

import asyncio
import json
import logging
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from standardwebhooks.webhooks import Webhook
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from api.render.text import plain
from api.version import gpuplan_version
from api.watches.channels import Receiver
from api.watches.reaching import PRIVATE, NotPublic, Reaching
from api.watches.slack import slack_message
from providers.said import said

#: Enough of an answer to say why a message was refused.
_MOST_BYTES_HEARD = 300
_MAY_PASS = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one message, and one channel in one run, may take."""

    attempts: int = 4
    attempt_seconds: float = 15.0
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 30.0
    channel_seconds: float = 600.0

    @property
    def message_seconds(self) -> float:
        """No message is being sent for longer than this."""
        return self.attempts * (self.attempt_seconds + self.longest_wait_seconds)


class NotTaken(Exception):
    """The receiver has not taken a message, after `attempts`; `final` if there is no use in trying again."""

    def __init__(self, message: str, *, final: bool, attempts: int) -> None:
        """`message` shows no secret."""
        super().__init__(message)
        self.final = final
        self.attempts = attempts


class _Again(Exception):
    """May be better in a moment, or in `wait_seconds` if the receiver said so."""

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class _Later(Exception):
    """May be better, but not within this run."""


class _Never(Exception):
    """Will be refused again."""


class _Quiet(logging.Filter):
    """httpx logs the address of every request, and those of Slack are secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False while a message is on its way."""
        return not _SENDING.get()


_SENDING: ContextVar[bool] = ContextVar("sending", default=False)
logging.getLogger("httpx").addFilter(_Quiet())


def web_client(patience: Patience) -> httpx.AsyncClient:
    """A client that follows nothing, goes where it may, and waits for nobody longer than one attempt may take."""
    return httpx.AsyncClient(timeout=patience.attempt_seconds, follow_redirects=False, transport=Reaching())


async def send(
    client: httpx.AsyncClient, to: Receiver, message_id: str, payload: dict[str, Any], patience: Patience
) -> int:
    """How many attempts it took until the receiver had the message. Raises `NotTaken`."""
    document = slack_message(payload) if to.kind == "slack" else payload
    body = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(_Again),
        stop=stop_after_attempt(patience.attempts),
        wait=_Wait(patience),
        reraise=True,
    )
    sending = _SENDING.set(True)
    try:
        await retrying(_once, client, to, message_id, body, patience)
    except (_Again, _Later, _Never) as error:
        attempts = int(retrying.statistics["attempt_number"])
        # What a receiver says is a stranger's text: no control characters go to a terminal or a database.
        text = plain(said(error, secrets=to.secrets))
        # From nothing: what httpx said holds the address.
        raise NotTaken(text, final=isinstance(error, _Never), attempts=attempts) from None
    finally:
        _SENDING.reset(sending)
    return int(retrying.statistics["attempt_number"])


async def _once(client: httpx.AsyncClient, to: Receiver, message_id: str, body: str, patience: Patience) -> None:
    headers = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"gpuplan/{gpuplan_version()}",
    }
    try:
        async with asyncio.timeout(patience.attempt_seconds):
            asked = client.stream(
                "POST",
                to.url,
                content=body.encode(),
                headers=headers | _signature(to, message_id, body),
                extensions={PRIVATE: to.private},
            )
            async with asked as response:
                heard = "" if response.is_success else await _beginning(response)
    except NotPublic as error:
        # Whoever mends the name or the settings finds the message still waiting.
        raise _Later(str(error)) from None
    except (TimeoutError, httpx.TimeoutException):
        raise _Again(f"no answer within {patience.attempt_seconds:g} s") from None
    except httpx.TransportError as error:
        raise _Again(f"{type(error).__name__}: {error}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _Never(f"{type(error).__name__}: {error}") from None
    if not response.is_success:
        raise _refusal(response, heard, patience)


def _signature(to: Receiver, message_id: str, body: str) -> dict[str, str]:
    """The headers of the Standard Webhooks scheme; the time is that of the attempt."""
    if not to.secret:
        return {}
    now = datetime.now(UTC)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(to.secret).sign(message_id, now, body),
    }


async def _beginning(response: httpx.Response) -> str:
    """The first words of the answer."""
    heard = b""
    async for chunk in response.aiter_raw():
        heard += chunk
        if len(heard) >= _MOST_BYTES_HEARD:
            break
    return heard[:_MOST_BYTES_HEARD].decode("utf-8", "replace").strip()


def _refusal(response: httpx.Response, heard: str, patience: Patience) -> Exception:
    status = response.status_code
    said_so = f"HTTP {status} {response.reason_phrase}".strip() + (f": {heard}" if heard else "")
    if response.is_redirect or 300 <= status < 400:
        return _Never(f"HTTP {status}: a redirect, which is not followed; give the address that it leads to")
    if status not in _MAY_PASS and status < 500:
        return _Never(said_so)
    asked = _asked_to_wait(response.headers.get("retry-after", ""))
    if asked is not None and asked > patience.longest_wait_seconds:
        return _Later(f"{said_so}; it asks to wait {asked:.0f} s")
    return _Again(said_so, asked)


def _asked_to_wait(text: str) -> float | None:
    """Seconds of a Retry-After header, which may be a number or a date."""
    if text.strip().isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


class _Wait:
    """As long as the receiver asks for, else twice as long each time."""

    def __init__(self, patience: Patience) -> None:
        self._backing_off = wait_exponential_jitter(
            multiplier=patience.first_wait_seconds,
            max=patience.longest_wait_seconds,
            jitter=patience.first_wait_seconds / 2,
        )

    def __call__(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_seconds if isinstance(error, _Again) else None
        return float(self._backing_off(state)) if asked is None else asked
