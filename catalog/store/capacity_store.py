"""What clouds said about getting machines, to reuse and as observations, and about quotas: the newest reading of a region."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.model.capacity_answers import OWN_RUN, CapacityAnswer, NotLearned, QuotaFact, QuotasRead
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.schema import capacity_answers, quota_readings
from gpuplan.catalog.store.store_part import StorePart, reads, writes


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
    connection.execute(sa.insert(table), row | {"read_at": reading.read_at, "quotas": asdict(reading.quotas)})


def read_quotas(connection: sa.Connection, account: str, provider: str, region: str) -> QuotaReading | None:
    """The newest reading of an account's quotas in a region; None if there is none."""
    row = connection.execute(sa.select(quota_readings).where(_of(account, provider, region))).one_or_none()
    if row is None:
        return None
    quotas = QuotasRead(
        quotas=tuple(QuotaFact(**fact) for fact in row.quotas["quotas"]),
        not_learned=tuple(NotLearned(**reason) for reason in row.quotas["not_learned"]),
    )
    return QuotaReading(account=account, provider=provider, region=region, read_at=row.read_at, quotas=quotas)


def _of(account: str, provider: str, region: str) -> sa.ColumnElement[bool]:
    table = quota_readings
    return sa.and_(table.c.account == account, table.c.provider == provider, table.c.region == region)


def write_capacity(connection: sa.Connection, answers: Iterable[CapacityAnswer]) -> None:
    """Add the answers. One for the same place, machines and time that is stored already stays as it is."""
    for answer in answers:
        insert_or_ignore(connection, capacity_answers, answer)


def read_capacity(connection: sa.Connection, since: datetime, *, own_runs: bool = False) -> tuple[CapacityAnswer, ...]:
    """The answers of clouds asked for at or after `since`, or the tries of own runs since then; the oldest first."""
    table = capacity_answers
    asked = sa.select(table).where(table.c.asked_at >= since)
    asked = asked.where(table.c.source == OWN_RUN if own_runs else table.c.source != OWN_RUN)
    order = (table.c.asked_at, table.c.provider, table.c.region, table.c.zone, table.c.instance_type, table.c.nodes)
    return tuple(CapacityAnswer(**row._mapping) for row in connection.execute(asked.order_by(*order)))


class CapacityStore(StorePart):
    """What clouds said about getting machines, and about quotas."""

    write = writes(write_capacity)
    since = reads(read_capacity)
    write_quotas = writes(write_quotas)
    quotas = reads(read_quotas)
