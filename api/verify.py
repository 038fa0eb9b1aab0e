"""An answer held against the snapshot it names: read, looked up, verified."""

import time
from datetime import UTC, datetime
from typing import Any

from api.documents.plan import parse_answer
from api.questions.opened import Document, Opened
from api.version import gpuplan_version
from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.snapshot_list import NotStored
from planner.verify.claim import Claim


def verify_document(opened: Opened, document: Document, *, now: datetime | None = None) -> Document:
    """`{"outcome": "verified" | "not_verified", "verification": ..., "meta": ...}` for an answer of `plan`.

    Raises `UnusableInput` at the field for what is no such answer, and where its snapshot is not stored.
    """
    began = time.perf_counter()
    claim = parse_answer(document)
    columns = _columns(opened, claim)
    from planner.verify.document import document as as_document
    from planner.verify.verified import verified

    answer: dict[str, Any] = as_document(verified(claim, columns, owned=opened.owned))
    taken = round((time.perf_counter() - began) * 1e3, 3)
    checked_at = (now or datetime.now(UTC)).isoformat()
    return answer | {"meta": {"checked_at": checked_at, "milliseconds": taken, "version": gpuplan_version()}}


def _columns(opened: Opened, claim: Claim) -> Columns:
    """The columns of the snapshot that the claim names."""
    named = claim.body["snapshot_id"]
    try:
        return opened.columns(named)
    except NotStored:
        message = (
            f"snapshot {named[:40]} is not in {opened.store.name}: it was dropped, or never there; "
            "verify the plan on a database that has it, or plan the job again"
        )
        raise UnusableInput.at(claim.part, "snapshot_id", message=message) from None
