"""A stored run as the answer that every interface returns."""

from typing import cast

from gpuplan.api.jobs.run_execution import faults_of
from gpuplan.api.schemas.problem import FieldProblem
from gpuplan.api.schemas.run import Run, RunError, RunKind
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.store.run_store import Run as StoredRun

#: The address of the answer of each kind of run.
ANSWERS_AT = {"portfolio": "/v1/portfolios/{}", "buy": "/v1/buy/{}", "refresh": "/v1/refreshes/{}"}


def shown(run: StoredRun, progress: JsonObject | None = None) -> Run:
    """The run; `progress` replaces the stored one if the run belongs to this process."""
    ended = run.status in {"done", "failed", "cancelled"}
    has_answer = run.answer is not None or (run.kind == "refresh" and run.status == "done")
    return Run(
        id=run.id,
        kind=cast("RunKind", run.kind),
        status=run.status,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        cancel_asked=run.cancel_asked,
        progress=run.progress if progress is None or ended else progress,
        answer_at=ANSWERS_AT[run.kind].format(run.id) if has_answer else None,
        answer=run.answer,
        error=None if run.error is None else _error(run.error),
    )


def _error(document: JsonObject) -> RunError:
    errors = tuple(FieldProblem(pointer=fault.pointer, detail=fault.message) for fault in faults_of(document))
    return RunError(detail=document["detail"], errors=errors or None)
