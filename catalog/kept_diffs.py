"""What snapshots changed, kept for whoever asks next: two snapshots say the same of each other for ever."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from weakref import WeakValueDictionary

from catalog.diff import SnapshotDiff

#: Of all kept diffs together; a change takes some 500 bytes, and a night changes a few thousand prices.
MOST_CHANGES = 100_000

#: Worked out at once: each holds a connection and a core while it reads.
MOST_AT_ONCE = 4

#: The ids of the snapshot before and the one after.
Pair = tuple[str, str]


class KeptDiffs:
    """The diffs asked for last; safe to share between threads, and worked out once where several ask for one at once.

    Who asks for another pair, or for one that is kept, does not wait for one that takes long.
    """

    def __init__(self, most_changes: int = MOST_CHANGES, most_at_once: int = MOST_AT_ONCE) -> None:
        """With nothing kept yet."""
        self._most_changes = most_changes
        self._at_once = threading.BoundedSemaphore(most_at_once)
        #: Held for what follows alone, never while a diff is worked out.
        self._changing = threading.Lock()
        self._diffs: OrderedDict[Pair, SnapshotDiff] = OrderedDict()
        self._working: WeakValueDictionary[Pair, threading.Lock] = WeakValueDictionary()

    def of(self, pair: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        """The diff of this pair, worked out where it is not kept. Raises what `work_out` raises, and then keeps nothing."""
        found, working = self._find(pair)
        if found is not None:
            return found
        with working:
            found, _ = self._find(pair)
            if found is None:
                with self._at_once:
                    found = work_out()
                self._keep(pair, found)
            return found

    def _find(self, pair: Pair) -> tuple[SnapshotDiff | None, threading.Lock]:
        """The diff if it is kept, and the lock of those who ask for it, which goes when the last of them has."""
        with self._changing:
            found = self._diffs.get(pair)
            if found is not None:
                self._diffs.move_to_end(pair)
            return found, self._working.setdefault(pair, threading.Lock())

    def _keep(self, pair: Pair, found: SnapshotDiff) -> None:
        with self._changing:
            self._diffs[pair] = found
            while sum(len(each.offers) for each in self._diffs.values()) > self._most_changes:
                self._diffs.popitem(last=False)

    def keep_only(self, snapshot_ids: Collection[str]) -> None:
        """Lets go of diffs with other snapshots than these."""
        with self._changing:
            for pair in [each for each in self._diffs if not set(each) <= set(snapshot_ids)]:
                del self._diffs[pair]
