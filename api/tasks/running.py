"""A run that the queue hands out, by whichever worker takes it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from api.runs.execute import execute
from api.runs.pulse import Pulse

if TYPE_CHECKING:
    from api.app import Gpuplan

#: A run whose worker died so often is likelier to be what kills it than to be unlucky.
MOST_ATTEMPTS = 5


def execute_queued(gpuplan: "Gpuplan", run_id: str, *, interrupted: Callable[[], bool]) -> bool:
    """Take the run and do it; False if it was put back since this process ends. Nothing to do for one that has ended.

    Raises `StoreFailure` if the store cannot be used; then the run is as it was, and is tried again.
    """
    runs = gpuplan.store.runs
    attempt = runs.take(run_id, datetime.now(UTC))
    if attempt is None:
        return True
    if attempt > MOST_ATTEMPTS:
        error = {
            "status": 500,
            "detail": f"its worker died {MOST_ATTEMPTS} times; it may need more memory than there is",
        }
        runs.end(run_id, "failed", datetime.now(UTC), progress=None, error=error, attempt=attempt)
        return True
    with Pulse(runs, run_id, attempt=attempt, interrupted=interrupted) as pulse:
        if runs.one(run_id, datetime.now(UTC)).cancel_asked:
            pulse.cancel()
        execute(gpuplan, pulse)
        return not pulse.to_put_back()
