"""Questions from Slack and their answers: stored until answered, leased by one process at a time, deduplicated.

A question is stored before Slack receives the acknowledgement, and an answer before it is sent: if a process is killed in
between, another one takes over the row once `held_until` has passed. The address and text of an answer are deleted once it
is sent or given up.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import slack_answers, slack_once

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
    row = {name: getattr(answer, name) for name in SlackAnswer.__slots__}
    message = None if answer.message is None else as_json(answer.message)
    insert_or_ignore(connection, table, row | {"request": as_json(answer.request), "message": message})


def count_waiting(connection: sa.Connection, team_id: str) -> int:
    """The number of unsent answers of a workspace."""
    waiting = sa.select(sa.func.count()).where(_waits(), slack_answers.c.team_id == team_id)
    return int(connection.execute(waiting).scalar_one())


def read_due(connection: sa.Connection, now: datetime, most: int) -> tuple[SlackAnswer, ...]:
    """Waiting questions that no process leases, oldest first."""
    table = slack_answers
    due = sa.select(table).where(_waits(), table.c.held_until <= now).order_by(table.c.created_at, table.c.id)
    return tuple(_answer(row) for row in connection.execute(due.limit(most)))


def read_answer(connection: sa.Connection, answer_id: str) -> SlackAnswer | None:
    """The question with this id, or None."""
    row = connection.execute(sa.select(slack_answers).where(slack_answers.c.id == answer_id)).first()
    return None if row is None else _answer(row)


def hold(connection: sa.Connection, answer_id: str, mine: datetime, until: datetime) -> bool:
    """Lease the question up to `until`; False unless `held_until` is still `mine`, the value the caller read or set."""
    table = slack_answers
    same = sa.and_(table.c.id == answer_id, table.c.held_until == mine, _waits())
    return bool(connection.execute(sa.update(table).where(same).values(held_until=until)).rowcount)


def write_message(
    connection: sa.Connection, answer_id: str, message: Mapping[str, Any], *, plan_id: str, request: Mapping[str, Any]
) -> None:
    """Store the answer to send, and its job."""
    values = {"message": as_json(dict(message)), "plan_id": plan_id, "request": as_json(dict(request))}
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
    text = connection.execute(newest).scalar()
    return None if text is None else json.loads(text)


def _waits() -> sa.ColumnElement[bool]:
    return sa.and_(slack_answers.c.delivered_at.is_(None), slack_answers.c.given_up_at.is_(None))


def _answer(row: sa.Row[Any]) -> SlackAnswer:
    values = dict(row._mapping)
    message = None if row.message is None else json.loads(row.message)
    return SlackAnswer(**values | {"request": json.loads(row.request), "message": message})
