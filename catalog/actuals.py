"""What runs of saved plans measured: reported once each, kept with what the plan had said, forgotten on request."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.database import insert_or_keep
from catalog.ownership import UNRESTRICTED, Viewer, changeable, readable
from catalog.prepared import straight
from catalog.saved import as_json
from catalog.schema import actuals
from catalog.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class Actual:
    """One report on one run of a plan; None is what was not measured.

    `hours` are wall hours from start to now or to the end, `throughput` is in the units per second of the plan,
    `peak_memory_gib` of the fullest accelerator, `share_done` the part of the job's work behind these figures
    (1.0 when finished). `expected` is the plan's own prediction as a JSON object, `task` the class of its work.
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
    """Keeps a report, and gives the one that counts: that with the same id, if it was there already."""
    row = {name: getattr(actual, name) for name in actuals.c.keys()} | {"expected": as_json(actual.expected)}  # noqa: SIM118
    insert_or_keep(connection, actuals, row)
    kept = connection.execute(sa.select(actuals).where(actuals.c.id == actual.id)).one()
    return _actual(kept)


def read_actuals(
    connection: sa.Connection, plan_id: str | None = None, viewer: Viewer = UNRESTRICTED
) -> tuple[Actual, ...]:
    """Every report, or those on one plan, the oldest first; of plans that the viewer may read."""
    asked = sa.select(actuals).order_by(actuals.c.reported_at, actuals.c.id)
    asked = asked.where(readable("plan", actuals.c.plan_id, viewer))
    if plan_id is not None:
        asked = asked.where(actuals.c.plan_id == plan_id)
    return tuple(_actual(row) for row in connection.execute(asked))


#: Asked before every plan, so it stands as text.
_IDS = "SELECT id FROM actuals ORDER BY reported_at, id"


def read_ids(connection: sa.Connection) -> tuple[str, ...]:
    """The ids of all reports, the oldest first: who has read these reports before need not read them again."""
    return tuple(each for (each,) in straight(connection, _IDS).fetchall())


def delete_actual(connection: sa.Connection, actual_id: str, viewer: Viewer = UNRESTRICTED) -> None:
    """Forgets one report. Raises `NotStored` at `actual` if there is none with this id on a plan that is the viewer's."""
    mine = changeable("plan", actuals.c.plan_id, viewer)
    gone = connection.execute(sa.delete(actuals).where(actuals.c.id == actual_id, mine)).rowcount
    if not gone:
        message = f"no report {actual_id[:80]!r} is stored here; accepted: the id of a report"
        raise NotStored.at("actual", message=message)


def delete_actuals(connection: sa.Connection, viewer: Viewer = UNRESTRICTED) -> int:
    """Forgets every report on plans that are the viewer's, and says how many there were."""
    mine = changeable("plan", actuals.c.plan_id, viewer)
    return int(connection.execute(sa.delete(actuals).where(mine)).rowcount)


def _actual(row: sa.Row[Any]) -> Actual:
    values = dict(row._mapping)
    return Actual(**values | {"expected": json.loads(values["expected"])})
