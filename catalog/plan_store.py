"""The part of the store that keeps what a service gave out: plans, reports on them, answers that may be asked for again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from catalog.access_store import Charge
from catalog.actuals import Actual, delete_actual, delete_actuals, read_actuals, read_ids, write_actual
from catalog.open_database import OpenDatabase
from catalog.ownership import UNRESTRICTED, Viewer
from catalog.saved import SavedPlan, WrittenPlan, as_json, read_plan, read_response, write_plan, write_response


class PlanStore(OpenDatabase):
    """Plans that were given out, and what became of them."""

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
        """Saves a plan; one that is there already stays as it is. Raises `ValueError` for what is not JSON.

        It belongs to its `owners` from now on, as `catalog.ownership.write_owner` says; None where no keys are in force.
        `outcome` may be the text that `as_json` made of it. `charge` is counted and recorded in the same transaction;
        it raises `QuotaExceeded`, and then nothing is saved.
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
        """The saved plan. Raises `NotStored` at `plan` if there is none that the viewer may read."""
        with self._reading() as connection:
            return read_plan(connection, plan_id, viewer)

    def save_actual(self, actual: Actual) -> Actual:
        """Keeps a report on a run of a saved plan, and gives the one kept before under the same id, if any."""
        with self._writing() as connection:
            return write_actual(connection, actual)

    def actuals(self, plan_id: str | None = None, viewer: Viewer = UNRESTRICTED) -> tuple[Actual, ...]:
        """Every report, or those on one plan, the oldest first; of plans that the viewer may read."""
        with self._reading() as connection:
            return read_actuals(connection, plan_id, viewer)

    def actual_ids(self) -> tuple[str, ...]:
        """The ids of all reports, the oldest first; a report under an id never changes."""
        with self._reading() as connection:
            return read_ids(connection)

    def forget_actual(self, actual_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Forgets one report. Raises `NotStored` at `actual` if there is none on a plan that is the viewer's."""
        with self._writing() as connection:
            delete_actual(connection, actual_id, viewer)

    def forget_actuals(self, viewer: Viewer = UNRESTRICTED) -> int:
        """Forgets every report on plans that are the viewer's, and says how many there were."""
        with self._writing() as connection:
            return delete_actuals(connection, viewer)

    def remember(self, key: str, scope: str, request_hash: str, response: object) -> object:
        """Keeps the response to a request that carries `key`, and returns the one that counts.

        That is the first, if the same request was answered twice at once. Raises `UnusableInput`
        if the key stands for another request.
        """
        with self._writing() as connection:
            write_response(connection, key, scope, request_hash, response)
            return read_response(connection, key, scope, request_hash)

    def recall(self, key: str, scope: str, request_hash: str) -> object | None:
        """The response to the same request with the same key within the last day, or None.

        Raises `UnusableInput` at Idempotency-Key if the key stands for another request.
        """
        with self._reading() as connection:
            return read_response(connection, key, scope, request_hash)
