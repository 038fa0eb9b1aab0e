"""The plan that a thread in Slack is about: follow-ups change it, and their plans take its place."""

from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.schema import slack_threads
from gpuplan.catalog.store.slack_answers import REMEMBERED


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
