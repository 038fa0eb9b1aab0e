"""Installation of the Slack app by OAuth, with states and tokens in the store."""

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

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.slack.message_sending import client_of
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.catalog.runtime.errors import StoreFailure

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.slack.install")

#: The least scopes that the app needs; docs/slack.md explains them.
BOT_SCOPES = ("commands", "chat:write", "app_mentions:read", "im:history", "files:read", "files:write", "im:write")
STATE_SECONDS = 600
INSTALL, REDIRECT = "/slack/install", "/slack/oauth_redirect"


def installing(gpuplan: "Services", settings: SlackSettings) -> APIRouter:
    """The two pages of an installation: the redirect to Slack, and the callback."""
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
        """Redirect to Slack's consent page."""
        return to_starlette_response(await flow.handle_installation(to_async_bolt_request(request, b"")))

    async def redirect(request: Request) -> Response:
        """Exchange the code from Slack for a token."""
        try:
            return to_starlette_response(await flow.handle_callback(to_async_bolt_request(request, b"")))
        except OSError as error:
            raise Refused(502, f"Slack does not answer ({type(error).__name__}); install again") from error

    router.add_api_route(INSTALL, install, methods=["GET"])
    router.add_api_route(REDIRECT, redirect, methods=["GET"])
    return router


class _Installations(AsyncInstallationStore):  # type: ignore[misc, unused-ignore]
    """Stores bot tokens of workspaces; user tokens are neither requested nor stored."""

    def __init__(self, gpuplan: "Services") -> None:
        self.gpuplan = gpuplan

    @property
    def logger(self) -> logging.Logger:
        """The library's logger."""
        return log

    async def async_save(self, installation: Installation) -> None:
        """Store an installation under its workspace, or its enterprise if installed for all of it."""
        whole = bool(installation.is_enterprise_install)
        key = (installation.enterprise_id if whole else installation.team_id) or ""
        if not key or not installation.bot_token:
            raise BoltError("Slack named no workspace, or gave no token")
        document = {
            "bot_token": installation.bot_token,
            "team_id": installation.team_id,
            "team_name": installation.team_name,
            "enterprise_id": installation.enterprise_id,
            "bot_user_id": installation.bot_user_id,
            "scopes": list(installation.bot_scopes or ()),
        }
        try:
            await anyio.to_thread.run_sync(self.gpuplan.store.slack.install, key, document, datetime.now(UTC))
        except StoreFailure as error:
            raise BoltError(str(error)) from error
        log.info("the Slack app was installed in %s; allow it with `gpuplan slack allow %s`", key, key)


class _States(AsyncOAuthStateStore):  # type: ignore[misc, unused-ignore]
    """OAuth states, valid once for ten minutes; they prove that an installation started here."""

    def __init__(self, gpuplan: "Services") -> None:
        self.gpuplan = gpuplan

    @property
    def logger(self) -> logging.Logger:
        """The library's logger."""
        return log

    async def async_issue(self, *args: object, **kwargs: object) -> str:
        """Issue a new state."""
        state, now = uuid.uuid4().hex, datetime.now(UTC)
        until = now + timedelta(seconds=STATE_SECONDS)
        await anyio.to_thread.run_sync(self.gpuplan.store.slack.first_time, [f"state:{state}"], now, until)
        return state

    async def async_consume(self, state: str) -> bool:
        """Whether the state is valid; it is used up."""
        return await anyio.to_thread.run_sync(self.gpuplan.store.slack.spend, f"state:{state}", datetime.now(UTC))
