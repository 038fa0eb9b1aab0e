"""Measured results of saved plans: reported once per run, stored with the plan's prediction, deleted on request."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, changeable, readable
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import actuals
from gpuplan.catalog.store.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class Actual:
    """One report on one run of a plan; None means not measured.

    `hours` are elapsed hours from start to now or to the end, `throughput` is in the plan's units per second,
    `peak_memory_gib` is that of the fullest accelerator, `share_done` is the part of the job's work that these figures
    cover (1.0 when finished). `expected` is the plan's prediction as a JSON object, `task` the class of its work.
    """

    id: str
    plan_id: str
    task: str
    accelerator: str
    reported_at: datetime
    reported_by: str
    running: bool
    share_done: float
    hours: float | None
    throughput: float | None
    peak_memory_gib: float | None
    preemptions: int | None
    expected: dict[str, Any]


def write_actual(connection: sa.Connection, actual: Actual) -> Actual:
    """Store a report and return the one that counts: an existing one with the same id takes precedence."""
    row = {name: getattr(actual, name) for name in actuals.c.keys()} | {"expected": as_json(actual.expected)}  # noqa: SIM118
    insert_or_ignore(connection, actuals, row)
    stored = connection.execute(sa.select(actuals).where(actuals.c.id == actual.id)).one()
    return actual_row(stored)


def read_actuals(
    connection: sa.Connection, plan_id: str | None = None, viewer: Viewer = UNRESTRICTED
) -> tuple[Actual, ...]:
    """The reports on plans that the viewer may read, or on one plan, oldest first."""
    asked = sa.select(actuals).order_by(actuals.c.reported_at, actuals.c.id)
    asked = asked.where(readable("plan", actuals.c.plan_id, viewer))
    if plan_id is not None:
        asked = asked.where(actuals.c.plan_id == plan_id)
    return tuple(actual_row(row) for row in connection.execute(asked))


#: Runs before every plan, so it is plain text.
_IDS = "SELECT id FROM actuals ORDER BY reported_at, id"


def read_ids(connection: sa.Connection) -> tuple[str, ...]:
    """The ids of all reports, oldest first: callers that have read these reports need not read them again."""
    return tuple(actual_id for (actual_id,) in connection.exec_driver_sql(_IDS))


def delete_actual(connection: sa.Connection, actual_id: str, viewer: Viewer = UNRESTRICTED) -> None:
    """Delete one report. Raises `NotStored` at `actual` if the viewer owns no plan with this report."""
    mine = changeable("plan", actuals.c.plan_id, viewer)
    gone = connection.execute(sa.delete(actuals).where(actuals.c.id == actual_id, mine)).rowcount
    if not gone:
        message = f"no report {actual_id[:80]!r} is stored here; accepted: the id of a report"
        raise NotStored.at("actual", message=message)


def delete_actuals(connection: sa.Connection, viewer: Viewer = UNRESTRICTED) -> int:
    """Delete all reports on the viewer's plans and return their number."""
    mine = changeable("plan", actuals.c.plan_id, viewer)
    return int(connection.execute(sa.delete(actuals).where(mine)).rowcount)


def actual_row(row: sa.Row[Any]) -> Actual:
    """The report of a row of its table."""
    values = dict(row._mapping)
    return Actual(**values | {"expected": json.loads(values["expected"])})
