"""Refresh records: one per run, including runs that wrote no snapshot."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import refreshes
from gpuplan.catalog.store.snapshot_list import NotStored

#: Default length of a listing: a quarter of a year of nights.
USUAL_LIST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """One run: `outcome` is whole, partial, refused or failed; `report` is the document that it printed.

    `snapshot_id` is the snapshot that it wrote, None if it wrote none. `started_at` is the time in its rows.
    """

    id: str
    started_at: datetime
    finished_at: datetime
    outcome: str
    snapshot_id: str | None
    report: dict[str, Any]


def write_refresh(connection: sa.Connection, record: RefreshRecord) -> None:
    """Add the record. Raises `ValueError` for a report that is not JSON."""
    connection.execute(
        sa.insert(refreshes),
        {
            "id": record.id,
            "started_at": record.started_at,
            "finished_at": record.finished_at,
            "outcome": record.outcome,
            "snapshot_id": record.snapshot_id,
            "report": as_json(record.report),
        },
    )


def read_refreshes(connection: sa.Connection, limit: int = USUAL_LIST) -> tuple[RefreshRecord, ...]:
    """The last `limit` records, newest first."""
    newest_first = sa.select(refreshes).order_by(refreshes.c.started_at.desc(), refreshes.c.id).limit(limit)
    return tuple(_record(row) for row in connection.execute(newest_first))


def read_refresh(connection: sa.Connection, refresh_id: str) -> RefreshRecord:
    """The record with this id. Raises `NotStored` at `refresh` if there is none."""
    row = connection.execute(sa.select(refreshes).where(refreshes.c.id == refresh_id)).first()
    if row is None:
        message = f"no refresh {refresh_id[:80]!r} is stored here; accepted: the id of a refresh"
        raise NotStored.at("refresh", message=message)
    return _record(row)


def last_whole(connection: sa.Connection) -> datetime | None:
    """The end of the last complete refresh, None if there was none."""
    whole = sa.select(sa.func.max(refreshes.c.finished_at)).where(refreshes.c.outcome == "whole")
    finished_at: datetime | None = connection.execute(whole).scalar()
    return finished_at


def refresh_times(connection: sa.Connection) -> frozenset[datetime]:
    """The observation times that refreshes gave to their rows."""
    return frozenset(connection.execute(sa.select(refreshes.c.started_at)).scalars())


def rewrite_report(connection: sa.Connection, refresh_id: str, report: dict[str, Any]) -> None:
    """Replace the report of a refresh. Raises `ValueError` for a report that is not JSON."""
    which = sa.update(refreshes).where(refreshes.c.id == refresh_id)
    connection.execute(which.values(report=as_json(report)))


def _record(row: sa.Row[Any]) -> RefreshRecord:
    return RefreshRecord(**{**row._mapping, "report": json.loads(row.report)})
