"""Plans, their notes, reports on their runs, and responses to requests that clients may repeat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.access_store import Charge
from gpuplan.catalog.store.database import insert_or_ignore, row_of
from gpuplan.catalog.store.open_database import OpenDatabase
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, changeable, readable, write_owner
from gpuplan.catalog.store.schema import actuals, idempotency_keys, plan_notes, plans
from gpuplan.catalog.store.schema.column_types import JsonText
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import reads, writes


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
    insert_or_ignore(connection, actuals, actual)
    stored = connection.execute(sa.select(actuals).where(actuals.c.id == actual.id)).one()
    return Actual(**stored._mapping)


def read_actuals(
    connection: sa.Connection, plan_id: str | None = None, viewer: Viewer = UNRESTRICTED
) -> tuple[Actual, ...]:
    """The reports on plans that the viewer may read, or on one plan, oldest first."""
    asked = sa.select(actuals).order_by(actuals.c.reported_at, actuals.c.id)
    asked = asked.where(readable("plan", actuals.c.plan_id, viewer))
    if plan_id is not None:
        asked = asked.where(actuals.c.plan_id == plan_id)
    return tuple(Actual(**row._mapping) for row in connection.execute(asked))


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
    if note.version == 1:
        return insert_or_ignore(connection, plan_notes, note)
    table = plan_notes
    before = sa.and_(
        table.c.plan_id == note.plan_id, table.c.identity == note.identity, table.c.version == note.version - 1
    )
    return bool(connection.execute(sa.update(table).where(before).values(**row_of(plan_notes, note))).rowcount)


def noted_plans(connection: sa.Connection, identity: str) -> dict[str, str]:
    """The notes of this identity, by plan, without empty ones."""
    table = plan_notes
    mine = sa.select(table.c.plan_id, table.c.note).where(table.c.identity == identity, table.c.note != "")
    return {row.plan_id: row.note for row in connection.execute(mine)}


def forget_notes_of_missing(connection: sa.Connection) -> None:
    """Delete the notes on plans that are not stored any more."""
    connection.execute(sa.delete(plan_notes).where(plan_notes.c.plan_id.not_in(sa.select(plans.c.id))))


#: How long a response is stored for a repeated request; the duration that Stripe documents for its idempotency keys.
KEEP_RESPONSES = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A saved plan: the job and the outcome as JSON documents."""

    id: str
    snapshot_id: str
    job: dict[str, Any]
    outcome: dict[str, Any]
    created_at: datetime


def write_plan(connection: sa.Connection, plan: Mapping[str, Any], owners: Sequence[str | None]) -> None:
    """Save a plan; an existing one stays unchanged and gains the owner."""
    is_new = insert_or_ignore(connection, plans, plan)
    for owner in owners:
        write_owner(connection, "plan", plan["id"], owner, is_new=is_new)


def read_plan(connection: sa.Connection, plan_id: str, viewer: Viewer = UNRESTRICTED) -> SavedPlan:
    """The saved plan. Raises `NotStored` at `plan` if the viewer cannot read one with this id."""
    one = sa.select(plans).where(plans.c.id == plan_id, readable("plan", plans.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise NotStored.at("plan", message=f"no plan {plan_id[:80]!r} is stored here; accepted: the id of a saved plan")
    return SavedPlan(**row._mapping)


def read_recent_plans(connection: sa.Connection, most: int, viewer: Viewer = UNRESTRICTED) -> tuple[SavedPlan, ...]:
    """The plans that the viewer may read, the newest first, at most so many."""
    asked = sa.select(plans).where(readable("plan", plans.c.id, viewer))
    newest = asked.order_by(plans.c.created_at.desc(), plans.c.id).limit(most)
    return tuple(SavedPlan(**row._mapping) for row in connection.execute(newest))


def write_response(connection: sa.Connection, key: str, scope: str, request_hash: str, response: object) -> None:
    """Store a response unless the key has one, and delete expired ones."""
    now = datetime.now(UTC)
    connection.execute(sa.delete(idempotency_keys).where(idempotency_keys.c.created_at < now - KEEP_RESPONSES))
    row = {"scope": scope, "key": key, "request_hash": request_hash, "response": response, "created_at": now}
    insert_or_ignore(connection, idempotency_keys, row)


def read_response(connection: sa.Connection, key: str, scope: str, request_hash: str) -> object | None:
    """The response under the key within the last day, or None.

    Raises `UnusableInput` at Idempotency-Key if the key belongs to another request.
    """
    table = idempotency_keys
    same = sa.and_(table.c.scope == scope, table.c.key == key, table.c.created_at >= datetime.now(UTC) - KEEP_RESPONSES)
    row = connection.execute(sa.select(table.c.request_hash, table.c.response).where(same)).first()
    if row is None:
        return None
    if row.request_hash != request_hash:
        message = f"{key[:80]!r} was used for another request; accepted: a new key for each request"
        raise UnusableInput.at("Idempotency-Key", message=message)
    response: object = row.response
    return response


class PlanStore(OpenDatabase):
    """Saved plans and their reports."""

    plan = reads(read_plan)
    recent_plans = reads(read_recent_plans)
    note = reads(read_note)
    noted_plans = reads(noted_plans)
    save_note = writes(write_note)
    save_actual = writes(write_actual)
    actuals = reads(read_actuals)
    actual_ids = reads(read_ids)
    forget_actual = writes(delete_actual)
    forget_actuals = writes(delete_actuals)
    recall = reads(read_response)

    def save_plan(
        self,
        plan_id: str,
        snapshot_id: str,
        job: Mapping[str, Any],
        outcome: Mapping[str, Any] | str,
        created_at: datetime,
        *,
        charge: Charge | None = None,
        owners: Sequence[str | None] = (None,),
    ) -> None:
        """Save a plan unless it exists. Raises `ValueError` if it cannot be written as JSON.

        Adds `owners` as `gpuplan.catalog.store.ownership.write_owner` describes; None without keys. `outcome` may be the
        text that `as_json` made. `charge` is counted and recorded in the same transaction; it raises `QuotaExceeded`, and
        then nothing is saved.
        """
        row = {"id": plan_id, "snapshot_id": snapshot_id, "job": job, "created_at": created_at}
        row["outcome"] = JsonText(outcome) if isinstance(outcome, str) else outcome
        with self._writing() as connection:
            write_plan(connection, row, owners)
            if charge is not None:
                charge.write(connection)

    def remember(self, key: str, scope: str, request_hash: str, response: object) -> object:
        """Store the response to a request with `key`, and return the one that counts.

        Of two concurrent responses to the same request, the first counts. Raises `UnusableInput` if the key belongs to
        another request.
        """
        with self._writing() as connection:
            write_response(connection, key, scope, request_hash, response)
            return read_response(connection, key, scope, request_hash)
