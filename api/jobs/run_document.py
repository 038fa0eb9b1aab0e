"""A run as the JSON object that every interface returns."""

from gpuplan.api.jobs.run_failures import faults_of
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.stored_runs import Run

#: The address of the answer of each kind of run.
ANSWERS_AT = {"portfolio": "/v1/portfolios/{}", "buy": "/v1/buy/{}", "refresh": "/v1/refreshes/{}"}


def shown(run: Run, progress: JsonObject | None = None) -> JsonObject:
    """The run as a document; `progress` replaces the stored one if the run belongs to this process."""
    ended = run.status in {"done", "failed", "cancelled"}
    has_answer = run.answer is not None or (run.kind == "refresh" and run.status == "done")
    return {
        "id": run.id,
        "kind": run.kind,
        "status": run.status,
        "created_at": run.created_at.isoformat(),
        "started_at": run.started_at and run.started_at.isoformat(),
        "finished_at": run.finished_at and run.finished_at.isoformat(),
        "cancel_asked": run.cancel_asked,
        "progress": run.progress if progress is None or ended else progress,
        "answer_at": ANSWERS_AT[run.kind].format(run.id) if has_answer else None,
        "answer": run.answer,
        "error": None if run.error is None else _error(run.error),
    }


def _error(document: JsonObject) -> JsonObject:
    errors = [{"pointer": fault.pointer, "detail": fault.message} for fault in faults_of(document)]
    return {"detail": document["detail"]} | ({"errors": errors} if errors else {})
