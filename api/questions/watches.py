"""Watched jobs: added, listed, planned again on new prices, removed; and whether a channel can be reached."""

from datetime import UTC, datetime

from api.identity.asking import record, viewer
from api.questions.catalogue import Catalogue
from api.questions.one_job import OneJob
from api.questions.opened import Document, an_id


class Watches(OneJob, Catalogue):
    """Questions about watched jobs, each of which is planned like any job."""

    def add_watch(self, document: Document, *, now: datetime | None = None) -> Document:
        """Watch a job from now on: it is planned on each new snapshot, and channels are told what changed."""
        from api.watches.keeping import add

        now = now or datetime.now(UTC)
        added = add(self, document, now)
        self.store.access.record(record("watch.add", added["id"], now))
        return added

    def watches(self) -> Document:
        """Every watched job that may be read by who is asking, the oldest first."""
        from api.watches.keeping import listed

        return listed(self)

    def watch(self, watch_id: str) -> Document:
        """One watched job and all that was told of it. Raises `NotStored` if there is none."""
        from api.watches.keeping import one

        return one(self, an_id(watch_id, "watch"))

    def forget_watch(self, watch_id: str) -> Document:
        """Watch a job no longer; what was not sent yet is not sent. Raises `NotStored` if there is none, or `NotOwned`."""
        self.store.watching.forget(an_id(watch_id, "watch"), viewer())
        self.store.access.record(record("watch.forget", watch_id, datetime.now(UTC)))
        return {"forgotten": 1}

    def check_watches(self, *, now: datetime | None = None) -> Document:
        """Plan every watched job on the current snapshot, and send what is to be told."""
        from api.watches.check import check_watches

        return check_watches(self, self.store.current_snapshot_id(), now or datetime.now(UTC))

    def try_channel(self, name: str) -> Document:
        """Send a test message to a channel. Raises `ProviderFailure` if nobody takes it."""
        from api.watches.keeping import try_out

        return try_out(self, name, datetime.now(UTC))
