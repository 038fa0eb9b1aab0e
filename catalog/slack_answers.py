"""What was asked in Slack: kept until its answer has been told, held by one process at a time, and refused a second time.

A question is stored before Slack hears that it was understood, and its answer before it is sent: a process that is
killed in between leaves a row that another one takes up when `held_until` has passed. The address of an answer and
its text are forgotten once it has been told, or given up.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from catalog.database import insert_or_keep
from catalog.saved import as_json
from catalog.schema import slack_answers, slack_once

#: How long a question is remembered after it was asked, for `last` and for the job behind a button.
REMEMBERED = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAnswer:
    """A question and what has become of it: waiting, told (`delivered_at`) or given up, and then `last_error` says why.

    `request` is the kind's own. `message` is there once the answer is known and until it is told, `plan_id` is empty
    where the answer is no plan. `held_until` is the time up to which one process is at it, or waits before it tries again.
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
    """Whether none of `keys` has been seen; from now on all of them have, `until` that time."""
    table, mark = slack_once, uuid.uuid4().hex
    names = sorted(set(keys))
    connection.execute(sa.delete(table).where(table.c.until <= now))
    for key in names:
        insert_or_keep(connection, table, {"key": key, "mark": mark, "until": until})
    marks = connection.execute(sa.select(table.c.mark).where(table.c.key.in_(names))).scalars()
    return set(marks) == {mark}


def spend(connection: sa.Connection, key: str, now: datetime) -> bool:
    """Whether `key` was kept and is still good; it is gone from now on."""
    table = slack_once
    return bool(connection.execute(sa.delete(table).where(table.c.key == key, table.c.until > now)).rowcount)


def write_answer(connection: sa.Connection, answer: SlackAnswer) -> None:
    """Keeps a question, and forgets those of more than `REMEMBERED` ago."""
    table = slack_answers
    old = table.c.created_at < answer.created_at - REMEMBERED
    connection.execute(sa.delete(table).where(old))
    row = {name: getattr(answer, name) for name in SlackAnswer.__slots__}
    message = None if answer.message is None else as_json(answer.message)
    insert_or_keep(connection, table, row | {"request": as_json(answer.request), "message": message})


def count_waiting(connection: sa.Connection, team_id: str) -> int:
    """How many answers of a workspace wait to be told."""
    waiting = sa.select(sa.func.count()).where(_waits(), slack_answers.c.team_id == team_id)
    return int(connection.execute(waiting).scalar_one())


def read_due(connection: sa.Connection, now: datetime, most: int) -> tuple[SlackAnswer, ...]:
    """Questions that wait and that nobody holds, the oldest first."""
    table = slack_answers
    due = sa.select(table).where(_waits(), table.c.held_until <= now).order_by(table.c.created_at, table.c.id)
    return tuple(_answer(row) for row in connection.execute(due.limit(most)))


def read_answer(connection: sa.Connection, answer_id: str) -> SlackAnswer | None:
    """The question under this id, None if there is none (any more)."""
    row = connection.execute(sa.select(slack_answers).where(slack_answers.c.id == answer_id)).first()
    return None if row is None else _answer(row)


def hold(connection: sa.Connection, answer_id: str, mine: datetime, until: datetime) -> bool:
    """Whether the caller, who read or set `mine` as `held_until`, is the one who is at it up to `until`."""
    table = slack_answers
    same = sa.and_(table.c.id == answer_id, table.c.held_until == mine, _waits())
    return bool(connection.execute(sa.update(table).where(same).values(held_until=until)).rowcount)


def write_message(
    connection: sa.Connection, answer_id: str, message: Mapping[str, Any], *, plan_id: str, request: Mapping[str, Any]
) -> None:
    """Keeps what is to be told, and the job behind it."""
    told = {"message": as_json(dict(message)), "plan_id": plan_id, "request": as_json(dict(request))}
    connection.execute(sa.update(slack_answers).where(slack_answers.c.id == answer_id).values(**told))


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
    """Notes how telling went: it is done, given up, or tried again at `again_at`."""
    table = slack_answers
    values: dict[str, Any] = {"attempts": table.c.attempts + attempts, "last_error": error}
    if again_at is not None:
        values |= {"held_until": again_at}
    else:
        values |= {"delivered_at": delivered_at, "given_up_at": given_up_at, "response_url": "", "message": None}
    connection.execute(sa.update(table).where(table.c.id == answer_id).values(**values))


def last_plan(connection: sa.Connection, team_id: str, user_id: str) -> str | None:
    """The id of the plan that this user was told last."""
    table = slack_answers
    theirs = sa.and_(table.c.team_id == team_id, table.c.user_id == user_id, table.c.plan_id != "")
    newest = sa.select(table.c.plan_id).where(theirs).order_by(table.c.created_at.desc(), table.c.id).limit(1)
    return connection.execute(newest).scalar()


def asked_for(connection: sa.Connection, plan_id: str, team_id: str) -> dict[str, Any] | None:
    """What a workspace had asked for when it was told this plan, None if that was not in Slack."""
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
