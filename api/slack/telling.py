"""One message to Slack: tried again while the failure may pass, as long as Slack asks for, and never shown with a secret.

An answer goes where its question came from: to the `response_url` for as long as Slack takes messages there, then as
a message that only the asker sees in the channel, and where gpuplan is no member of it, as a direct message.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from api.render.text import plain
from api.slack.blocks import Message, without_table
from api.slack.settings import Patience, SlackSettings

if TYPE_CHECKING:
    from api.slack.kinds import File

#: The SDK writes addresses and bodies at DEBUG, and those of answers are secrets.
log = logging.getLogger("gpuplan.slack.sdk")
log.setLevel(logging.INFO)

#: Enough of an answer to say why a message was refused.
_MOST_BYTES_HEARD = 1_000
_MAY_PASS = frozenset({408, 425, 429})
#: Errors of Slack's methods that pass by themselves (docs.slack.dev/reference/methods/chat.postMessage).
_PASSING = frozenset(
    {"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
#: gpuplan cannot speak there, yet may speak to the asker.
_NOT_THERE = frozenset(
    {"not_in_channel", "channel_not_found", "user_not_in_channel", "is_archived", "restricted_action", "no_permission"}
)
#: Blocks that this Slack, or this kind of message, does not take.
_NO_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "invalid_attachments", "unsupported_block_type"})
#: Where Slack has answers sent (docs.slack.dev/interactivity/handling-user-interaction, "Message responses"), and its
#: cloud for governments: no other host, not even another one of Slack's, on which customers may write.
_ANSWERED_AT = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
_TOKEN = re.compile(r"xox[a-z]-[A-Za-z0-9-]+|https://hooks\.slack\S+")


class NotTold(Exception):
    """Slack has not taken a message, after `attempts`; `final` if there is no use in trying again."""

    def __init__(self, reason: str, *, final: bool, attempts: int, wait_seconds: float | None = None) -> None:
        """`reason` shows no secret."""
        super().__init__(reason)
        self.final, self.attempts, self.wait_seconds = final, attempts, wait_seconds


class _Again(Exception):
    """May be better in a moment, or in `wait_seconds` if Slack said so."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class _Never(Exception):
    """Will be refused again: `code` is what Slack calls it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class To:
    """Where an answer goes; an empty `response_url` is one that is not to be used (any more)."""

    channel_id: str
    user_id: str
    response_url: str = field(repr=False, default="")


def is_slack(url: str, settings: SlackSettings) -> bool:
    """Whether an address of an answer is Slack's own, over https, or stands where Slack's API is said to be."""
    try:
        given, api = urlsplit(url), urlsplit(settings.api_url)
        same = (given.scheme, given.hostname, given.port) == (api.scheme, api.hostname, api.port)
        own = given.scheme == "https" and given.hostname in _ANSWERED_AT and given.port in {None, 443}
    except ValueError:
        return False
    return (same or own) and given.username is None


class Teller:
    """Speaks to Slack as a bot, and counts attempts; each call raises `NotTold`."""

    def __init__(self, settings: SlackSettings, token: str) -> None:
        """With the workspace's token; without one (empty) only addresses of answers can be told."""
        self.settings, self.patience, self.token = settings, settings.patience, token
        self.attempts = 0
        self.client = client_of(settings, token)

    async def answer(self, to: To, message: Message) -> None:
        """Tells the asker, or with `response_type: in_channel` everybody there."""
        if to.response_url:
            try:
                await self._with_or_without_table(lambda found: self._respond(to.response_url, found), message)
            except _Never as error:
                if not self.token:
                    raise self._not_told(error.code, final=True) from None
            else:
                return
        await self.post(to, message)

    async def post(self, to: To, message: Message) -> None:
        """Tells in the channel, for the asker alone unless the message is public; else in a direct message."""
        if not self.token:
            raise self._not_told("there is no bot's token for this workspace", final=True)
        public = message["response_type"] == "in_channel"
        if to.channel_id:
            try:
                await self._with_or_without_table(lambda found: self._in_channel(to, found, public=public), message)
            except _Never as error:
                if error.code not in _NOT_THERE:
                    raise self._not_told(error.code, final=True) from None
            else:
                return
        await self._or_never(self._with_or_without_table(lambda found: self._direct(to.user_id, found), message))

    async def upload(self, user_id: str, found: "File") -> None:
        """Sends a file to the asker's direct messages."""
        await self._or_never(self._retried(lambda: self._upload(user_id, found)))

    async def read_file(self, file_id: str) -> str:
        """The text of an uploaded file. Raises `NotTold` at once where Slack gives none."""
        return await self._or_never(self._retried(lambda: self._file(file_id)))

    async def open_form(self, trigger_id: str, view: dict[str, Any]) -> None:
        """Opens a form; there are three seconds for it, so it is tried once."""
        try:
            await self._called(self.client.views_open(trigger_id=trigger_id, view=view))
        except (_Again, _Never) as error:
            raise self._not_told(str(error), final=True) from None

    async def _in_channel(self, to: To, message: Message, *, public: bool) -> None:
        if public:
            await self._called(self.client.chat_postMessage(channel=to.channel_id, **_content(message)))
        else:
            told = self.client.chat_postEphemeral(channel=to.channel_id, user=to.user_id, **_content(message))
            await self._called(told)

    async def _direct(self, user_id: str, message: Message) -> None:
        await self._called(self.client.chat_postMessage(channel=user_id, **_content(message)))

    async def _upload(self, user_id: str, found: "File") -> None:
        opened = await self._called(self.client.conversations_open(users=user_id))
        await self._called(
            self.client.files_upload_v2(
                channel=opened["channel"]["id"], content=found.text, filename=found.name, title=found.name
            )
        )

    async def _file(self, file_id: str) -> str:
        answer = await self._called(self.client.files_info(file=file_id))
        content = answer.get("content")
        if not isinstance(content, str) or answer.get("is_truncated") or (answer.get("file") or {}).get("is_truncated"):
            raise _Never("Slack gives no text of that file; accepted: a text snippet, or the job file in a code block")
        return content

    async def _respond(self, url: str, message: Message) -> None:
        if not is_slack(url, self.settings):
            raise _Never("not an address of Slack")
        # Not the SDK's client, which follows redirects to wherever they lead.
        timeout = aiohttp.ClientTimeout(total=self.patience.attempt_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, json=message | {"replace_original": False}, allow_redirects=False) as response,
            ):
                heard = (await response.content.read(_MOST_BYTES_HEARD)).decode("utf-8", "replace")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Again(type(error).__name__) from None
        if 300 <= response.status < 400:
            raise _Never(f"HTTP {response.status}: a redirect, which is not followed")
        if response.status != 200:
            raise _refused(response.status, plain(heard, limit=80), dict(response.headers))
        # Slack may answer 200 with an error in it.
        if heard.startswith("{") and '"ok":false' in heard.replace(" ", ""):
            raise _Never(plain(heard, limit=120))

    async def _called(self, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except SlackApiError as error:
            headers = getattr(error.response, "headers", None) or {}
            status = getattr(error.response, "status_code", None) or getattr(error.response, "status", None) or 0
            code = error.response.get("error", "") if hasattr(error.response, "get") else ""
            raise _refused(int(status), str(code), dict(headers)) from None
        except SlackClientError as error:
            raise _Again(_masked(str(error))) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Again(type(error).__name__) from None

    async def _with_or_without_table(self, tell: Callable[[Message], Awaitable[None]], message: Message) -> None:
        try:
            await self._retried(lambda: tell(message))
        except _Never as error:
            if not any(name in error.code for name in _NO_BLOCKS):
                raise
            log.warning("Slack does not take these blocks (%s): told with the table as text", error.code)
            await self._retried(lambda: tell(without_table(message)))

    async def _retried[Answer](self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """What the call gives, tried again while that may help; `_Never` gets past, anything else is `NotTold`."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._soon),
            stop=stop_after_attempt(self.patience.attempts),
            wait=_Wait(self.patience),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    self.attempts += 1
                    return await call()
        except _Again as error:
            raise self._not_told(str(error), final=False, wait_seconds=error.wait_seconds) from None
        raise AssertionError("an attempt neither gave an answer nor failed")

    def _soon(self, error: BaseException) -> bool:
        """Whether it is worth waiting for here; what Slack wants asked much later is not."""
        return isinstance(error, _Again) and (error.wait_seconds or 0.0) <= self.patience.longest_wait_seconds

    async def _or_never[Answer](self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except _Never as error:
            raise self._not_told(error.code, final=True) from None

    def _not_told(self, reason: str, *, final: bool, wait_seconds: float | None = None) -> NotTold:
        return NotTold(_masked(reason), final=final, attempts=self.attempts, wait_seconds=wait_seconds)


def client_of(settings: SlackSettings, token: str) -> AsyncWebClient:
    """The SDK's client, which tries each call once: how often it is tried again is said in one place."""
    return AsyncWebClient(
        token=token or None,
        base_url=settings.api_url,
        timeout=_seconds(settings.patience),
        logger=log,
        retry_handlers=[],
    )


def _seconds(patience: Patience) -> int:
    return max(1, round(patience.attempt_seconds))


def _content(message: Message) -> dict[str, Any]:
    """A message as the chat methods take it; links in it are not unfurled."""
    return {"text": message["text"], "blocks": message["blocks"], "unfurl_links": False, "unfurl_media": False}


def _refused(status: int, code: str, headers: dict[str, Any]) -> Exception:
    if status in _MAY_PASS or status >= 500 or code in _PASSING:
        asked = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
        text = asked[0] if isinstance(asked, list | tuple) and asked else asked
        seconds = float(text) if isinstance(text, str) and text.strip().isdecimal() else None
        return _Again(f"HTTP {status} {code}".strip(), seconds)
    return _Never(code or f"HTTP {status}")


def _masked(text: str) -> str:
    return plain(_TOKEN.sub("***", text), limit=300)


class _Wait:
    """As long as Slack asks for, else twice as long each time."""

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
