"""Saved plans, and responses to requests that clients may repeat."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, readable, write_owner
from gpuplan.catalog.store.schema import idempotency_keys, plans
from gpuplan.catalog.store.snapshot_list import NotStored

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """A plan to be saved: `job` and `outcome` are JSON text from `as_json`."""

    id: str
    snapshot_id: str
    job: str
    outcome: str
    created_at: datetime


def write_plan(connection: sa.Connection, plan: WrittenPlan, owners: Sequence[str | None]) -> None:
    """Save a plan; an existing one stays unchanged and gains the owner."""
    is_new = insert_or_ignore(connection, plans, {name: getattr(plan, name) for name in WrittenPlan.__slots__})
    for owner in owners:
        write_owner(connection, "plan", plan.id, owner, is_new=is_new)


def read_plan(connection: sa.Connection, plan_id: str, viewer: Viewer = UNRESTRICTED) -> SavedPlan:
    """The saved plan. Raises `NotStored` at `plan` if the viewer cannot read one with this id."""
    one = sa.select(plans).where(plans.c.id == plan_id, readable("plan", plans.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise NotStored.at("plan", message=f"no plan {plan_id[:80]!r} is stored here; accepted: the id of a saved plan")
    return saved_row(row)


def saved_row(row: sa.Row[Any]) -> SavedPlan:
    """The plan of a row of its table."""
    return SavedPlan(
        id=row.id,
        snapshot_id=row.snapshot_id,
        job=json.loads(row.job),
        outcome=json.loads(row.outcome),
        created_at=row.created_at,
    )


def read_recent_plans(connection: sa.Connection, most: int, viewer: Viewer = UNRESTRICTED) -> tuple[SavedPlan, ...]:
    """The plans that the viewer may read, the newest first, at most so many."""
    asked = sa.select(plans).where(readable("plan", plans.c.id, viewer))
    newest = asked.order_by(plans.c.created_at.desc(), plans.c.id).limit(most)
    return tuple(map(saved_row, connection.execute(newest)))


def write_response(connection: sa.Connection, key: str, scope: str, request_hash: str, response: object) -> None:
    """Store a response unless the key has one, and delete expired ones."""
    now = datetime.now(UTC)
    connection.execute(sa.delete(idempotency_keys).where(idempotency_keys.c.created_at < now - KEEP_RESPONSES))
    row = {"scope": scope, "key": key, "request_hash": request_hash, "response": as_json(response), "created_at": now}
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
    response: object = json.loads(row.response)
    return response


def as_json(document: object) -> str:
    """The document as JSON text. Raises `ValueError` for NaN and infinity, `TypeError` for other unsupported values."""
    return _ENCODER.encode(document)


#: Without blanks, like responses: a stored plan has the bytes that its client received.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
