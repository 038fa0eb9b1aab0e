"""Allowed Slack workspaces with their identity and scope, and installation tokens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import slack_installations, slack_workspaces
from gpuplan.catalog.store.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackWorkspace:
    """An allowed workspace (`T...`) or enterprise (`E...`), acting as `identity` with at most `scope`."""

    id: str
    identity: str
    scope: str
    created_at: datetime


def write_workspace(connection: sa.Connection, workspace: SlackWorkspace) -> None:
    """Allow a workspace, replacing its earlier permissions."""
    connection.execute(sa.delete(slack_workspaces).where(slack_workspaces.c.id == workspace.id))
    row = {name: getattr(workspace, name) for name in SlackWorkspace.__slots__}
    connection.execute(sa.insert(slack_workspaces), row)


def read_workspaces(connection: sa.Connection) -> tuple[SlackWorkspace, ...]:
    """All allowed workspaces, oldest first."""
    rows = connection.execute(
        sa.select(slack_workspaces).order_by(slack_workspaces.c.created_at, slack_workspaces.c.id)
    )
    return tuple(SlackWorkspace(**row._mapping) for row in rows)


def find_workspace(connection: sa.Connection, team_id: str, enterprise_id: str = "") -> SlackWorkspace | None:
    """The permissions of a workspace: its own row, else that of its enterprise."""
    wanted = [workspace_id for workspace_id in (team_id, enterprise_id) if workspace_id]
    rows = connection.execute(sa.select(slack_workspaces).where(slack_workspaces.c.id.in_(wanted))).all()
    by_id = {row.id: SlackWorkspace(**row._mapping) for row in rows}
    return next((by_id[workspace_id] for workspace_id in wanted if workspace_id in by_id), None)


def delete_workspace(connection: sa.Connection, workspace_id: str) -> None:
    """Disallow a workspace and delete its token. Raises `NotStored` at `workspace` if it was not allowed."""
    gone = connection.execute(sa.delete(slack_workspaces).where(slack_workspaces.c.id == workspace_id)).rowcount
    gone += delete_installation(connection, workspace_id)
    if not gone:
        raise _not_allowed(workspace_id)


def _not_allowed(workspace_id: str) -> UnusableInput:
    message = f"{workspace_id[:40]!r} is not allowed in any case; `gpuplan slack list` shows the allowed workspaces"
    return NotStored.at("workspace", message=message)


def write_installation(
    connection: sa.Connection, workspace_id: str, installation: Mapping[str, Any], now: datetime
) -> None:
    """Store the data of an installation, replacing an earlier one of the same workspace."""
    delete_installation(connection, workspace_id)
    row = {"id": workspace_id, "installation": as_json(dict(installation)), "installed_at": now}
    connection.execute(sa.insert(slack_installations), row)


def read_installation(connection: sa.Connection, *workspace_ids: str) -> dict[str, Any] | None:
    """The installation data of the first of these workspaces that has any, or None."""
    table = slack_installations
    rows = connection.execute(
        sa.select(table).where(table.c.id.in_([workspace_id for workspace_id in workspace_ids if workspace_id]))
    ).all()
    by_id = {row.id: row.installation for row in rows}
    text = next((by_id[workspace_id] for workspace_id in workspace_ids if workspace_id in by_id), None)
    return None if text is None else json.loads(text)


def delete_installation(connection: sa.Connection, workspace_id: str) -> int:
    """Delete the token of a workspace; returns the number deleted."""
    gone = sa.delete(slack_installations).where(slack_installations.c.id == workspace_id)
    return connection.execute(gone).rowcount
