"""What snapshots changed, kept for whoever asks next: two snapshots say the same of each other for ever."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection

from catalog.diff import SnapshotDiff

#: Of all kept diffs together; a change takes some 500 bytes, and a night changes a few thousand prices.
MOST_CHANGES = 100_000

#: The ids of the snapshot before and the one after.
Pair = tuple[str, str]


class KeptDiffs:
    """The diffs asked for last; safe to share between threads, and worked out once where several ask at once."""

    def __init__(self, most_changes: int = MOST_CHANGES) -> None:
        """With nothing kept yet."""
        self._most_changes = most_changes
        self._working = threading.Lock()
        self._diffs: OrderedDict[Pair, SnapshotDiff] = OrderedDict()

    def of(self, pair: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        """The diff of this pair, worked out where it is not kept. Raises what `work_out` raises, and then keeps nothing."""
        with self._working:
            found = self._diffs.get(pair)
            if found is None:
                found = work_out()
            self._diffs[pair] = found
            self._diffs.move_to_end(pair)
            while sum(len(each.offers) for each in self._diffs.values()) > self._most_changes:
                self._diffs.popitem(last=False)
            return found

    def keep_only(self, snapshot_ids: Collection[str]) -> None:
        """Lets go of diffs with other snapshots than these."""
        with self._working:
            for pair in [each for each in self._diffs if not set(each) <= set(snapshot_ids)]:
                del self._diffs[pair]
