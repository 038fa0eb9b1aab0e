"""Watches and their notifications in the store: one transaction per method."""

from gpuplan.catalog.store import stored_notifications, stored_watches
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, read_owners
from gpuplan.catalog.store.store_part import StorePart, reads, writes
from gpuplan.catalog.store.stored_notifications import Notification, read_notifications
from gpuplan.catalog.store.stored_watches import Watch, read_watch


class WatchStore(StorePart):
    """The watches in the store."""

    save = writes(stored_watches.write_watch)
    every = reads(stored_watches.read_watches)
    count = reads(stored_watches.count_watches)
    forget = writes(stored_watches.delete_watch)
    tell = writes(stored_watches.tell)
    mark_checked = writes(stored_watches.mark_checked)
    waiting = reads(stored_notifications.read_waiting)
    hold = writes(stored_notifications.hold)
    settle = writes(stored_notifications.settle)
    note = writes(stored_notifications.note)

    def owners(self, watch_id: str) -> tuple[str | None, ...]:
        """The owners of the watch, which also own what is made for it: None for everybody."""
        with self._reading() as connection:
            return read_owners(connection, "watch", watch_id) or (None,)

    def one(self, watch_id: str, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, tuple[Notification, ...]]:
        """One watch and all its notifications, newest first. Raises `NotStored` if the viewer cannot read one."""
        with self._reading() as connection:
            return read_watch(connection, watch_id, viewer), read_notifications(connection, watch_id)
