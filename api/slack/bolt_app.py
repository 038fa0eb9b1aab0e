"""The Bolt app: listeners for commands, clicks, forms and events, which acknowledge and hand over."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext
from slack_bolt.authorization import AuthorizeResult

from gpuplan.api.slack.answer_queue import RESPONSE_URL_LIFETIME, Answers
from gpuplan.api.slack.block_kit import message
from gpuplan.api.slack.follow_ups import read_follow_up
from gpuplan.api.slack.home_tab import home
from gpuplan.api.slack.message_sending import NotDelivered, Teller, To, client_of
from gpuplan.api.slack.other_messages import note
from gpuplan.api.slack.plan_form import CALLBACK, command_metadata, errors_at_fields, form, metadata_of, read_form
from gpuplan.api.slack.question_intake import Accepted, Asker, accept, noted, read_click
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.api.slack.slash_commands import COMMANDS, Question, read_command
from gpuplan.api.slack.workspaces import token_of
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure

Body = Mapping[str, Any]

log = logging.getLogger("gpuplan.slack")
#: At INFO, Bolt logs the contents of requests with a wrong signature, which are untrusted.
_bolt_log = logging.getLogger("gpuplan.slack.bolt")
_bolt_log.setLevel(logging.WARNING)

#: A mention of the app or of somebody else.
_MENTION = re.compile(r"<@[A-Z0-9]+(?:\|[^<>]*)?>")

BUSY = "gpuplan's database is slow. If no answer arrives within a few minutes, try again."


def bolt_app(settings: SlackSettings, answers: Answers) -> AsyncApp:
    """The app with its listeners. Nothing before an acknowledgement uses the network."""
    app = AsyncApp(
        name="gpuplan",
        logger=_bolt_log,
        signing_secret=settings.signing_secret,
        authorize=_authorize,
        client=client_of(settings, ""),
        # Slack sends this check without a signature; it is not needed.
        ssl_check_enabled=False,
    )
    listeners = Listeners(settings, answers)
    app.command(re.compile(r"/\S+"))(listeners.command)
    app.action(re.compile(r".*"))(listeners.click)
    app.view(CALLBACK)(listeners.submitted)
    app.event("app_mention")(listeners.spoken)
    app.event({"type": "message", "channel_type": "im"})(listeners.spoken)
    app.event("app_home_opened")(listeners.home)
    app.event("app_uninstalled")(listeners.uninstalled)
    app.event("tokens_revoked")(listeners.uninstalled)
    return app


async def _authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
    """Skip Bolt's authorization, which calls Slack and waits; workspaces are checked with the request."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)


class Listeners:
    """Listeners by kind of request."""

    def __init__(self, settings: SlackSettings, answers: Answers) -> None:
        """`answers` processes acknowledged requests."""
        self.settings, self.answers = settings, answers
        self.gpuplan = answers.gpuplan
        self._forms: set[asyncio.Task[None]] = set()

    async def command(self, ack: AsyncAck, body: JsonObject, context: AsyncBoltContext) -> None:
        """`/gpuplan ...`: refused or accepted in the acknowledgement, which only the user sees."""
        asker = _asker(context, body)
        try:
            accepted = await self._accepted(asker, lambda: read_command(str(body.get("text") or "")))
        except (StoreFailure, TimeoutError) as error:
            log.warning("a command of %s was not stored: %s", asker.team_id, error or "the store is slow")
            await ack(
                **message(BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was stored; try again.")
            )
            return
        if accepted.form:
            await ack()
            self._begin_form(asker, body)
            return
        await (ack(**accepted.message) if accepted.message else ack())
        self._go_on(accepted)

    async def click(self, ack: AsyncAck, body: JsonObject, context: AsyncBoltContext) -> None:
        """A button or the menu below a plan. Errors are sent as an answer."""
        asker, user = _asker(context, body), body.get("user") or {}
        [action, *_] = body.get("actions") or [{}]
        if action.get("url"):
            # A link: the browser has opened it.
            await ack()
            return
        name = str(user.get("username") or user.get("name") or "")
        accepted = await self._accepted(asker, lambda: read_click(action, name))
        if accepted.refused is not None and accepted.message is not None:
            refusal_message, until = accepted.message, self.answers.held_until()
            stored = await self._soon(lambda: noted(self.gpuplan, asker, refusal_message, held_until=until))
            accepted = replace(accepted, asked=stored)
        await ack()
        if accepted.form:
            self._begin_form(asker, body)
        self._go_on(accepted)

    async def submitted(self, ack: AsyncAck, body: JsonObject, context: AsyncBoltContext) -> None:
        """The form: refused with faults at fields, or closed and answered where the command was given."""
        view = body.get("view") or {}
        asker = _from_form(_asker(context, body), metadata_of(view))
        try:
            accepted = await self._accepted(asker, lambda: read_form(view), announce=True)
        except (StoreFailure, TimeoutError) as error:
            reason = BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was stored; try again."
            await ack(response_action="errors", errors={"model": reason})
            return
        if accepted.refused is not None:
            await ack(response_action="errors", errors=errors_at_fields(accepted.refused))
            return
        await ack()
        self._go_on(accepted)

    async def spoken(self, event: JsonObject, context: AsyncBoltContext) -> None:
        """A message to the app: a mention in a channel, or a direct message. It is answered in its thread."""
        if event.get("bot_id") or event.get("subtype") or not event.get("user"):
            return
        thread, text = str(event.get("thread_ts") or ""), _MENTION.sub(" ", str(event.get("text") or "")).strip()
        asker = replace(_asker(context, {}), thread_ts=thread or str(event.get("ts") or ""))

        def read() -> Question:
            plan_id = self.gpuplan.store.slack.plan_of_thread(asker.team_id, asker.channel_id, thread)
            return read_command(text) if plan_id is None else read_follow_up(text, plan_id, now=datetime.now(UTC))

        try:
            accepted = await self._accepted(asker, read)
            if accepted.asked is None:
                reply = accepted.message or note(f"Write the job: {COMMANDS['plan'].example.removeprefix('/gpuplan ')}")
                until = self.answers.held_until()
                stored = await self._soon(lambda: noted(self.gpuplan, asker, reply, held_until=until))
                accepted = replace(accepted, asked=stored)
        except (StoreFailure, TimeoutError) as error:
            log.warning("a message in %s was not stored: %s", asker.team_id, error or "the store is slow")
            return
        self._go_on(accepted)

    async def home(self, event: JsonObject, context: AsyncBoltContext) -> None:
        """The home tab was opened: show it anew."""
        if event.get("tab") != "home":
            return
        asker = _asker(context, {})
        try:
            view = await anyio.to_thread.run_sync(home, self.gpuplan, self.settings, asker.team_id, asker.enterprise_id)
            token = await anyio.to_thread.run_sync(
                token_of, self.gpuplan, self.settings, asker.team_id, asker.enterprise_id
            )
            await Teller(self.settings, token).publish_home(asker.user_id, view)
        except (StoreFailure, NotDelivered) as error:
            log.warning("the home tab of %s was not shown: %s", asker.team_id, error)

    async def uninstalled(self, context: AsyncBoltContext) -> None:
        """The app was removed from a workspace: delete its token."""
        for workspace_id in filter(None, (context.team_id, context.enterprise_id)):
            await anyio.to_thread.run_sync(self.gpuplan.store.slack.uninstall, workspace_id)

    async def _accepted(self, asker: Asker, read: Callable[[], Question], *, announce: bool = False) -> Accepted:
        until = self.answers.held_until()
        return await self._soon(lambda: accept(self.gpuplan, asker, read, held_until=until, announce=announce))

    async def _soon[Answer](self, call: Callable[[], Answer]) -> Answer:
        """The result of a call on the store. Raises `TimeoutError` before Slack's own timeout."""
        async with asyncio.timeout(self.settings.patience.store_seconds):
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)

    def _go_on(self, accepted: Accepted) -> None:
        if accepted.asked is not None:
            self.answers.begin(accepted.asked)

    def _begin_form(self, asker: Asker, body: Body) -> None:
        task = asyncio.create_task(self._open_form(asker, str(body.get("trigger_id") or "")))
        self._forms.add(task)
        task.add_done_callback(self._forms.discard)

    async def _open_form(self, asker: Asker, trigger_id: str) -> None:
        token = await anyio.to_thread.run_sync(
            token_of, self.gpuplan, self.settings, asker.team_id, asker.enterprise_id
        )
        teller = Teller(self.settings, token)
        try:
            await teller.open_form(trigger_id, form(command_metadata(asker.channel_id, asker.response_url)))
        except NotDelivered as error:
            log.warning("a form could not be opened in %s: %s", asker.team_id, error)
            reason = f"The form could not be opened ({error}). As text: {COMMANDS['plan'].example}"
            with contextlib.suppress(NotDelivered):
                await teller.answer(_to(asker), note(reason))


def _asker(context: AsyncBoltContext, body: Mapping[str, Any]) -> Asker:
    """The requester. In a shared channel a click may come from a member of another workspace."""
    user = body.get("user")
    return Asker(
        home_team_id=str(user.get("team_id") or "") if isinstance(user, dict) else "",
        team_id=context.team_id or "",
        enterprise_id=context.enterprise_id or "",
        user_id=context.user_id or "",
        channel_id=context.channel_id or "",
        response_url=context.response_url or "",
    )


def _from_form(asker: Asker, metadata: Mapping[str, str]) -> Asker:
    """The requester with the channel of the command that opened the form, and its response URL while that is valid."""
    try:
        asked_at = datetime.fromisoformat(metadata["asked_at"])
        good = datetime.now(UTC) - asked_at < RESPONSE_URL_LIFETIME
    except (KeyError, ValueError, TypeError):
        good = False
    url = metadata.get("response_url", "") if good else ""
    return replace(asker, channel_id=metadata.get("channel_id", ""), response_url=url)


def _to(asker: Asker) -> To:
    return To(channel_id=asker.channel_id, user_id=asker.user_id, response_url=asker.response_url)
