"""A refresh as a run: any process that can read the store sees it begin, go on and end, whoever started it."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from api.runs.failures import failure_of
from api.runs.pulse import Pulse
from catalog.errors import StoreFailure
from catalog.refreshes import RefreshRecord
from catalog.run_store import RunStore
from catalog.runs import Run, Status

if TYPE_CHECKING:
    from providers.gather import Progress

Document = dict[str, Any]
log = logging.getLogger("gpuplan.runs")


class RecordedRefresh:
    """Keeps a refresh in the store as a run, inside `with`; passes on to whoever else is told."""

    def __init__(
        self, runs: RunStore, *, began: Callable[[Document], None] | None, progress: "Progress | None" = None
    ) -> None:
        """Nothing is kept until it has begun."""
        self._runs, self._tell_began, self._tell_progress = runs, began, progress
        self._pulse: Pulse | None = None

    def began(self, said: Document) -> None:
        """It runs from now on, as `said`. Raises `StoreFailure` if that cannot be kept."""
        at = datetime.fromisoformat(said["started_at"])
        run = Run(
            id=said["id"],
            kind="refresh",
            status="running",
            request={"asked": said["asked"]},
            created_at=at,
            started_at=at,
            beat_at=datetime.now(UTC),
        )
        self._runs.add(run)
        self._pulse = Pulse(self._runs, run.id)
        self._pulse.__enter__()
        if self._tell_began is not None:
            self._tell_began(said)

    def progress(self, provider: str, done: int, total: int | None) -> None:
        """So many regions of a cloud are done."""
        if self._pulse is not None:
            self._pulse.tell(self._pulse.progress | {provider: {"done": done, "total": total}})
        if self._tell_progress is not None:
            self._tell_progress(provider, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pulse = self._pulse
        if pulse is None:
            return
        pulse.__exit__(kind, error, traceback)
        status: Status = "done" if error is None else "failed"
        try:
            self._runs.end(
                pulse.run_id, status, datetime.now(UTC), progress=pulse.progress, error=_failure(error, pulse.run_id)
            )
        except StoreFailure as unwritten:
            # What came of the refresh stands in its report or goes to who waits for it; the run is given up in time.
            log.warning("refresh %s: its end could not be written: %s", pulse.run_id, unwritten)


def _failure(error: BaseException | None, run_id: str) -> Document | None:
    if error is None:
        return None
    return failure_of(error, run_id) if isinstance(error, Exception) else {"detail": "it was interrupted"}


def under_way(run: Run) -> Document:
    """A refresh without a report, as `/v1/refreshes` shows it: how far it is, or why it has failed."""
    said: Document = {
        "id": run.id,
        "status": "running" if run.status in {"queued", "running"} else "failed",
        "started_at": run.created_at.isoformat(),
        "asked": run.request["asked"],
        "progress": run.progress,
    }
    return said if run.error is None else said | {"error": run.error["detail"]}


def failed_in_short(run: Run) -> Document:
    """A refresh that failed without leaving a report, for listings: killed, or with no room to write what it read."""
    finished = run.finished_at or run.beat_at
    return {
        "id": run.id,
        "status": "failed",
        "outcome": "failed",
        "started_at": run.created_at.isoformat(),
        "finished_at": finished.isoformat(),
        "seconds": round((finished - run.created_at).total_seconds(), 1),
        "summary": f"refresh: failed; {(run.error or {}).get('detail', 'no reason given')}",
    }


def refreshed(record: RefreshRecord) -> Run:
    """A refresh of which only the report is left, as a run."""
    return Run(
        id=record.id,
        kind="refresh",
        status="done",
        request={"asked": record.report["asked"]},
        created_at=record.started_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        beat_at=record.finished_at,
    )
