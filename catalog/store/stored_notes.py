"""Notes on plans: one for each plan and identity, whose changes build on the version that their author has seen."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.schema import plan_notes, plans


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNote:
    """The note of an identity on a plan; `version` counts its changes from 1."""

    plan_id: str
    identity: str
    note: str
    version: int
    changed_at: datetime


def read_note(connection: sa.Connection, plan_id: str, identity: str) -> PlanNote | None:
    """The note of this identity on this plan, or None."""
    table = plan_notes
    mine = sa.select(table).where(table.c.plan_id == plan_id, table.c.identity == identity)
    row = connection.execute(mine).first()
    return None if row is None else PlanNote(**row._mapping)


def write_note(connection: sa.Connection, note: PlanNote) -> bool:
    """Store a note as the version after the one that it builds on; False if another change came first."""
    row = {name: getattr(note, name) for name in PlanNote.__slots__}
    if note.version == 1:
        return insert_or_ignore(connection, plan_notes, row)
    table = plan_notes
    before = sa.and_(
        table.c.plan_id == note.plan_id, table.c.identity == note.identity, table.c.version == note.version - 1
    )
    return bool(connection.execute(sa.update(table).where(before).values(**row)).rowcount)


def noted_plans(connection: sa.Connection, identity: str) -> dict[str, str]:
    """The notes of this identity, by plan, without empty ones."""
    table = plan_notes
    mine = sa.select(table.c.plan_id, table.c.note).where(table.c.identity == identity, table.c.note != "")
    return {row.plan_id: row.note for row in connection.execute(mine)}


def forget_notes_of_missing(connection: sa.Connection) -> None:
    """Delete the notes on plans that are not stored any more."""
    connection.execute(sa.delete(plan_notes).where(plan_notes.c.plan_id.not_in(sa.select(plans.c.id))))
