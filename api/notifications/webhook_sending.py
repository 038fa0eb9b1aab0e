"""Delivery of one message to one receiver: signed, retried after temporary failures, and never shown with a secret.

Only a 2xx status counts as success; redirects are refused, and so are names that resolve into this machine's network;
every attempt ends within its time limit.
"""

import asyncio
import json
import logging
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from standardwebhooks.webhooks import Webhook
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from gpuplan.api.notifications import retries
from gpuplan.api.notifications.channels import Receiver
from gpuplan.api.notifications.retries import MAY_PASS, Again, Wait
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.security.public_connection import PRIVATE, NotPublic, Reaching
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.providers.error_redaction import redacted_text

#: Enough of a response to show why a message was refused.
_MOST_BYTES_HEARD = 300
#: The longest text object of a block (docs.slack.dev/reference/block-kit/blocks/section-block).
LONGEST_TEXT = 3_000
#: The three special characters of Slack's markup; escaped text cannot become a link or a mention.
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SMALL_PRINT = (("job", "job"), ("plan", "plan_id"), ("snapshot", "snapshot_id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience(retries.Patience):
    """Time limits of one message, and of one channel in one run."""

    channel_seconds: float = 600.0


class NotTaken(Exception):
    """The receiver did not accept a message after `attempts`; `final` if a retry is useless."""

    def __init__(self, message: str, *, final: bool, attempts: int) -> None:
        """`message` contains no secret."""
        super().__init__(message)
        self.final = final
        self.attempts = attempts


class _Later(Exception):
    """A retry may succeed, but not within this run."""


class _Never(Exception):
    """Every retry will be refused."""


class _Quiet(logging.Filter):
    """httpx logs the address of every request, and those of Slack are secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False while a message is being sent."""
        return not _SENDING.get()


_SENDING: ContextVar[bool] = ContextVar("sending", default=False)
logging.getLogger("httpx").addFilter(_Quiet())


def web_client(patience: Patience) -> httpx.AsyncClient:
    """A client that follows no redirects, connects only where it may, and times out within one attempt."""
    return httpx.AsyncClient(timeout=patience.attempt_seconds, follow_redirects=False, transport=Reaching())


async def send(
    client: httpx.AsyncClient, to: Receiver, message_id: str, payload: JsonObject, patience: Patience
) -> int:
    """The number of attempts until the receiver accepted the message. Raises `NotTaken`."""
    document = slack_message(payload) if to.kind == "slack" else payload
    body = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(Again),
        stop=stop_after_attempt(patience.attempts),
        wait=Wait(patience),
        reraise=True,
    )
    sending = _SENDING.set(True)
    try:
        await retrying(_attempt, client, to, message_id, body, patience)
    except (Again, _Later, _Never) as error:
        attempts = int(retrying.statistics["attempt_number"])
        # A receiver's text is untrusted: strip control characters before it reaches a terminal or a database.
        text = plain(redacted_text(error, secrets=to.secrets))
        # `from None`: the message of httpx contains the address.
        raise NotTaken(text, final=isinstance(error, _Never), attempts=attempts) from None
    finally:
        _SENDING.reset(sending)
    return int(retrying.statistics["attempt_number"])


async def _attempt(client: httpx.AsyncClient, to: Receiver, message_id: str, body: str, patience: Patience) -> None:
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
        # The message stays queued while somebody corrects the name or the settings.
        raise _Later(str(error)) from None
    except (TimeoutError, httpx.TimeoutException):
        raise Again(f"no answer within {patience.attempt_seconds:g} s") from None
    except httpx.TransportError as error:
        raise Again(f"{type(error).__name__}: {error}") from None
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
    """The beginning of the response."""
    heard = b""
    async for chunk in response.aiter_raw():
        heard += chunk
        if len(heard) >= _MOST_BYTES_HEARD:
            break
    return heard[:_MOST_BYTES_HEARD].decode("utf-8", "replace").strip()


def _refusal(response: httpx.Response, heard: str, patience: Patience) -> Exception:
    status = response.status_code
    description = f"HTTP {status} {response.reason_phrase}".strip() + (f": {heard}" if heard else "")
    if response.is_redirect or 300 <= status < 400:
        return _Never(f"HTTP {status}: a redirect, which is not followed; use the address of its target")
    if status not in MAY_PASS and status < 500:
        return _Never(description)
    asked = _asked_to_wait(response.headers.get("retry-after", ""))
    if asked is not None and asked > patience.longest_wait_seconds:
        return _Later(f"{description}; it asks to wait {asked:.0f} s")
    return Again(description, asked)


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


def slack_message(payload: JsonObject) -> JsonObject:
    """The message of a notification's payload: the event, and below it in small print where to look."""
    data = payload["data"]
    blocks: list[JsonObject] = [{"type": "section", "text": _mrkdwn(escaped(data["summary"]))}]
    small = [f"{name} {escaped(str(data[key]))}" for name, key in _SMALL_PRINT if data.get(key)]
    if small:
        blocks.append({"type": "context", "elements": [_mrkdwn(line) for line in small]})
    return {"text": escaped(data["summary"]), "blocks": blocks}


def escaped(text: str) -> str:
    """The text as Slack shows it literally, cut below its limit without splitting an escape."""
    pieces: list[str] = []
    length = 0
    for char in text:
        shown = _ESCAPES.get(char, char)
        if length + len(shown) > LONGEST_TEXT - 101:
            return "".join(pieces) + "…"
        pieces.append(shown)
        length += len(shown)
    return "".join(pieces)


def _mrkdwn(text: str) -> JsonObject:
    return {"type": "mrkdwn", "text": text}
