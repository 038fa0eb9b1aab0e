"""Verification of an answer of `plan` against the snapshot that it names."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.audited import PlannerService
from gpuplan.api.services.service_context import Document, ServiceContext
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.verification import VerificationAnswer, VerificationMeta

if TYPE_CHECKING:
    from gpuplan.planner.verify.submitted_plan import SubmittedPlan


class VerificationService(PlannerService):
    """Verifies submitted plans."""

    def verify(self, document: Document, *, now: datetime | None = None) -> VerificationAnswer:
        """Check an answer of `plan`.

        Raises `UnusableInput` at the field for a document that is no such answer, and if its snapshot is not stored.
        """
        with self._audited.question("verify") as entry:
            answer: VerificationAnswer = self._planner.call(answer_verify, document, now=now)
            body = document.get("plan") or document.get("infeasible") or {}
            entry.outcome, entry.subject = answer.outcome, str(body.get("id", ""))
        return answer

    def check(self, document: Document) -> None:
        """Raises `UnusableInput` for a document that `verify` refuses to read; works out nothing."""
        from gpuplan.api.schemas.saved_answer import parse_answer

        with self._audited.refusals("verify"):
            parse_answer(document)


def answer_verify(context: ServiceContext, document: Document, *, now: datetime | None) -> VerificationAnswer:
    """Work out the answer of `VerificationService.verify`; write nothing."""
    from gpuplan.api.schemas.saved_answer import parse_answer

    began = time.perf_counter()
    submitted_plan = parse_answer(document)
    columns = _columns(context, submitted_plan)
    from gpuplan.planner.verify.verification import verified

    verification = verified(submitted_plan, columns, owned=context.owned)
    taken = round((time.perf_counter() - began) * 1e3, 3)
    return VerificationAnswer(
        outcome="not_verified" if verification.wrong_count else "verified",
        verification=verification,
        meta=VerificationMeta(checked_at=now or datetime.now(UTC), milliseconds=taken, version=gpuplan_version()),
    )


def _columns(context: ServiceContext, submitted_plan: "SubmittedPlan") -> Columns:
    """The columns of the snapshot that the submitted plan names."""
    snapshot_id = submitted_plan.body["snapshot_id"]
    try:
        return context.columns(snapshot_id)
    except NotStored:
        message = (
            f"snapshot {snapshot_id[:40]} is not in {context.store.name}: it was dropped, or never there; "
            "verify the plan on a database that has it, or plan the job again"
        )
        raise UnusableInput.at(submitted_plan.part, "snapshot_id", message=message) from None
