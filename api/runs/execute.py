"""Executing a run: all it needs stands in the store, so that any process can, given its id."""

import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from api.runs.failures import failure_of
from api.runs.pulse import Pulse
from catalog.errors import StoreFailure, UnusableInput
from catalog.money import usd_text
from catalog.runs import Run, Status

if TYPE_CHECKING:
    from api.app import Gpuplan
    from planner.portfolio.progress import Progress

Document = dict[str, Any]
log = logging.getLogger("gpuplan.runs")


def execute(gpuplan: "Gpuplan", pulse: Pulse) -> None:
    """Do what the pulse's run asks for and write how that ended; nothing but a broken store gets past this.

    One that is cancelled keeps the best that it found until then. One whose process ends is put back for another.
    """
    runs, run_id = gpuplan.store.runs, pulse.run_id
    status: Status = "cancelled"
    answer = error = None
    begun = pulse.attempt is not None  # whoever hands it out has taken it
    if not pulse.cancelled() and (begun or runs.begin(run_id, datetime.now(UTC))):
        try:
            run = runs.one(run_id, datetime.now(UTC))
            answer = KINDS[run.kind](gpuplan, run, pulse)
            status = "cancelled" if pulse.cancelled() else "done"
        except StoreFailure as failed:
            if pulse.attempt is not None:
                raise  # the queue tries again, when the store may be back
            log.exception("run %s failed", run_id)
            status, error = "failed", failure_of(failed, run_id)
        except UnusableInput as refused:
            log.warning("run %s cannot be planned: %s", run_id, refused)
            status, error = "failed", failure_of(refused, run_id)
        except Exception as failed:  # the edge of a thread: nobody else would hear of it
            log.exception("run %s failed", run_id)
            status, error = "failed", failure_of(failed, run_id)
    if status == "cancelled" and pulse.attempt is not None and pulse.to_put_back():
        runs.put_back(run_id, pulse.attempt, datetime.now(UTC))
        return
    if status == "cancelled" and pulse.reason:
        error = {"detail": pulse.reason}
    runs.end(
        run_id,
        status,
        datetime.now(UTC),
        progress=pulse.progress,
        answer=answer,
        error=error,
        attempt=pulse.attempt,
    )


def _portfolio(gpuplan: "Gpuplan", run: Run, pulse: Pulse) -> Document:
    """The request is `{document, snapshot, time_limit_s, iterations, seed}`; the portfolio begins when it was asked for."""

    def report(progress: "Progress") -> None:
        pulse.tell(progress_document(progress))

    asked = dict(run.request)
    return gpuplan.portfolio(
        asked.pop("document"), now=run.created_at, report=report, cancelled=pulse.cancelled, **asked
    )


def progress_document(progress: "Progress") -> Document:
    """Where a search stands, as JSON; before the first plan there is no cost and no gap."""
    planned = math.isfinite(progress.cost_usd)
    return {
        "seconds": round(progress.elapsed_s, 3),
        "cost_usd": usd_text(round(progress.cost_usd * 1e6)) if planned else None,
        "objective_usd": usd_text(round(progress.objective_usd * 1e6)) if planned else None,
        "bound_usd": usd_text(round(progress.bound_usd * 1e6)),
        "gap": float(f"{progress.gap:.6g}") if planned else None,
        "jobs_planned": progress.jobs_planned,
        "jobs_not_placed": progress.jobs - progress.jobs_planned if planned else None,
        "jobs_seen": progress.jobs_seen,
        "jobs": progress.jobs,
        "stage": progress.stage.value,
    }


KINDS: dict[str, Callable[["Gpuplan", Run, Pulse], Document]] = {"portfolio": _portfolio}
