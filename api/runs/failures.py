"""Why a run failed, as it is kept and shown: a problem like those of a request, with pointers to the fields at fault."""

from typing import Any

from catalog.errors import Fault, StoreFailure, UnusableInput
from catalog.snapshot_list import NotStored

Document = dict[str, Any]


def failure_of(error: Exception, run_id: str) -> Document:
    """The error as it is kept; of one that nobody foresaw only where to read about it."""
    if isinstance(error, UnusableInput):
        errors = [{"path": list(fault.path), "detail": fault.message} for fault in error.faults]
        return {"status": 404 if isinstance(error, NotStored) else 422, "detail": str(error), "errors": errors}
    if isinstance(error, StoreFailure):
        return {"status": 503, "detail": str(error)}
    return {"status": 500, "detail": f"gpuplan failed; its log says why under {run_id}"}


def faults_of(kept: Document) -> tuple[Fault, ...]:
    """The fields at fault."""
    return tuple(Fault(tuple(each["path"]), each["detail"]) for each in kept.get("errors", ()))
