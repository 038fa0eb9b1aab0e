"""What the processes that share a refresh have fetched so far: kept until it is written as a whole.

Every function works in the transaction that is open. Those that change what there is take the row of the refresh's run
first, so that of two processes that end at the same time the second sees what the first has kept.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.database import insert_or_keep
from catalog.runs import LIVE, Run, read_run
from catalog.saved import as_json
from catalog.schema import refresh_parts, runs
from catalog.snapshot_list import NotStored

#: The region under which a provider's list of regions is kept.
LISTING = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One region of one provider, or its list of regions: what it gave, packed, or why it gave nothing in `failure`."""

    provider: str
    region: str
    content: bytes | None = None
    failure: str = ""


def live_run(connection: sa.Connection, run_id: str) -> Run | None:
    """The run, whose row nobody else changes until the transaction ends; None if it has ended or is not there."""
    connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id).with_for_update())
    try:
        run = read_run(connection, run_id)
    except NotStored:
        return None
    return run if run.status in LIVE else None


def set_out(connection: sa.Connection, run_id: str, request: Mapping[str, Any], now: datetime) -> None:
    """Notes that the refresh is running, and what all who share it need to know."""
    values = {"status": "running", "started_at": now, "request": as_json(request), "attempt": 1}
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(values))


def keep_part(connection: sa.Connection, run_id: str, part: Part) -> None:
    """Keeps a part, unless it is there already."""
    row = {"refresh_id": run_id, "provider": part.provider, "region": part.region}
    insert_or_keep(connection, refresh_parts, row | {"content": part.content, "failure": part.failure})


def note_progress(connection: sa.Connection, run_id: str, progress: Mapping[str, Any]) -> None:
    """Notes how far the refresh is."""
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(progress=as_json(progress)))


def has_part(connection: sa.Connection, run_id: str, provider: str, region: str) -> bool:
    """Whether the part is kept."""
    of = refresh_parts.c
    where = sa.and_(of.refresh_id == run_id, of.provider == provider, of.region == region)
    return connection.execute(sa.select(of.region).where(where)).first() is not None


def regions_kept(connection: sa.Connection, run_id: str) -> Counter[str]:
    """How many regions of each provider are kept, those that failed among them."""
    of = refresh_parts.c
    counted = sa.select(of.provider, sa.func.count()).where(of.refresh_id == run_id, of.region != LISTING)
    return Counter({row[0]: row[1] for row in connection.execute(counted.group_by(of.provider))})


def listings(connection: sa.Connection, run_id: str) -> dict[str, Part]:
    """The lists of regions that are kept, by provider."""
    return {part.provider: part for part in _parts(connection, run_id, refresh_parts.c.region == LISTING)}


def parts(connection: sa.Connection, run_id: str) -> list[Part]:
    """Everything that is kept of a refresh."""
    return _parts(connection, run_id, sa.true())


def forget_parts(connection: sa.Connection, run_id: str) -> None:
    """Forgets what was kept of a refresh."""
    connection.execute(sa.delete(refresh_parts).where(refresh_parts.c.refresh_id == run_id))


def shared_refresh(connection: sa.Connection, besides: str | None) -> Run | None:
    """A refresh that several processes share and that has not ended, other than `besides`; None if there is none."""
    found = sa.select(runs.c.id).where(
        runs.c.kind == "refresh", runs.c.attempt.is_not(None), runs.c.status.in_(LIVE), runs.c.id != (besides or "")
    )
    run_id = connection.execute(found.limit(1)).scalar()
    return None if run_id is None else read_run(connection, run_id)


def _parts(connection: sa.Connection, run_id: str, where: sa.ColumnElement[bool]) -> list[Part]:
    of = refresh_parts.c
    asked = sa.select(of.provider, of.region, of.content, of.failure).where(of.refresh_id == run_id, where)
    return [Part(**row._mapping) for row in connection.execute(asked.order_by(of.provider, of.region))]
