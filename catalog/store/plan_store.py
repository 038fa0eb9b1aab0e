"""Plans, reports on their runs, and idempotent responses in the store."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpuplan.catalog.store.access_store import Charge
from gpuplan.catalog.store.open_database import OpenDatabase
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer
from gpuplan.catalog.store.saved_answers import (
    SavedPlan,
    WrittenPlan,
    as_json,
    read_plan,
    read_recent_plans,
    read_response,
    write_plan,
    write_response,
)
from gpuplan.catalog.store.stored_actuals import (
    Actual,
    delete_actual,
    delete_actuals,
    read_actuals,
    read_ids,
    write_actual,
)
from gpuplan.catalog.store.stored_notes import PlanNote, noted_plans, read_note, write_note


class PlanStore(OpenDatabase):
    """Saved plans and their reports."""

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
        plan = WrittenPlan(
            id=plan_id,
            snapshot_id=snapshot_id,
            job=as_json(job),
            outcome=outcome if isinstance(outcome, str) else as_json(outcome),
            created_at=created_at,
        )
        with self._writing() as connection:
            write_plan(connection, plan, owners)
            if charge is not None:
                charge.write(connection)

    def plan(self, plan_id: str, viewer: Viewer = UNRESTRICTED) -> SavedPlan:
        """The saved plan. Raises `NotStored` at `plan` if the viewer cannot read one with this id."""
        with self._reading() as connection:
            return read_plan(connection, plan_id, viewer)

    def recent_plans(self, most: int, viewer: Viewer = UNRESTRICTED) -> tuple[SavedPlan, ...]:
        """The plans that the viewer may read, the newest first, at most so many."""
        with self._reading() as connection:
            return read_recent_plans(connection, most, viewer)

    def note(self, plan_id: str, identity: str) -> PlanNote | None:
        """The note of an identity on a plan, or None."""
        with self._reading() as connection:
            return read_note(connection, plan_id, identity)

    def noted_plans(self, identity: str) -> dict[str, str]:
        """The notes of an identity by plan, without empty ones."""
        with self._reading() as connection:
            return noted_plans(connection, identity)

    def save_note(self, note: PlanNote) -> bool:
        """Store a note as the version after the one that it builds on; False if another change came first."""
        with self._writing() as connection:
            return write_note(connection, note)

    def save_actual(self, actual: Actual) -> Actual:
        """Save a report on a run of a saved plan; returns the earlier report under the same id, if any."""
        with self._writing() as connection:
            return write_actual(connection, actual)

    def actuals(self, plan_id: str | None = None, viewer: Viewer = UNRESTRICTED) -> tuple[Actual, ...]:
        """The reports on plans that the viewer may read, or on one plan, oldest first."""
        with self._reading() as connection:
            return read_actuals(connection, plan_id, viewer)

    def actual_ids(self) -> tuple[str, ...]:
        """The ids of all reports, oldest first; a report never changes."""
        with self._reading() as connection:
            return read_ids(connection)

    def forget_actual(self, actual_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Delete one report. Raises `NotStored` at `actual` if the viewer owns no plan with such a report."""
        with self._writing() as connection:
            delete_actual(connection, actual_id, viewer)

    def forget_actuals(self, viewer: Viewer = UNRESTRICTED) -> int:
        """Delete all reports on the viewer's plans and return their number."""
        with self._writing() as connection:
            return delete_actuals(connection, viewer)

    def remember(self, key: str, scope: str, request_hash: str, response: object) -> object:
        """Store the response to a request with `key`, and return the one that counts.

        Of two concurrent responses to the same request, the first counts. Raises `UnusableInput` if the key belongs to
        another request.
        """
        with self._writing() as connection:
            write_response(connection, key, scope, request_hash, response)
            return read_response(connection, key, scope, request_hash)

    def recall(self, key: str, scope: str, request_hash: str) -> object | None:
        """The response to the same request with the same key within the last day, or None.

        Raises `UnusableInput` at Idempotency-Key if the key belongs to another request.
        """
        with self._reading() as connection:
            return read_response(connection, key, scope, request_hash)
