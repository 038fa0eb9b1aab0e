"""How many plans an identity was given on a day (UTC), counted where every process sees it."""

from datetime import date, datetime

import sqlalchemy as sa

from catalog.database import upsert
from catalog.schema import quota_use


class QuotaExceeded(Exception):
    """The identity had as many plans on this day as it may have; whatever was to be written is not."""

    def __init__(self, limit: int) -> None:
        """With the number that it may have."""
        super().__init__(f"{limit} plans a day")
        self.limit = limit


def used(connection: sa.Connection, identity: str, day: date) -> int:
    """How many plans the identity had on this day."""
    row = sa.select(quota_use.c.plans).where(quota_use.c.identity == identity, quota_use.c.day == day.isoformat())
    return connection.execute(row).scalar() or 0


def count_one(connection: sa.Connection, identity: str, now: datetime, limit: int | None) -> int:
    """Counts one more in the transaction that is open, and gives how many that makes today.

    Raises `QuotaExceeded` where that is more than `limit`, which rolls the transaction back.
    """
    row = {"identity": identity, "day": now.date().isoformat(), "plans": 1}
    counted = upsert(connection, quota_use, row, add="plans")
    if limit is not None and counted > limit:
        raise QuotaExceeded(limit)
    return counted
