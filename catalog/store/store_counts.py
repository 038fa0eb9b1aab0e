"""Counts for monitoring: prices per provider, refreshes, runs, messages, database size."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from gpuplan.catalog.store.database import sqlite_file
from gpuplan.catalog.store.schema import notifications, prices, readings, refreshes, runs, snapshots

#: The maximum number of refreshes counted in a row.
_LAST_REFRESHES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPrices:
    """The prices of one provider in a snapshot: number, stale number, and oldest observation."""

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
    """Current activity: runs by (kind, status), messages of watches, and the last refreshes, newest first."""

    runs: dict[tuple[str, str], int]
    notifications_waiting: int
    notifications_given_up: int
    refreshes: tuple[RefreshEnd, ...]
    last_whole_at: datetime | None

    @property
    def refreshes_not_whole(self) -> int:
        """The number of incomplete refreshes since the last complete one."""
        whole = (i for i, refresh in enumerate(self.refreshes) if refresh.outcome == "whole")
        return next(whole, len(self.refreshes))


def provider_prices(connection: sa.Connection, snapshot_id: str) -> tuple[ProviderPrices, ...]:
    """The prices of a snapshot by provider; immutable, so callers can cache them."""
    seq = sa.select(snapshots.c.seq).where(snapshots.c.id == snapshot_id).scalar_subquery()
    is_valid_at = [sa.and_(table.c.first_seq <= seq, table.c.last_seq >= seq) for table in (prices, readings)]
    asked = (
        sa.select(
            readings.c.provider,
            sa.func.count().label("offers"),
            sa.func.count(readings.c.stale_since).label("stale"),
            sa.func.min(readings.c.observed_at).label("oldest_at"),
            sa.func.max(readings.c.observed_at).label("newest_at"),
        )
        .join_from(prices, readings, sa.and_(prices.c.reading_id == readings.c.reading_id, *is_valid_at))
        .group_by(readings.c.provider)
        .order_by(readings.c.provider)
    )
    return tuple(ProviderPrices(**row._mapping) for row in connection.execute(asked))


def activity(connection: sa.Connection) -> Activity:
    """The current activity."""
    run_counts = sa.select(runs.c.kind, runs.c.status, sa.func.count()).group_by(runs.c.kind, runs.c.status)
    waits = sa.and_(notifications.c.delivered_at.is_(None), notifications.c.given_up_at.is_(None))
    last = sa.select(refreshes.c.outcome, refreshes.c.started_at, refreshes.c.finished_at)
    newest = last.order_by(refreshes.c.started_at.desc(), refreshes.c.id).limit(_LAST_REFRESHES)
    whole = sa.select(sa.func.max(refreshes.c.finished_at)).where(refreshes.c.outcome == "whole")

    def count(where: sa.ColumnElement[bool]) -> int:
        return connection.execute(sa.select(sa.func.count()).select_from(notifications).where(where)).scalar_one()

    return Activity(
        runs={(kind, status): number for kind, status, number in connection.execute(run_counts)},
        notifications_waiting=count(waits),
        notifications_given_up=count(notifications.c.given_up_at.is_not(None)),
        refreshes=tuple(RefreshEnd(**row._mapping) for row in connection.execute(newest)),
        last_whole_at=connection.execute(whole).scalar(),
    )


def database_bytes(connection: sa.Connection, url: sa.URL) -> int:
    """The size of the database: the file with its write-ahead log, or PostgreSQL's figure."""
    path = sqlite_file(url)
    if path is None:
        return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())
    return sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
