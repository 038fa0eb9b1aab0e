"""Quotas of accounts in the store: the newest reading of each region, with its time."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.model.capacity_answers import NotLearned
from gpuplan.catalog.model.quota_facts import QuotaFact, QuotasRead
from gpuplan.catalog.store.schema import quota_readings


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """What a cloud stated about the quotas of one account in one region; `account` is a hash or a name."""

    account: str
    provider: str
    region: str
    read_at: datetime
    quotas: QuotasRead


def write_quotas(connection: sa.Connection, reading: QuotaReading) -> None:
    """Store the reading in place of the earlier one of the same account and region."""
    table = quota_readings
    connection.execute(sa.delete(table).where(_of(reading.account, reading.provider, reading.region)))
    row = {"account": reading.account, "provider": reading.provider, "region": reading.region}
    connection.execute(
        sa.insert(table), row | {"read_at": reading.read_at, "quotas": json.dumps(asdict(reading.quotas))}
    )


def read_quotas(connection: sa.Connection, account: str, provider: str, region: str) -> QuotaReading | None:
    """The newest reading of an account's quotas in a region; None if there is none."""
    row = connection.execute(sa.select(quota_readings).where(_of(account, provider, region))).one_or_none()
    if row is None:
        return None
    stored = json.loads(row.quotas)
    quotas = QuotasRead(
        quotas=tuple(QuotaFact(**fact) for fact in stored["quotas"]),
        not_learned=tuple(NotLearned(**reason) for reason in stored["not_learned"]),
    )
    return QuotaReading(account=account, provider=provider, region=region, read_at=row.read_at, quotas=quotas)


def _of(account: str, provider: str, region: str) -> sa.ColumnElement[bool]:
    table = quota_readings
    return sa.and_(table.c.account == account, table.c.provider == provider, table.c.region == region)
