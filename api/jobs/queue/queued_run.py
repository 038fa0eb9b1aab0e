"""A run from the queue, executed by any worker."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import execute

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

#: After so many dead workers the run itself is the likely cause.
MOST_ATTEMPTS = 5


def execute_queued(gpuplan: "Services", run_id: str, *, interrupted: Callable[[], bool]) -> bool:
    """Execute the run unless it has ended; False if it was put back because this process ends.

    Raises `StoreFailure` if the store cannot be used; the run is then unchanged and is retried.
    """
    runs = gpuplan.store.runs
    attempt = runs.take(run_id, datetime.now(UTC))
    if attempt is None:
        return True
    if attempt > MOST_ATTEMPTS:
        error = {
            "status": 500,
            "detail": f"its worker died {MOST_ATTEMPTS} times; it may need more memory than the machine has",
        }
        runs.end(run_id, "failed", datetime.now(UTC), progress=None, error=error, attempt=attempt)
        return True
    with Heartbeat(runs, run_id, attempt=attempt, interrupted=interrupted) as heartbeat:
        if runs.one(run_id, datetime.now(UTC)).cancel_asked:
            heartbeat.cancel()
        execute(gpuplan, heartbeat)
        return not heartbeat.to_put_back()
