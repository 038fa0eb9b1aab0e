"""What keeps the store fresh and small: refreshes, retention, and whether the service is ready."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from api.identity.asking import viewer
from api.questions.opened import Document, an_id, days_between
from api.questions.watches import Watches
from api.settings import settings_file
from catalog.errors import StoreFailure
from catalog.ownership import UNRESTRICTED
from catalog.refresh_lock import RefreshRunning
from catalog.refreshes import USUAL_LIST
from catalog.runs import LIVE
from catalog.snapshot_list import NotStored

if TYPE_CHECKING:
    from api.tasks.refreshing import SharedRefreshes
    from providers.gather import Progress

log = logging.getLogger("gpuplan.refresh")


class Upkeep(Watches):
    """Questions about the store itself, and what is done to it."""

    def refresh(
        self, document: Document, *, began: Callable[[Document], None] | None = None, progress: "Progress | None" = None
    ) -> Document:
        """Pull live prices into a new snapshot, plan watched jobs on it, and say what came of it.

        `began` is told the refresh's id once it runs, `progress` each region. Raises `RefreshRunning` if another is
        running on the same store.
        """
        from api.documents.refresh import parse_refresh
        from api.refresh import Watching, run_refresh
        from api.runs.refreshes import RecordedRefresh
        from providers.clouds import installed_clouds

        wanted = parse_refresh(document)
        _ = self.channels  # a settings file that cannot be read is said before anything is asked
        with RecordedRefresh(self.store.runs, began=began, progress=progress) as recorded:
            answer = run_refresh(
                self.store,
                wanted,
                installed_clouds() if self._clouds is None else self._clouds,
                self._environment.sources(),
                retain=self.retain,
                watching=Watching(began=recorded.began, progress=recorded.progress),
            )
            if self._current.started:
                # Here, where nobody waits: whoever reads that the refresh is done plans on its prices.
                self.prepare_current()
            return self._with_watches(answer)

    def _with_watches(self, answer: Document) -> Document:
        """The report of a refresh with what became of watched jobs on its prices, kept so."""
        from api.refresh_report import stored, with_watches

        try:
            answer = with_watches(answer, self.check_watches())
            self.store.rewrite_report(answer["id"], stored(answer))
        except StoreFailure as error:
            unkept = answer["watches"] is not None
            what = "the report does not keep its watches" if unkept else "watches were not checked"
            answer = with_watches(answer, answer["watches"], f"{what}: {error}")
        return answer

    @cached_property
    def shared_refreshes(self) -> "SharedRefreshes":
        """Refreshes that the queue's workers share, on PostgreSQL."""
        from api.tasks.refreshing import SharedRefreshes
        from providers.clouds import installed_clouds

        return SharedRefreshes(
            self.store,
            installed_clouds() if self._clouds is None else self._clouds,
            self._environment.sources(),
            retain=self.retain,
            tell=self._with_watches,
        )

    def begin_shared_refresh(self, document: Document) -> Document:
        """Queue a refresh: its id and start. Raises `RefreshRunning` if another is running, `NoWorker` if nobody would."""
        from api.documents.refresh import parse_refresh

        wanted = parse_refresh(document)
        _ = self.channels  # a settings file that cannot be read is said before anything is asked
        return self.shared_refreshes.begin(wanted)

    def end_dead_refreshes(self) -> None:
        """At the start of a process: refreshes whose own process was killed have failed, also if that was just now.

        The lock of a refresh, which goes with its process, tells them from one that is under way elsewhere.
        """
        try:
            if self.store.runs.has_live_refresh():
                with self.store.refreshing():
                    self.store.runs.give_up_refreshes(datetime.now(UTC), alone=True)
        except RefreshRunning:
            return
        except StoreFailure as error:
            log.warning("refreshes that were killed could not be ended: %s", error)

    def refreshes(self) -> Document:
        """What the last refreshes did, the newest first, in short; also those that left no report."""
        from api.refresh_report import in_short
        from api.runs.refreshes import failed_in_short

        if self.store.runs.has_live_refresh():
            self.store.runs.give_up_refreshes(datetime.now(UTC))
        found = [in_short(each.report) for each in self.store.refreshes()]
        found += [failed_in_short(each) for each in self.store.runs.failed_refreshes(USUAL_LIST)]
        newest_first = sorted(found, key=lambda each: datetime.fromisoformat(each["started_at"]), reverse=True)
        return {"refreshes": newest_first[:USUAL_LIST]}

    def refresh_report(self, refresh_id: str) -> Document:
        """What one refresh did, or how far it is, whichever process is at it. Raises `NotStored` if there is none.

        Of watched jobs it says what may be read by who is asking.
        """
        from api.refresh_report import for_watches

        found = self._refresh_report(refresh_id)
        looking = viewer()
        if looking == UNRESTRICTED:
            return found
        return for_watches(found, {each.id for each in self.store.watching.every(looking)})

    def _refresh_report(self, refresh_id: str) -> Document:
        from api.runs.refreshes import under_way

        refresh_id = an_id(refresh_id, "refresh")
        try:
            run = self.store.runs.one(refresh_id, datetime.now(UTC))
        except NotStored:
            run = None
        if run is not None and run.kind == "refresh" and run.status in LIVE:
            return under_way(run)
        try:
            return self.store.refresh(refresh_id).report
        except NotStored:
            if run is None or run.kind != "refresh":
                raise
            return under_way(run)

    def retain(self, *, now: datetime | None = None) -> Document:
        """Forget what the settings file lets go, and count it; for the end of a refresh."""
        policy = settings_file(self._environment.settings).retention.policy()
        return asdict(self.store.retain(policy, now or datetime.now(UTC)))

    def readiness(self) -> Document:
        """Which snapshot is loaded and how old it is; raises `StoreFailure` when the store cannot be read."""
        self.store.ping()
        columns = self.columns()
        now = datetime.now(UTC)
        return {
            "status": "ready",
            "snapshot_id": columns.snapshot_id,
            "offers": len(columns),
            "observed_at": columns.observed_at.isoformat(),
            "age_days": days_between(now, columns.observed_at),
            "last_refresh": self._last_refresh(now),
        }

    def _last_refresh(self, now: datetime) -> Document | None:
        """How the last refresh went and how long ago, None before the first."""
        last = self.store.last_refresh()
        if last is None:
            return None
        whole = self.store.last_whole_refresh_at()
        return {
            "id": last.id,
            "outcome": last.outcome,
            "finished_at": last.finished_at.isoformat(),
            "age_days": days_between(now, last.finished_at),
            "last_whole_age_days": None if whole is None else days_between(now, whole),
        }
