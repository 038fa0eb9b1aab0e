"""Counts of what the store holds, for whoever watches over it: prices per provider, refreshes, runs, messages, size."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from catalog.database import sqlite_file
from catalog.schema import notifications, prices, readings, refreshes, runs, snapshots

#: As many refreshes as anybody counts in a row.
_LAST_REFRESHES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPrices:
    """The prices of one provider in a snapshot: how many, how many a refresh could not confirm, and from when."""

    provider: str
    offers: int
    stale: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshEnd:
    """How one refresh ended."""

    outcome: str
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What goes on: runs by (kind, status), messages of watches, and the last refreshes, the newest first."""

    runs: dict[tuple[str, str], int]
    notifications_waiting: int
    notifications_given_up: int
    refreshes: tuple[RefreshEnd, ...]
    last_whole_at: datetime | None

    @property
    def refreshes_not_whole(self) -> int:
        """How many of the last refreshes left something out, counted back to the last that did not."""
        whole = (i for i, each in enumerate(self.refreshes) if each.outcome == "whole")
        return next(whole, len(self.refreshes))


def provider_prices(connection: sa.Connection, snapshot_id: str) -> tuple[ProviderPrices, ...]:
    """The prices of a snapshot by provider; they never change, so once per snapshot is enough."""
    seq = sa.select(snapshots.c.seq).where(snapshots.c.id == snapshot_id).scalar_subquery()
    holds = [sa.and_(each.c.first_seq <= seq, each.c.last_seq >= seq) for each in (prices, readings)]
    asked = (
        sa.select(
            readings.c.provider,
            sa.func.count().label("offers"),
            sa.func.count(readings.c.stale_since).label("stale"),
            sa.func.min(readings.c.observed_at).label("oldest_at"),
            sa.func.max(readings.c.observed_at).label("newest_at"),
        )
        .join_from(prices, readings, sa.and_(prices.c.reading_id == readings.c.reading_id, *holds))
        .group_by(readings.c.provider)
        .order_by(readings.c.provider)
    )
    return tuple(ProviderPrices(**row._mapping) for row in connection.execute(asked))


def activity(connection: sa.Connection) -> Activity:
    """What goes on now."""
    counted = sa.select(runs.c.kind, runs.c.status, sa.func.count()).group_by(runs.c.kind, runs.c.status)
    waits = sa.and_(notifications.c.delivered_at.is_(None), notifications.c.given_up_at.is_(None))
    last = sa.select(refreshes.c.outcome, refreshes.c.started_at, refreshes.c.finished_at)
    newest = last.order_by(refreshes.c.started_at.desc(), refreshes.c.id).limit(_LAST_REFRESHES)
    whole = sa.select(sa.func.max(refreshes.c.finished_at)).where(refreshes.c.outcome == "whole")

    def count(where: sa.ColumnElement[bool]) -> int:
        return connection.execute(sa.select(sa.func.count()).select_from(notifications).where(where)).scalar_one()

    return Activity(
        runs={(kind, status): number for kind, status, number in connection.execute(counted)},
        notifications_waiting=count(waits),
        notifications_given_up=count(notifications.c.given_up_at.is_not(None)),
        refreshes=tuple(RefreshEnd(**row._mapping) for row in connection.execute(newest)),
        last_whole_at=connection.execute(whole).scalar(),
    )


def database_bytes(connection: sa.Connection, url: sa.URL) -> int:
    """How large the database is: the file with what is written ahead, or what PostgreSQL says."""
    path = sqlite_file(url)
    if path is None:
        return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())
    return sum(each.stat().st_size for each in (path, Path(f"{path}-wal")) if each.exists())
