"""Capacity answers in the store: recent ones to reuse, all of them as observations."""

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.model.capacity_answers import OWN_RUN, CapacityAnswer
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.schema import capacity_answers


def write_capacity(connection: sa.Connection, answers: Iterable[CapacityAnswer]) -> None:
    """Add the answers. One for the same place, machines and time that is stored already stays as it is."""
    for answer in answers:
        insert_or_ignore(
            connection,
            capacity_answers,
            {name: getattr(answer, name) for name in capacity_answers.c.keys()},  # noqa: SIM118
        )


def read_capacity(connection: sa.Connection, since: datetime, *, own_runs: bool = False) -> tuple[CapacityAnswer, ...]:
    """The answers of clouds asked for at or after `since`, or the tries of own runs since then; the oldest first."""
    table = capacity_answers
    asked = sa.select(table).where(table.c.asked_at >= since)
    asked = asked.where(table.c.source == OWN_RUN if own_runs else table.c.source != OWN_RUN)
    order = (table.c.asked_at, table.c.provider, table.c.region, table.c.zone, table.c.instance_type, table.c.nodes)
    return tuple(CapacityAnswer(**row._mapping) for row in connection.execute(asked.order_by(*order)))
