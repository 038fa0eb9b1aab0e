"""Sends messages to Slack, with retries of temporary failures; errors never contain secrets.

An answer goes to the `response_url` of its request while that is valid, then to the channel as a message that only the
requester sees, and if gpuplan is not a member of the channel, as a direct message.
"""

import functools
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from gpuplan.api.notifications.retries import MAY_PASS, Again, Wait
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.api.slack.block_kit import Message, simpler
from gpuplan.api.slack.slack_settings import Patience, SlackSettings
from gpuplan.catalog.parsing.json_object import JsonObject

if TYPE_CHECKING:
    from gpuplan.api.slack.question_kinds import File

#: At DEBUG, the SDK logs addresses and bodies, which contain secrets.
log = logging.getLogger("gpuplan.slack.sdk")
log.setLevel(logging.INFO)

#: Longest excerpt of Slack's response in an error.
_MOST_BYTES_HEARD = 1_000
#: Temporary errors of Slack's methods (docs.slack.dev/reference/methods/chat.postMessage).
_PASSING = frozenset(
    {"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
#: Errors of a channel where gpuplan cannot post; a direct message may still work.
_NOT_THERE = frozenset(
    {"not_in_channel", "channel_not_found", "user_not_in_channel", "is_archived", "restricted_action", "no_permission"}
)
#: Errors of blocks that this kind of message does not accept.
_NO_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "invalid_attachments", "unsupported_block_type"})
#: Hosts of response URLs (docs.slack.dev/interactivity/handling-user-interaction, "Message responses") and of GovSlack. No
#: other host is accepted, because customers can publish content on other Slack hosts.
_ANSWERED_AT = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
_TOKEN = re.compile(r"xox[a-z]-[A-Za-z0-9-]+|https://hooks\.slack\S+")


class NotDelivered(Exception):
    """Slack did not accept a message after `attempts`; `final` if retrying is useless."""

    def __init__(self, reason: str, *, final: bool, attempts: int, wait_seconds: float | None = None) -> None:
        """`reason` contains no secret."""
        super().__init__(reason)
        self.final, self.attempts, self.wait_seconds = final, attempts, wait_seconds


class _Never(Exception):
    """A permanent failure with Slack's error `code`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class To:
    """The destination of an answer; an empty `response_url` must not be used (any more)."""

    channel_id: str
    user_id: str
    response_url: str = field(repr=False, default="")
    thread_ts: str = ""
    """The thread in the channel; empty for a message of its own."""


def is_slack(url: str, settings: SlackSettings) -> bool:
    """Whether a response URL is Slack's over https, or on the configured API host."""
    try:
        given, api = urlsplit(url), urlsplit(settings.api_url)
        same = (given.scheme, given.hostname, given.port) == (api.scheme, api.hostname, api.port)
        is_public_slack = given.scheme == "https" and given.hostname in _ANSWERED_AT and given.port in {None, 443}
    except ValueError:
        return False
    return (same or is_public_slack) and given.username is None


class Teller:
    """Sends to Slack as a bot and counts attempts; all calls raise `NotDelivered`."""

    def __init__(self, settings: SlackSettings, token: str) -> None:
        """`token` is the workspace's; with an empty one only response URLs work."""
        self.settings, self.patience, self.token = settings, settings.patience, token
        self.attempts = 0
        self.client = client_of(settings, token)

    async def answer(self, to: To, message: Message) -> str:
        """Send to the requester, or with `response_type: in_channel` to the channel.

        Returns the timestamp of a public message, by which replies in its thread name it; empty if Slack does not tell.
        """
        if self.token and to.channel_id and message["response_type"] == "in_channel":
            try:
                return await self._as_accepted(lambda sent: self._in_channel(to, sent, public=True), message)
            except _Never as error:
                if error.code not in _NOT_THERE:
                    raise self._not_delivered(error.code, final=True) from None
        if to.response_url:
            try:
                await self._as_accepted(lambda sent: self._respond(to.response_url, sent), message)
            except _Never as error:
                if not self.token:
                    raise self._not_delivered(error.code, final=True) from None
            else:
                return ""
        await self.post(to, message)
        return ""

    async def post(self, to: To, message: Message) -> None:
        """Post in the channel, visible only to the requester unless public; else in a direct message."""
        if not self.token:
            raise self._not_delivered("there is no bot token for this workspace", final=True)
        public = message["response_type"] == "in_channel"
        if to.channel_id:
            try:
                await self._as_accepted(lambda sent: self._in_channel(to, sent, public=public), message)
            except _Never as error:
                if error.code not in _NOT_THERE:
                    raise self._not_delivered(error.code, final=True) from None
            else:
                return
        await self._or_never(self._as_accepted(lambda sent: self._direct(to.user_id, sent), message))

    async def upload(self, user_id: str, file: "File") -> None:
        """Send a file to the requester's direct messages."""
        await self._or_never(self._retried(lambda: self._upload(user_id, file)))

    async def upload_picture(self, png: bytes, name: str) -> str:
        """Upload a picture for a message, in no channel; returns its id."""
        return await self._or_never(self._retried(lambda: self._picture(png, name)))

    async def read_file(self, file_id: str) -> str:
        """The text of an uploaded file. Raises `NotDelivered` at once if Slack does not return it."""
        return await self._or_never(self._retried(lambda: self._file(file_id)))

    async def publish_home(self, user_id: str, view: JsonObject) -> None:
        """Show the home tab to a user."""
        await self._or_never(self._retried(lambda: self._called(self.client.views_publish(user_id=user_id, view=view))))

    async def open_form(self, trigger_id: str, view: JsonObject) -> None:
        """Open a form, without retries because Slack allows three seconds."""
        try:
            await self._called(self.client.views_open(trigger_id=trigger_id, view=view))
        except (Again, _Never) as error:
            raise self._not_delivered(str(error), final=True) from None

    async def _in_channel(self, to: To, message: Message, *, public: bool) -> str:
        content = _content(message) | ({"thread_ts": to.thread_ts} if to.thread_ts else {})
        if public:
            posted = await self._called(self.client.chat_postMessage(channel=to.channel_id, **content))
            return str(posted.get("ts") or "")
        await self._called(self.client.chat_postEphemeral(channel=to.channel_id, user=to.user_id, **content))
        return ""

    async def _direct(self, user_id: str, message: Message) -> None:
        await self._called(self.client.chat_postMessage(channel=user_id, **_content(message)))

    async def _upload(self, user_id: str, file: "File") -> None:
        conversation = await self._called(self.client.conversations_open(users=user_id))
        await self._called(
            self.client.files_upload_v2(
                channel=conversation["channel"]["id"], content=file.text, filename=file.name, title=file.name
            )
        )

    async def _picture(self, png: bytes, name: str) -> str:
        answer = await self._called(self.client.files_upload_v2(content=png, filename=name, title=name))
        return str(answer["files"][0]["id"])

    async def _file(self, file_id: str) -> str:
        answer = await self._called(self.client.files_info(file=file_id))
        content = answer.get("content")
        if not isinstance(content, str) or answer.get("is_truncated") or (answer.get("file") or {}).get("is_truncated"):
            raise _Never(
                "Slack does not return the text of that file; send a text snippet, or the job file in a code block"
            )
        return content

    async def _respond(self, url: str, message: Message) -> None:
        if not is_slack(url, self.settings):
            raise _Never("not an address of Slack")
        # The SDK's client would follow redirects to any host.
        timeout = aiohttp.ClientTimeout(total=self.patience.attempt_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, json=message | {"replace_original": False}, allow_redirects=False) as response,
            ):
                heard = (await response.content.read(_MOST_BYTES_HEARD)).decode("utf-8", "replace")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Again(type(error).__name__) from None
        if 300 <= response.status < 400:
            raise _Never(f"HTTP {response.status}: a redirect, which is not followed")
        if response.status != 200:
            raise _refused(response.status, plain(heard, limit=80), dict(response.headers))
        # Slack may answer 200 with an error in the body.
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
            raise Again(_masked(str(error))) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Again(type(error).__name__) from None

    async def _as_accepted[Told](self, tell: Callable[[Message], Awaitable[Told]], message: Message) -> Told:
        """Send the message, or what of it Slack accepts."""
        *richer, plainest = simpler(message)
        for sent in richer:
            try:
                return await self._retried(functools.partial(tell, sent))
            except _Never as error:
                if not any(name in error.code for name in _NO_BLOCKS):
                    raise
                log.warning("Slack does not accept these blocks (%s): sent without pictures or table", error.code)
        return await self._retried(functools.partial(tell, plainest))

    async def _retried[Answer](self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """The result of the call, with retries of temporary failures. Raises `_Never` or `NotDelivered`."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._soon),
            stop=stop_after_attempt(self.patience.attempts),
            wait=Wait(self.patience),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    self.attempts += 1
                    return await call()
        except Again as error:
            raise self._not_delivered(str(error), final=False, wait_seconds=error.wait_seconds) from None
        raise AssertionError("an attempt neither returned nor raised")

    def _soon(self, error: BaseException) -> bool:
        """Whether to retry here; not if Slack asks for a long wait."""
        return isinstance(error, Again) and (error.wait_seconds or 0.0) <= self.patience.longest_wait_seconds

    async def _or_never[Answer](self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except _Never as error:
            raise self._not_delivered(error.code, final=True) from None

    def _not_delivered(self, reason: str, *, final: bool, wait_seconds: float | None = None) -> NotDelivered:
        return NotDelivered(_masked(reason), final=final, attempts=self.attempts, wait_seconds=wait_seconds)


def client_of(settings: SlackSettings, token: str) -> AsyncWebClient:
    """The SDK's client without retries; `Teller` does them."""
    return AsyncWebClient(
        token=token or None,
        base_url=settings.api_url,
        timeout=_seconds(settings.patience),
        logger=log,
        retry_handlers=[],
    )


def _seconds(patience: Patience) -> int:
    return max(1, round(patience.attempt_seconds))


def _content(message: Message) -> JsonObject:
    """A message as arguments of the chat methods; links are not unfurled."""
    return {"text": message["text"], "blocks": message["blocks"], "unfurl_links": False, "unfurl_media": False}


def _refused(status: int, code: str, headers: dict[str, Any]) -> Exception:
    if status in MAY_PASS or status >= 500 or code in _PASSING:
        asked = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
        text = asked[0] if isinstance(asked, list | tuple) and asked else asked
        seconds = float(text) if isinstance(text, str) and text.strip().isdecimal() else None
        return Again(f"HTTP {status} {code}".strip(), seconds)
    return _Never(code or f"HTTP {status}")


def _masked(text: str) -> str:
    return plain(_TOKEN.sub("***", text), limit=300)
