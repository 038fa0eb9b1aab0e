"""Refreshes of prices: run here or on the queue, and reported."""

import logging
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from gpuplan.api.schemas.refresh_answers import Refresh, Refreshes, RefreshReport, RefreshSummary, RefreshWithoutReport
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.security.authorization import viewer
from gpuplan.api.services.retention import RetentionService
from gpuplan.api.services.service_context import Document, ServiceContext, an_id
from gpuplan.api.services.watched_jobs import WatchService
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.ownership import UNRESTRICTED
from gpuplan.catalog.store.refresh_lock import RefreshRunning
from gpuplan.catalog.store.refresh_store import USUAL_LIST
from gpuplan.catalog.store.run_store import LIVE
from gpuplan.catalog.store.snapshot_list import NotStored

if TYPE_CHECKING:
    from gpuplan.api.jobs.queue.shared_refresh import SharedRefreshes
    from gpuplan.api.services.price_refresh import Began
    from gpuplan.providers.refresh.parallel_fetch import Progress

log = logging.getLogger("gpuplan.refresh")


class RefreshService:
    """Refreshes prices and reports on refreshes."""

    def __init__(self, context: ServiceContext, watches: WatchService, retention: RetentionService) -> None:
        """Refresh the store of `context`, then check `watches` and apply `retention`."""
        self._context, self._watches, self._retention = context, watches, retention

    def refresh(
        self, document: Document, *, began: "Began | None" = None, progress: "Progress | None" = None
    ) -> RefreshReport:
        """Fetch prices into a new snapshot, plan watched jobs on it, and report.

        Calls `began` with the refresh's id once it runs, and `progress` for each region. Raises `RefreshRunning` if
        another refresh is running on the same store.
        """
        from gpuplan.api.jobs.recorded_refresh import RecordedRefresh
        from gpuplan.api.schemas.refresh import parse_refresh
        from gpuplan.api.services.price_refresh import Watching, run_refresh

        wanted = parse_refresh(document)
        _ = self._context.channels  # refuses a settings file that cannot be read before the refresh begins
        with RecordedRefresh(self._context.store.runs, began=began, progress=progress) as recorded:
            answer = run_refresh(
                self._context.store,
                wanted,
                self._context.clouds,
                self._context.environment.sources(),
                retain=self._retention.retain,
                watching=Watching(began=recorded.began, progress=recorded.progress),
            )
            if self._context.prepares_prices:
                # Now, while no request waits, so that a reader of the finished report plans on the new prices at once.
                self._context.prepare_current()
            return self._with_watches(answer)

    def _with_watches(self, answer: RefreshReport) -> RefreshReport:
        """Check watched jobs on the new prices, and store the report of the refresh with the result."""
        from gpuplan.api.services.refresh_report import stored, with_watches

        try:
            answer = with_watches(answer, self._watches.check())
            self._context.store.rewrite_report(answer.id, stored(answer))
        except StoreFailure as error:
            unsaved = answer.watches is not None
            what = "the report does not keep its watches" if unsaved else "watches were not checked"
            answer = with_watches(answer, answer.watches, f"{what}: {error}")
        return answer

    @cached_property
    def shared(self) -> "SharedRefreshes":
        """Refreshes that the workers of the PostgreSQL queue share."""
        from gpuplan.api.jobs.queue.shared_refresh import SharedRefreshes

        return SharedRefreshes(
            self._context.store,
            self._context.clouds,
            self._context.environment.sources(),
            retain=self._retention.retain,
            tell=self._with_watches,
        )

    def begin_shared(self, document: Document) -> RefreshWithoutReport:
        """Queue a refresh. Raises `RefreshRunning` if another runs, `NoWorker` without a worker."""
        from gpuplan.api.schemas.refresh import parse_refresh

        wanted = parse_refresh(document)
        _ = self._context.channels  # refuses a settings file that cannot be read before the refresh begins
        return self.shared.begin(wanted)

    def end_dead(self) -> None:
        """Mark refreshes whose process was killed as failed. A process calls this when it starts.

        A live refresh holds a lock that ends with its process, so that it is not mistaken for a dead one.
        """
        try:
            if self._context.store.runs.has_live_refresh():
                with self._context.store.refreshing():
                    self._context.store.runs.give_up_refreshes(datetime.now(UTC), alone=True)
        except RefreshRunning:
            return
        except StoreFailure as error:
            log.warning("refreshes that were killed could not be ended: %s", error)

    def listed(self) -> Refreshes:
        """Summaries of the last refreshes, the newest first; also of those that left no report."""
        from gpuplan.api.jobs.recorded_refresh import failed_in_short

        if self._context.store.runs.has_live_refresh():
            self._context.store.runs.give_up_refreshes(datetime.now(UTC))
        summaries = [read_stored(RefreshSummary, refresh.report) for refresh in self._context.store.refreshes()]
        summaries += [
            failed_in_short(failed_refresh) for failed_refresh in self._context.store.runs.failed_refreshes(USUAL_LIST)
        ]
        newest_first = sorted(summaries, key=lambda summary: summary.started_at, reverse=True)
        return Refreshes(refreshes=tuple(newest_first[:USUAL_LIST]))

    def report(self, refresh_id: str) -> Refresh:
        """The report of one refresh, or its progress, whichever process runs it. Raises `NotStored` if there is none.

        Includes the watched jobs that the requester may read.
        """
        from gpuplan.api.services.refresh_report import for_watches

        whole = self._whole_report(refresh_id)
        reader = viewer()
        if reader == UNRESTRICTED or not isinstance(whole, RefreshReport):
            return whole
        return for_watches(whole, {watch.id for watch in self._context.store.watching.every(reader)})

    def _whole_report(self, refresh_id: str) -> Refresh:
        from gpuplan.api.jobs.recorded_refresh import under_way

        refresh_id = an_id(refresh_id, "refresh")
        try:
            run = self._context.store.runs.one(refresh_id, datetime.now(UTC))
        except NotStored:
            run = None
        if run is not None and run.kind == "refresh" and run.status in LIVE:
            return under_way(run)
        try:
            return read_stored(RefreshReport, self._context.store.refresh(refresh_id).report)
        except NotStored:
            if run is None or run.kind != "refresh":
                raise
            return under_way(run)
