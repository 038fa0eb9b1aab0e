"""Fetched parts of a refresh that several processes share, kept until the refresh is written as a whole.

Every function works in the open transaction. Those that modify parts first lock the row of the refresh's run, so that of
two processes that finish at the same time the second sees the parts of the first.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.run_store import LIVE, Run, read_run
from gpuplan.catalog.store.schema import refresh_parts, runs
from gpuplan.catalog.store.snapshot_list import NotStored

#: The region under which a provider's list of regions is stored.
LISTING = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One region of one provider, or its list of regions: its serialised rows, or the reason in `failure`."""

    provider: str
    region: str
    content: bytes | None = None
    failure: str = ""


def live_run(connection: sa.Connection, run_id: str) -> Run | None:
    """The run, with its row locked until the transaction ends; None if it has ended or is missing."""
    connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id).with_for_update())
    try:
        run = read_run(connection, run_id)
    except NotStored:
        return None
    return run if run.status in LIVE else None


def set_out(connection: sa.Connection, run_id: str, request: Mapping[str, Any], now: datetime) -> None:
    """Record that the refresh is running, and the parameters that its processes share."""
    values = {"status": "running", "started_at": now, "request": dict(request), "attempt": 1}
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(values))


def store_part(connection: sa.Connection, run_id: str, part: Part) -> None:
    """Store a part unless it exists."""
    row = {"refresh_id": run_id, "provider": part.provider, "region": part.region}
    insert_or_ignore(connection, refresh_parts, row | {"content": part.content, "failure": part.failure})


def note_progress(connection: sa.Connection, run_id: str, progress: Mapping[str, Any]) -> None:
    """Record the progress of the refresh."""
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(progress=dict(progress)))


def has_part(connection: sa.Connection, run_id: str, provider: str, region: str) -> bool:
    """Whether the part is stored."""
    of = refresh_parts.c
    where = sa.and_(of.refresh_id == run_id, of.provider == provider, of.region == region)
    return connection.execute(sa.select(of.region).where(where)).first() is not None


def fetched_regions(connection: sa.Connection, run_id: str) -> Counter[str]:
    """The number of stored regions per provider, including failed ones."""
    of = refresh_parts.c
    region_counts = sa.select(of.provider, sa.func.count()).where(of.refresh_id == run_id, of.region != LISTING)
    return Counter({row[0]: row[1] for row in connection.execute(region_counts.group_by(of.provider))})


def listings(connection: sa.Connection, run_id: str) -> dict[str, Part]:
    """The stored lists of regions, by provider."""
    return {part.provider: part for part in _parts(connection, run_id, refresh_parts.c.region == LISTING)}


def parts(connection: sa.Connection, run_id: str) -> list[Part]:
    """All stored parts of a refresh."""
    return _parts(connection, run_id, sa.true())


def forget_parts(connection: sa.Connection, run_id: str) -> None:
    """Delete the parts of a refresh."""
    connection.execute(sa.delete(refresh_parts).where(refresh_parts.c.refresh_id == run_id))


def shared_refresh(connection: sa.Connection, besides: str | None) -> Run | None:
    """A running shared refresh other than `besides`; None if there is none."""
    statement = sa.select(runs.c.id).where(
        runs.c.kind == "refresh", runs.c.attempt.is_not(None), runs.c.status.in_(LIVE), runs.c.id != (besides or "")
    )
    run_id = connection.execute(statement.limit(1)).scalar()
    return None if run_id is None else read_run(connection, run_id)


def _parts(connection: sa.Connection, run_id: str, where: sa.ColumnElement[bool]) -> list[Part]:
    of = refresh_parts.c
    asked = sa.select(of.provider, of.region, of.content, of.failure).where(of.refresh_id == run_id, where)
    return [Part(**row._mapping) for row in connection.execute(asked.order_by(of.provider, of.region))]
