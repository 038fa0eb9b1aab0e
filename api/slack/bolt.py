"""The Bolt app: which listener a command, a click, a form and an event go to. Each acknowledges, and hands over."""

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

from api.slack.answers import RESPONSE_URL_HOLDS, Answers
from api.slack.asking import Accepted, Asker, accept, noted, read_click
from api.slack.blocks import message
from api.slack.commands import COMMANDS, Question, read_command
from api.slack.form import CALLBACK, command_metadata, errors_at_fields, form, metadata_of, read_form
from api.slack.settings import SlackSettings
from api.slack.show_rest import note
from api.slack.telling import NotTold, Teller, To, client_of
from api.slack.workspaces import token_of
from catalog.errors import StoreFailure

Body = Mapping[str, Any]

log = logging.getLogger("gpuplan.slack")
#: Bolt says at INFO what a request with a wrong signature held, which is a stranger's text.
_bolt_log = logging.getLogger("gpuplan.slack.bolt")
_bolt_log.setLevel(logging.WARNING)

BUSY = "gpuplan's database does not answer at once. If no answer comes within a few minutes, ask again."


def bolt_app(settings: SlackSettings, answers: Answers) -> AsyncApp:
    """The app, with all its listeners. Nothing that it does before an acknowledgement goes over the network."""
    app = AsyncApp(
        name="gpuplan",
        logger=_bolt_log,
        signing_secret=settings.signing_secret,
        authorize=_authorize,
        client=client_of(settings, ""),
        # Slack asks for this with no signature, and nothing here needs it.
        ssl_check_enabled=False,
    )
    listeners = Listeners(settings, answers)
    app.command(re.compile(r"/\S+"))(listeners.command)
    app.action(re.compile(r".*"))(listeners.click)
    app.view(CALLBACK)(listeners.submitted)
    app.event("app_uninstalled")(listeners.uninstalled)
    app.event("tokens_revoked")(listeners.uninstalled)
    return app


async def _authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
    """Who may ask is looked up with the question; Bolt would ask Slack about its token first, and wait for it."""
    return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)


class Listeners:
    """What is done with each kind of request."""

    def __init__(self, settings: SlackSettings, answers: Answers) -> None:
        """`answers` takes over what was acknowledged."""
        self.settings, self.answers = settings, answers
        self.gpuplan = answers.gpuplan
        self._forms: set[asyncio.Task[None]] = set()

    async def command(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """`/gpuplan ...`: refused or promised in the acknowledgement itself, which only its author sees."""
        asker = _asker(context, body)
        try:
            found = await self._accepted(asker, lambda: read_command(str(body.get("text") or "")))
        except (StoreFailure, TimeoutError) as error:
            log.warning("a command of %s was not kept: %s", asker.team_id, error or "the store is slow")
            await ack(**message(BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was kept; ask again."))
            return
        if found.form:
            await ack()
            task = asyncio.create_task(self._open_form(asker, str(body.get("trigger_id") or "")))
            self._forms.add(task)
            task.add_done_callback(self._forms.discard)
            return
        await (ack(**found.message) if found.message else ack())
        self._go_on(found)

    async def click(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """A button or the menu below a plan. What is wrong with it is told as an answer."""
        asker, user = _asker(context, body), body.get("user") or {}
        [action, *_] = body.get("actions") or [{}]
        name = str(user.get("username") or user.get("name") or "")
        found = await self._accepted(asker, lambda: read_click(action, name))
        if found.refused is not None and found.message is not None:
            said, until = found.message, self.answers.held_until()
            kept = await self._soon(lambda: noted(self.gpuplan, asker, said, held_until=until))
            found = replace(found, asked=kept)
        await ack()
        self._go_on(found)

    async def submitted(self, ack: AsyncAck, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """The form: refused at its fields, or closed, and answered where it was asked for."""
        view = body.get("view") or {}
        asker = _from_form(_asker(context, body), metadata_of(view))
        try:
            found = await self._accepted(asker, lambda: read_form(view), announce=True)
        except (StoreFailure, TimeoutError) as error:
            said = BUSY if isinstance(error, TimeoutError) else f"{error}. Nothing was kept; ask again."
            await ack(response_action="errors", errors={"model": said})
            return
        if found.refused is not None:
            await ack(response_action="errors", errors=errors_at_fields(found.refused))
            return
        await ack()
        self._go_on(found)

    async def uninstalled(self, context: AsyncBoltContext) -> None:
        """The app is gone from a workspace: so is its token here."""
        for workspace_id in filter(None, (context.team_id, context.enterprise_id)):
            await anyio.to_thread.run_sync(self.gpuplan.store.slack.uninstall, workspace_id)

    async def _accepted(self, asker: Asker, read: Callable[[], Question], *, announce: bool = False) -> Accepted:
        until = self.answers.held_until()
        return await self._soon(lambda: accept(self.gpuplan, asker, read, held_until=until, announce=announce))

    async def _soon[Answer](self, call: Callable[[], Answer]) -> Answer:
        """What a call on the store gives. Raises `TimeoutError` rather than let Slack wait for it."""
        async with asyncio.timeout(self.settings.patience.store_seconds):
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)

    def _go_on(self, found: Accepted) -> None:
        if found.asked is not None:
            self.answers.begin(found.asked)

    async def _open_form(self, asker: Asker, trigger_id: str) -> None:
        token = await anyio.to_thread.run_sync(
            token_of, self.gpuplan, self.settings, asker.team_id, asker.enterprise_id
        )
        teller = Teller(self.settings, token)
        try:
            await teller.open_form(trigger_id, form(command_metadata(asker.channel_id, asker.response_url)))
        except NotTold as error:
            log.warning("a form could not be opened in %s: %s", asker.team_id, error)
            said = f"The form could not be opened ({error}). In words: {COMMANDS['plan'].example}"
            with contextlib.suppress(NotTold):
                await teller.answer(_to(asker), note(said))


def _asker(context: AsyncBoltContext, body: Mapping[str, Any]) -> Asker:
    """Who asks. A click in a channel that workspaces share may be that of a member of another one."""
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
    """With where the command was that opened the form; its address is left out once Slack takes nothing there."""
    try:
        asked_at = datetime.fromisoformat(metadata["asked_at"])
        good = datetime.now(UTC) - asked_at < RESPONSE_URL_HOLDS
    except (KeyError, ValueError, TypeError):
        good = False
    url = metadata.get("response_url", "") if good else ""
    return replace(asker, channel_id=metadata.get("channel_id", ""), response_url=url)


def _to(asker: Asker) -> To:
    return To(channel_id=asker.channel_id, user_id=asker.user_id, response_url=asker.response_url)
