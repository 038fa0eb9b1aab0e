"""Watched jobs: added, listed, planned again on new prices and removed; and test messages to channels."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuplan.api.schemas.actual_reports import Forgotten
from gpuplan.api.security.authorization import record, viewer
from gpuplan.api.services.live_queries import LiveQueries
from gpuplan.api.services.plans import PlanService
from gpuplan.api.services.service_context import Document, ServiceContext, an_id

if TYPE_CHECKING:
    from gpuplan.api.schemas.watch_answers import ChannelTest, Watch, WatchCheck, Watches


class WatchService:
    """Watches jobs, each of which is planned like any other job."""

    def __init__(self, context: ServiceContext, plans: PlanService, live_queries: LiveQueries) -> None:
        """Keep watches in the store of `context`, plan jobs by `plans`, and ask about machines by `live_queries`."""
        self._context, self._plans, self._live_queries = context, plans, live_queries

    def add(self, document: Document, *, now: datetime | None = None) -> "Watch":
        """Watch a job, planned on each new snapshot, or machines, asked about at each check; notify channels of changes."""
        from gpuplan.api.notifications.watch_records import add

        now = now or datetime.now(UTC)
        added = add(self._context, self._plans, self._live_queries, document, now)
        self._context.store.access.record(record("watch.add", added.id, now))
        return added

    def listed(self) -> "Watches":
        """Every watched job that the requester may read, the oldest first."""
        from gpuplan.api.notifications.watch_records import listed

        return listed(self._context)

    def one(self, watch_id: str) -> "Watch":
        """One watched job with all its notifications. Raises `NotStored` if there is none."""
        from gpuplan.api.notifications.watch_records import one

        return one(self._context, an_id(watch_id, "watch"))

    def forget(self, watch_id: str) -> Forgotten:
        """Stop watching a job and drop its unsent messages. Raises `NotStored` if there is none, or `NotOwned`."""
        self._context.store.watching.forget(an_id(watch_id, "watch"), viewer())
        self._context.store.access.record(record("watch.forget", watch_id, datetime.now(UTC)))
        return Forgotten(forgotten=1)

    def check(self, *, now: datetime | None = None, capacity_only: bool = False) -> "WatchCheck":
        """Plan every watched job on the current snapshot, ask about watched machines, and send notifications."""
        from gpuplan.api.notifications.watch_check import check_watches

        snapshot_id = self._context.store.current_snapshot_id()
        return check_watches(
            self._context,
            self._plans,
            self._live_queries,
            snapshot_id,
            now or datetime.now(UTC),
            capacity_only=capacity_only,
        )

    def try_channel(self, name: str) -> "ChannelTest":
        """Send a test message to a channel. Raises `ProviderFailure` if it is not delivered."""
        from gpuplan.api.notifications.watch_records import try_out

        return try_out(self._context, name, datetime.now(UTC))
