"""Installing the Slack app into a workspace: Slack's own exchange, with states and tokens kept in the store."""

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.error import BoltError
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore

from api.http.problems import Refused
from api.slack.settings import SlackSettings
from api.slack.telling import client_of
from catalog.errors import StoreFailure

if TYPE_CHECKING:
    from api.app import Gpuplan

log = logging.getLogger("gpuplan.slack.install")

#: What the app does, and no more: see docs/slack.md for what each is for.
BOT_SCOPES = ("commands", "chat:write", "files:read", "files:write", "im:write")
STATE_SECONDS = 600
INSTALL, REDIRECT = "/slack/install", "/slack/oauth_redirect"


def installing(gpuplan: "Gpuplan", settings: SlackSettings) -> APIRouter:
    """The two pages of an installation: the way to Slack, and the way back."""
    flow = AsyncOAuthFlow(
        client=client_of(settings, ""),
        logger=log,
        settings=AsyncOAuthSettings(
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            scopes=BOT_SCOPES,
            redirect_uri=settings.redirect_url or None,
            install_path=INSTALL,
            redirect_uri_path=REDIRECT,
            installation_store=_Installations(gpuplan),
            state_store=_States(gpuplan),
            state_expiration_seconds=STATE_SECONDS,
            install_page_rendering_enabled=False,
            logger=log,
        ),
    )
    router = APIRouter()

    async def install(request: Request) -> Response:
        """To Slack, where the workspace agrees."""
        return to_starlette_response(await flow.handle_installation(to_async_bolt_request(request, b"")))

    async def redirect(request: Request) -> Response:
        """Back from Slack, with what a token is got for."""
        try:
            return to_starlette_response(await flow.handle_callback(to_async_bolt_request(request, b"")))
        except OSError as error:
            raise Refused(502, f"Slack does not answer ({type(error).__name__}); install again") from error

    router.add_api_route(INSTALL, install, methods=["GET"])
    router.add_api_route(REDIRECT, redirect, methods=["GET"])
    return router


class _Installations(AsyncInstallationStore):  # type: ignore[misc, unused-ignore]
    """Keeps the bot's token of a workspace; people's own tokens are not asked for and not kept."""

    def __init__(self, gpuplan: "Gpuplan") -> None:
        self.gpuplan = gpuplan

    @property
    def logger(self) -> logging.Logger:
        """Where the library writes."""
        return log

    async def async_save(self, installation: Installation) -> None:
        """Keeps an installation under its workspace, or its enterprise where that has it as a whole."""
        whole = bool(installation.is_enterprise_install)
        key = (installation.enterprise_id if whole else installation.team_id) or ""
        if not key or not installation.bot_token:
            raise BoltError("Slack named no workspace, or gave no token")
        kept = {
            "bot_token": installation.bot_token,
            "team_id": installation.team_id,
            "team_name": installation.team_name,
            "enterprise_id": installation.enterprise_id,
            "bot_user_id": installation.bot_user_id,
            "scopes": list(installation.bot_scopes or ()),
        }
        try:
            await anyio.to_thread.run_sync(self.gpuplan.store.slack.install, key, kept, datetime.now(UTC))
        except StoreFailure as error:
            raise BoltError(str(error)) from error
        log.info("the Slack app was installed in %s; `gpuplan slack allow %s` lets it ask", key, key)


class _States(AsyncOAuthStateStore):  # type: ignore[misc, unused-ignore]
    """What proves that an installation was begun here: good once, for ten minutes."""

    def __init__(self, gpuplan: "Gpuplan") -> None:
        self.gpuplan = gpuplan

    @property
    def logger(self) -> logging.Logger:
        """Where the library writes."""
        return log

    async def async_issue(self, *args: object, **kwargs: object) -> str:
        """A new state."""
        state, now = uuid.uuid4().hex, datetime.now(UTC)
        until = now + timedelta(seconds=STATE_SECONDS)
        await anyio.to_thread.run_sync(self.gpuplan.store.slack.first_time, [f"state:{state}"], now, until)
        return state

    async def async_consume(self, state: str) -> bool:
        """Whether it was issued here and is still good; it is not any more."""
        return await anyio.to_thread.run_sync(self.gpuplan.store.slack.spend, f"state:{state}", datetime.now(UTC))
