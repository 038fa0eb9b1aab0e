"""Slack in the store: questions until they are answered, the plans of threads, workspaces and installations."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert, insert_or_ignore
from gpuplan.catalog.store.schema import slack_answers, slack_installations, slack_once, slack_threads, slack_workspaces
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import StorePart, reads, writes

#: How long a question is stored, for `last` and for the job behind a button.
REMEMBERED = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAnswer:
    """A question and its state: waiting, sent (`delivered_at`) or given up, with the reason in `last_error`.

    `request` depends on the kind. `message` is set from the time the answer is known until it is sent; `plan_id` is empty
    if the answer is not a plan. `held_until` is the end of a process's lease, or of its wait before a retry.
    """

    id: str
    team_id: str
    user_id: str
    channel_id: str
    kind: str
    request: dict[str, Any]
    response_url: str
    created_at: datetime
    held_until: datetime
    message: dict[str, Any] | None = None
    plan_id: str = ""
    attempts: int = 0
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None
    last_error: str = ""


def first_time(connection: sa.Connection, keys: Iterable[str], now: datetime, until: datetime) -> bool:
    """Whether none of `keys` has been seen; marks them all as seen `until` that time."""
    table, mark = slack_once, uuid.uuid4().hex
    names = sorted(set(keys))
    connection.execute(sa.delete(table).where(table.c.until <= now))
    for key in names:
        insert_or_ignore(connection, table, {"key": key, "mark": mark, "until": until})
    marks = connection.execute(sa.select(table.c.mark).where(table.c.key.in_(names))).scalars()
    return set(marks) == {mark}


def spend(connection: sa.Connection, key: str, now: datetime) -> bool:
    """Use up `key`; returns whether it was stored and unexpired."""
    table = slack_once
    return bool(connection.execute(sa.delete(table).where(table.c.key == key, table.c.until > now)).rowcount)


def write_answer(connection: sa.Connection, answer: SlackAnswer) -> None:
    """Store a question, and delete those older than `REMEMBERED`."""
    table = slack_answers
    old = table.c.created_at < answer.created_at - REMEMBERED
    connection.execute(sa.delete(table).where(old))
    insert_or_ignore(connection, table, answer)


def count_waiting(connection: sa.Connection, team_id: str) -> int:
    """The number of unsent answers of a workspace."""
    waiting = sa.select(sa.func.count()).where(_waits(), slack_answers.c.team_id == team_id)
    return int(connection.execute(waiting).scalar_one())


def read_due(connection: sa.Connection, now: datetime, most: int) -> tuple[SlackAnswer, ...]:
    """Waiting questions that no process leases, oldest first."""
    table = slack_answers
    due = sa.select(table).where(_waits(), table.c.held_until <= now).order_by(table.c.created_at, table.c.id)
    return tuple(SlackAnswer(**row._mapping) for row in connection.execute(due.limit(most)))


def read_answer(connection: sa.Connection, answer_id: str) -> SlackAnswer | None:
    """The question with this id, or None."""
    row = connection.execute(sa.select(slack_answers).where(slack_answers.c.id == answer_id)).first()
    return None if row is None else SlackAnswer(**row._mapping)


def hold(connection: sa.Connection, answer_id: str, mine: datetime, until: datetime) -> bool:
    """Lease the question up to `until`; False unless `held_until` is still `mine`, the value the caller read or set."""
    table = slack_answers
    same = sa.and_(table.c.id == answer_id, table.c.held_until == mine, _waits())
    return bool(connection.execute(sa.update(table).where(same).values(held_until=until)).rowcount)


def write_message(
    connection: sa.Connection, answer_id: str, message: Mapping[str, Any], *, plan_id: str, request: Mapping[str, Any]
) -> None:
    """Store the answer to send, and its job."""
    values = {"message": message, "plan_id": plan_id, "request": request}
    connection.execute(sa.update(slack_answers).where(slack_answers.c.id == answer_id).values(**values))


def settle(
    connection: sa.Connection,
    answer_id: str,
    *,
    attempts: int,
    delivered_at: datetime | None = None,
    given_up_at: datetime | None = None,
    again_at: datetime | None = None,
    error: str = "",
) -> None:
    """Record the result of sending: sent, given up, or to retry at `again_at`."""
    table = slack_answers
    values: dict[str, Any] = {"attempts": table.c.attempts + attempts, "last_error": error}
    if again_at is not None:
        values |= {"held_until": again_at}
    else:
        values |= {"delivered_at": delivered_at, "given_up_at": given_up_at, "response_url": "", "message": None}
    connection.execute(sa.update(table).where(table.c.id == answer_id).values(**values))


def last_plan(connection: sa.Connection, team_id: str, user_id: str) -> str | None:
    """The id of the plan last sent to this user."""
    table = slack_answers
    theirs = sa.and_(table.c.team_id == team_id, table.c.user_id == user_id, table.c.plan_id != "")
    newest = sa.select(table.c.plan_id).where(theirs).order_by(table.c.created_at.desc(), table.c.id).limit(1)
    return connection.execute(newest).scalar()


def asked_for(connection: sa.Connection, plan_id: str, team_id: str) -> dict[str, Any] | None:
    """The workspace's request behind this plan, None if it did not come from Slack."""
    table = slack_answers
    same = sa.and_(table.c.plan_id == plan_id, table.c.team_id == team_id)
    newest = sa.select(table.c.request).where(same).order_by(table.c.created_at.desc(), table.c.id).limit(1)
    request: dict[str, Any] | None = connection.execute(newest).scalar()
    return request


def _waits() -> sa.ColumnElement[bool]:
    return sa.and_(slack_answers.c.delivered_at.is_(None), slack_answers.c.given_up_at.is_(None))


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
    insert(connection, slack_workspaces, workspace)


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
    row = {"id": workspace_id, "installation": dict(installation), "installed_at": now}
    connection.execute(sa.insert(slack_installations), row)


def read_installation(connection: sa.Connection, *workspace_ids: str) -> dict[str, Any] | None:
    """The installation data of the first of these workspaces that has any, or None."""
    table = slack_installations
    rows = connection.execute(
        sa.select(table).where(table.c.id.in_([workspace_id for workspace_id in workspace_ids if workspace_id]))
    ).all()
    by_id = {row.id: row.installation for row in rows}
    return next((by_id[workspace_id] for workspace_id in workspace_ids if workspace_id in by_id), None)


def delete_installation(connection: sa.Connection, workspace_id: str) -> int:
    """Delete the token of a workspace; returns the number deleted."""
    gone = sa.delete(slack_installations).where(slack_installations.c.id == workspace_id)
    return connection.execute(gone).rowcount


def write_thread(
    connection: sa.Connection, team_id: str, channel_id: str, thread_ts: str, *, plan_id: str, now: datetime
) -> None:
    """Store the newest plan of a thread, and delete threads without an answer since `REMEMBERED`."""
    table = slack_threads
    connection.execute(sa.delete(table).where(table.c.answered_at < now - REMEMBERED))
    key = {"team_id": team_id, "channel_id": channel_id, "thread_ts": thread_ts}
    values = {"plan_id": plan_id, "answered_at": now}
    if not insert_or_ignore(connection, table, key | values):
        same = sa.and_(*(table.c[name] == value for name, value in key.items()))
        connection.execute(sa.update(table).where(same).values(**values))


def read_thread(connection: sa.Connection, team_id: str, channel_id: str, thread_ts: str) -> str | None:
    """The id of the newest plan of a thread; None for a thread without one."""
    table = slack_threads
    same = sa.and_(table.c.team_id == team_id, table.c.channel_id == channel_id, table.c.thread_ts == thread_ts)
    return connection.execute(sa.select(table.c.plan_id).where(same)).scalar()


class SlackStore(StorePart):
    """The Slack data in the store."""

    first_time = writes(first_time)
    spend = writes(spend)
    answer = reads(read_answer)
    due = reads(read_due)
    hold = writes(hold)
    answered = writes(write_message)
    settle = writes(settle)
    last_plan = reads(last_plan)
    asked_for = reads(asked_for)
    follow = writes(write_thread)
    plan_of_thread = reads(read_thread)
    allow = writes(write_workspace)
    workspaces = reads(read_workspaces)
    workspace = reads(find_workspace)
    remove = writes(delete_workspace)
    install = writes(write_installation)
    installation = reads(read_installation)
    uninstall = writes(delete_installation)

    def ask(self, answer: SlackAnswer, *, most_waiting: int) -> bool:
        """Store a question; False, without storing it, if its workspace already has too many waiting."""
        with self._writing() as connection:
            if count_waiting(connection, answer.team_id) >= most_waiting:
                return False
            write_answer(connection, answer)
            return True
