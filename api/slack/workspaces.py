"""Allowed workspaces with their scope, name and bot token."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.security.authorization import Requester, record
from gpuplan.api.security.identity import SCOPES, Identity, Scope, with_lesser
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.slack_store import SlackAnswer, SlackWorkspace

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services


_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedWorkspace:
    """A workspace that may use gpuplan, up to a scope."""

    workspace: str
    name: str
    scope: str
    allowed_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedWorkspace:
    """The id of a workspace that may use gpuplan no longer."""

    removed: str


def allow(gpuplan: "Services", workspace_id: str, *, scope: str, name: str | None) -> AllowedWorkspace:
    """Allow a workspace (T...) or an enterprise (E...), up to a scope. Raises `UnusableInput`."""
    checked = workspace_id.strip().upper()
    if not (2 <= len(checked) <= 40 and checked.isascii() and checked.isalnum() and checked[0] in "TE"):
        message = f"{shown(workspace_id)} is not a workspace; accepted: an id such as T0123ABCD, or E0123ABCD for an enterprise"
        raise UnusableInput.at("workspace", message=message)
    if scope not in SCOPES[:3]:
        message = (
            f"{shown(scope)} is not accepted; write one of {', '.join(SCOPES[:3])} (Slack commands never need admin)"
        )
        raise UnusableInput.at("scope", message=message)
    identity = (name or f"slack {checked}").strip()
    if not identity or len(identity) > _LONGEST_NAME or not identity.isprintable():
        message = f"{shown(name)} is not accepted; write one printable line of at most {_LONGEST_NAME} characters"
        raise UnusableInput.at("name", message=message)
    slack_workspace = SlackWorkspace(id=checked, identity=identity, scope=scope, created_at=datetime.now(UTC))
    gpuplan.store.slack.allow(slack_workspace)
    gpuplan.store.access.record(
        record("slack.allow", slack_workspace.id, slack_workspace.created_at, outcome=slack_workspace.scope)
    )
    return row(slack_workspace)


def remove(gpuplan: "Services", workspace_id: str) -> RemovedWorkspace:
    """Remove a workspace and delete its token. Raises `NotStored` if it was not allowed."""
    checked = workspace_id.strip().upper()
    gpuplan.store.slack.remove(checked)
    gpuplan.store.access.record(record("slack.remove", checked, datetime.now(UTC)))
    return RemovedWorkspace(removed=checked)


def row(workspace: SlackWorkspace) -> AllowedWorkspace:
    """A workspace as the command line lists it."""
    return AllowedWorkspace(
        workspace=workspace.id,
        name=workspace.identity,
        scope=workspace.scope,
        allowed_at=workspace.created_at.isoformat(),
    )


def scopes_of(workspace: SlackWorkspace) -> frozenset[Scope]:
    """The workspace's scopes, including implied ones."""
    return with_lesser([workspace.scope])


def requester_of(gpuplan: "Services", asked: SlackAnswer, plans_per_day: int | None = None) -> Requester | None:
    """The identity of a request: the workspace with its user; None if the workspace is not allowed."""
    workspace = gpuplan.store.slack.workspace(asked.team_id, str(asked.request.get("enterprise_id") or ""))
    if workspace is None:
        return None
    where = f"{asked.team_id}/{asked.user_id}"
    return Requester(identity=identity_of(workspace), request_id=asked.id, address=where, plans_per_day=plans_per_day)


def identity_of(workspace: SlackWorkspace) -> Identity:
    """The identity under which a workspace acts."""
    return Identity(id=f"slack:{workspace.id}", name=workspace.identity, scopes=scopes_of(workspace), via="slack")


def unknown_workspace(workspace_id: str) -> str:
    """The sentence for a workspace that is not allowed, with the command that allows it."""
    known = workspace_id[:_LONGEST_NAME]
    return f"this workspace ({known}) may not use gpuplan; its operator can allow it: gpuplan slack allow {known} --scope plan"


def token_of(gpuplan: "Services", settings: SlackSettings, team_id: str, enterprise_id: str = "") -> str:
    """The bot token of a workspace; empty if it has not installed the app."""
    if settings.bot_token:
        return settings.bot_token
    installation = gpuplan.store.slack.installation(team_id, enterprise_id) or {}
    return str(installation.get("bot_token") or "")
