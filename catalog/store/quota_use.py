"""Plans per identity and day (UTC), counted across all processes."""

from datetime import date, datetime

import sqlalchemy as sa

from gpuplan.catalog.store.database import upsert
from gpuplan.catalog.store.schema import quota_use


class QuotaExceeded(Exception):
    """The identity has reached its daily number of plans; nothing is written."""

    def __init__(self, limit: int) -> None:
        """Stores the allowed number."""
        super().__init__(f"{limit} plans a day")
        self.limit = limit


def used(connection: sa.Connection, identity: str, day: date) -> int:
    """The number of plans of the identity on this day."""
    row = sa.select(quota_use.c.plans).where(quota_use.c.identity == identity, quota_use.c.day == day.isoformat())
    return connection.execute(row).scalar() or 0


def count_one(connection: sa.Connection, identity: str, now: datetime, limit: int | None) -> int:
    """Count one more plan in the open transaction and return today's total.

    Raises `QuotaExceeded` if it exceeds `limit`, which rolls the transaction back.
    """
    row = {"identity": identity, "day": now.date().isoformat(), "plans": 1}
    total = upsert(connection, quota_use, row, add="plans")
    if limit is not None and total > limit:
        raise QuotaExceeded(limit)
    return total
