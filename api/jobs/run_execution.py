"""Execution of a run from the store alone, so that any process can execute it by its id."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.search_history import SearchHistory, SearchProgress
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import Fault, StoreFailure, UnusableInput
from gpuplan.catalog.store.run_store import Run, Status
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services
    from gpuplan.planner.portfolio.search_progress import Progress

log = logging.getLogger("gpuplan.runs")


def execute(gpuplan: "Services", heartbeat: Heartbeat) -> None:
    """Execute the run of this heartbeat and store its end. Raises only `StoreFailure`.

    A cancelled run stores the best plan found so far. A run whose process ends is put back for another process.
    """
    runs, run_id = gpuplan.store.runs, heartbeat.run_id
    status: Status = "cancelled"
    answer = error = None
    begun = heartbeat.attempt is not None  # the queue has already taken it
    if not heartbeat.cancelled() and (begun or runs.begin(run_id, datetime.now(UTC))):
        try:
            run = runs.one(run_id, datetime.now(UTC))
            answer = KINDS[run.kind](gpuplan, run, heartbeat)
            status = "cancelled" if heartbeat.cancelled() else "done"
        except StoreFailure as failed:
            if heartbeat.attempt is not None:
                raise  # the queue retries when the store may be available again
            log.exception("run %s failed", run_id)
            status, error = "failed", failure_of(failed, run_id)
        except UnusableInput as refused:
            log.warning("run %s cannot be planned: %s", run_id, refused)
            status, error = "failed", failure_of(refused, run_id)
        except Exception as failed:  # the boundary of a thread: otherwise the error would be lost
            log.exception("run %s failed", run_id)
            status, error = "failed", failure_of(failed, run_id)
    if status == "cancelled" and heartbeat.attempt is not None and heartbeat.to_put_back():
        runs.put_back(run_id, heartbeat.attempt, datetime.now(UTC))
        return
    if status == "cancelled" and heartbeat.reason:
        error = {"detail": heartbeat.reason}
    runs.end(
        run_id,
        status,
        datetime.now(UTC),
        progress=heartbeat.progress,
        answer=answer,
        error=error,
        attempt=heartbeat.attempt,
    )


def _portfolio(gpuplan: "Services", run: Run, heartbeat: Heartbeat) -> JsonObject:
    """The request is `{document, snapshot, time_limit_s, iterations, seed}`; the portfolio starts at the time of the request."""

    history = SearchHistory()

    def report(progress: "Progress") -> None:
        reported = reported_progress(progress)
        heartbeat.tell(wire(replace(reported, history=history.after(reported))))

    asked = dict(run.request)
    answer: JsonObject = wire(
        gpuplan.portfolios.plan(
            asked.pop("document"), now=run.created_at, report=report, cancelled=heartbeat.cancelled, **asked
        )
    )
    return answer


def reported_progress(progress: "Progress") -> SearchProgress:
    """The progress of a search as its run stores it, without history."""
    planned = math.isfinite(progress.cost_usd)
    return SearchProgress(
        seconds=round(progress.elapsed_s, 3),
        cost_usd=_usd(progress.cost_usd) if planned else None,
        objective_usd=_usd(progress.objective_usd) if planned else None,
        bound_usd=_usd(progress.bound_usd),
        gap=float(f"{progress.gap:.6g}") if planned else None,
        jobs_planned=progress.jobs_planned,
        jobs_not_placed=progress.jobs - progress.jobs_planned if planned else None,
        jobs_seen=progress.jobs_seen,
        jobs=progress.jobs,
        stage=progress.stage.value,
    )


def _usd(amount: float) -> Decimal:
    return Decimal(usd_text(round(amount * 1e6)))


KINDS: dict[str, Callable[["Services", Run, Heartbeat], JsonObject]] = {"portfolio": _portfolio}


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
