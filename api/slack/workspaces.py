"""Which workspace asks as whom: rows that whoever runs gpuplan writes, and the bot's token of each."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.identity.asking import Asking, record
from api.identity.who import SCOPES, Identity, Scope, with_lesser
from api.slack.settings import SlackSettings
from catalog.errors import UnusableInput
from catalog.quantities import shown
from catalog.slack_answers import SlackAnswer
from catalog.slack_workspaces import SlackWorkspace

if TYPE_CHECKING:
    from api.app import Gpuplan

Document = dict[str, Any]

_LONGEST_NAME = 80


def allow(
    gpuplan: "Gpuplan", workspace_id: str, *, scope: str, name: str | None, now: datetime | None = None
) -> Document:
    """Lets a workspace (T...) or a whole enterprise (E...) ask, up to a scope. Raises `UnusableInput`."""
    checked = workspace_id.strip().upper()
    if not (2 <= len(checked) <= 40 and checked.isascii() and checked.isalnum() and checked[0] in "TE"):
        message = (
            f"{shown(workspace_id)} is no workspace; accepted: an id such as T0123ABCD, or E0123ABCD of an enterprise"
        )
        raise UnusableInput.at("workspace", message=message)
    if scope not in SCOPES[:3]:
        message = f"{shown(scope)} is not accepted; write one of {', '.join(SCOPES[:3])} (nothing in Slack takes admin)"
        raise UnusableInput.at("scope", message=message)
    identity = (name or f"slack {checked}").strip()
    if not identity or len(identity) > _LONGEST_NAME or not identity.isprintable():
        message = f"{shown(name)} is not accepted; write one printable line of at most {_LONGEST_NAME} characters"
        raise UnusableInput.at("name", message=message)
    kept = SlackWorkspace(id=checked, identity=identity, scope=scope, created_at=now or datetime.now(UTC))
    gpuplan.store.slack.allow(kept)
    gpuplan.store.access.record(record("slack.allow", kept.id, kept.created_at, outcome=kept.scope))
    return row(kept)


def remove(gpuplan: "Gpuplan", workspace_id: str, *, now: datetime | None = None) -> Document:
    """Lets a workspace ask no longer, and forgets its token. Raises `NotStored` if it was not allowed."""
    checked = workspace_id.strip().upper()
    gpuplan.store.slack.remove(checked)
    gpuplan.store.access.record(record("slack.remove", checked, now or datetime.now(UTC)))
    return {"removed": checked}


def row(workspace: SlackWorkspace) -> Document:
    """A workspace as JSON."""
    return {
        "workspace": workspace.id,
        "name": workspace.identity,
        "scope": workspace.scope,
        "allowed_at": workspace.created_at.isoformat(),
    }


def scopes_of(workspace: SlackWorkspace) -> frozenset[Scope]:
    """What the workspace may, with all that it includes."""
    return with_lesser([workspace.scope])


def asking_of(gpuplan: "Gpuplan", asked: SlackAnswer, plans_per_day: int | None = None) -> Asking | None:
    """On whose behalf a question is answered: the workspace's, with the user beside it; None if it may not ask."""
    workspace = gpuplan.store.slack.workspace(asked.team_id, str(asked.request.get("enterprise_id") or ""))
    if workspace is None:
        return None
    identity = Identity(id=f"slack:{workspace.id}", name=workspace.identity, scopes=scopes_of(workspace), via="slack")
    where = f"{asked.team_id}/{asked.user_id}"
    return Asking(identity=identity, request_id=asked.id, address=where, plans_per_day=plans_per_day)


def token_of(gpuplan: "Gpuplan", settings: SlackSettings, team_id: str, enterprise_id: str = "") -> str:
    """The bot's token for a workspace, empty if it has installed nothing."""
    if settings.bot_token:
        return settings.bot_token
    found = gpuplan.store.slack.installation(team_id, enterprise_id) or {}
    return str(found.get("bot_token") or "")
