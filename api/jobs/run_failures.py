"""The failure of a run as stored and shown: a problem document with pointers to the invalid fields."""

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import Fault, StoreFailure, UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored


def failure_of(error: Exception, run_id: str) -> JsonObject:
    """The error as stored; an unexpected error refers only to the log."""
    if isinstance(error, UnusableInput):
        errors = [{"path": list(fault.path), "detail": fault.message} for fault in error.faults]
        return {"status": 404 if isinstance(error, NotStored) else 422, "detail": str(error), "errors": errors}
    if isinstance(error, StoreFailure):
        return {"status": 503, "detail": str(error)}
    return {"status": 500, "detail": f"gpuplan failed; its log has the cause under {run_id}"}


def faults_of(document: JsonObject) -> tuple[Fault, ...]:
    """The invalid fields."""
    return tuple(Fault(tuple(error["path"]), error["detail"]) for error in document.get("errors", ()))
