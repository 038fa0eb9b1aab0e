"""A refresh as a run: any process that can read the store sees its start, progress and end."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import failure_of
from gpuplan.api.schemas.refresh_answers import Progress, RefreshSummary, RefreshWithoutReport
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.refresh_store import RefreshRecord
from gpuplan.catalog.store.run_store import Run, RunStore, Status

if TYPE_CHECKING:
    from gpuplan.providers.refresh.parallel_fetch import Progress as TellProgress

log = logging.getLogger("gpuplan.runs")


class RecordedRefresh:
    """Records a refresh in the store as a run, as a context manager; forwards progress to another observer."""

    def __init__(
        self,
        runs: RunStore,
        *,
        began: Callable[[RefreshWithoutReport], None] | None,
        progress: "TellProgress | None" = None,
    ) -> None:
        """Stores nothing before `began`."""
        self._runs, self._tell_began, self._tell_progress = runs, began, progress
        self._pulse: Heartbeat | None = None

    def began(self, begun: RefreshWithoutReport) -> None:
        """Record the start of the refresh. Raises `StoreFailure` if it cannot be stored."""
        run = Run(
            id=begun.id,
            kind="refresh",
            status="running",
            request={"asked": list(begun.asked)},
            created_at=begun.started_at,
            started_at=begun.started_at,
            beat_at=datetime.now(UTC),
        )
        self._runs.add(run)
        self._pulse = Heartbeat(self._runs, run.id)
        self._pulse.__enter__()
        if self._tell_began is not None:
            self._tell_began(begun)

    def progress(self, provider: str, done: int, total: int | None) -> None:
        """Store how many regions of a cloud are done."""
        if self._pulse is not None:
            self._pulse.tell(self._pulse.progress | {provider: {"done": done, "total": total}})
        if self._tell_progress is not None:
            self._tell_progress(provider, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        heartbeat = self._pulse
        if heartbeat is None:
            return
        heartbeat.__exit__(kind, error, traceback)
        status: Status = "done" if error is None else "failed"
        try:
            self._runs.end(
                heartbeat.run_id,
                status,
                datetime.now(UTC),
                progress=heartbeat.progress,
                error=_failure(error, heartbeat.run_id),
            )
        except StoreFailure as unwritten:
            # The result is in the report or goes to the waiting caller; a run without an end is abandoned later.
            log.warning("refresh %s: its end could not be written: %s", heartbeat.run_id, unwritten)


def _failure(error: BaseException | None, run_id: str) -> JsonObject | None:
    if error is None:
        return None
    return failure_of(error, run_id) if isinstance(error, Exception) else {"detail": "it was interrupted"}


def under_way(run: Run) -> RefreshWithoutReport:
    """A refresh without a report: its progress, or the reason of its failure."""
    return RefreshWithoutReport(
        id=run.id,
        status="running" if run.status in {"queued", "running"} else "failed",
        started_at=run.created_at,
        asked=tuple(run.request["asked"]),
        progress={name: Progress(**regions) for name, regions in run.progress.items()},
        error=None if run.error is None else run.error["detail"],
    )


def failed_in_short(run: Run) -> RefreshSummary:
    """A refresh that failed without a report, for listings: killed, or without room to write its rows."""
    finished = run.finished_at or run.beat_at
    return RefreshSummary(
        id=run.id,
        status="failed",
        outcome="failed",
        started_at=run.created_at,
        finished_at=finished,
        seconds=round((finished - run.created_at).total_seconds(), 1),
        summary=f"refresh: failed; {(run.error or {}).get('detail', 'no reason given')}",
    )


def refreshed(record: RefreshRecord) -> Run:
    """A run made from the report of a refresh whose run is deleted."""
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
