"""Which Slack workspaces may ask, as whom and how much; and the tokens that an installation left."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.errors import UnusableInput
from catalog.saved import as_json
from catalog.schema import slack_installations, slack_workspaces
from catalog.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackWorkspace:
    """A workspace (`T...`) or a whole enterprise (`E...`) that may ask: as `identity`, up to `scope`."""

    id: str
    identity: str
    scope: str
    created_at: datetime


def write_workspace(connection: sa.Connection, workspace: SlackWorkspace) -> None:
    """Allows a workspace, in place of what was allowed to it before."""
    connection.execute(sa.delete(slack_workspaces).where(slack_workspaces.c.id == workspace.id))
    row = {name: getattr(workspace, name) for name in SlackWorkspace.__slots__}
    connection.execute(sa.insert(slack_workspaces), row)


def read_workspaces(connection: sa.Connection) -> tuple[SlackWorkspace, ...]:
    """All that are allowed, the oldest first."""
    rows = connection.execute(
        sa.select(slack_workspaces).order_by(slack_workspaces.c.created_at, slack_workspaces.c.id)
    )
    return tuple(SlackWorkspace(**row._mapping) for row in rows)


def find_workspace(connection: sa.Connection, team_id: str, enterprise_id: str) -> SlackWorkspace | None:
    """What is allowed to a workspace: what its own row says, else that of its enterprise."""
    wanted = [each for each in (team_id, enterprise_id) if each]
    rows = connection.execute(sa.select(slack_workspaces).where(slack_workspaces.c.id.in_(wanted))).all()
    found = {row.id: SlackWorkspace(**row._mapping) for row in rows}
    return next((found[each] for each in wanted if each in found), None)


def delete_workspace(connection: sa.Connection, workspace_id: str) -> None:
    """Allows a workspace no longer, and forgets its token. Raises `NotStored` at `workspace` if it was not allowed."""
    gone = connection.execute(sa.delete(slack_workspaces).where(slack_workspaces.c.id == workspace_id)).rowcount
    gone += delete_installation(connection, workspace_id)
    if not gone:
        raise _not_allowed(workspace_id)


def _not_allowed(workspace_id: str) -> UnusableInput:
    message = f"{workspace_id[:40]!r} is not allowed anyway; `gpuplan slack list` shows those that are"
    return NotStored.at("workspace", message=message)


def write_installation(
    connection: sa.Connection, workspace_id: str, installation: Mapping[str, Any], now: datetime
) -> None:
    """Keeps what an installation left, in place of an earlier one of the same workspace."""
    delete_installation(connection, workspace_id)
    row = {"id": workspace_id, "installation": as_json(dict(installation)), "installed_at": now}
    connection.execute(sa.insert(slack_installations), row)


def read_installation(connection: sa.Connection, *workspace_ids: str) -> dict[str, Any] | None:
    """What the installation of the first of these left, None if there was none."""
    table = slack_installations
    rows = connection.execute(sa.select(table).where(table.c.id.in_([each for each in workspace_ids if each]))).all()
    found = {row.id: row.installation for row in rows}
    text = next((found[each] for each in workspace_ids if each in found), None)
    return None if text is None else json.loads(text)


def delete_installation(connection: sa.Connection, workspace_id: str) -> int:
    """Forgets the token of a workspace; gives how many there were."""
    gone = sa.delete(slack_installations).where(slack_installations.c.id == workspace_id)
    return connection.execute(gone).rowcount
