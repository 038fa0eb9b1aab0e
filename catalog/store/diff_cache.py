"""Cache of snapshot diffs, which never change because snapshots are immutable."""

import threading
from collections.abc import Callable, Collection

from cachetools import LRUCache, cached

from gpuplan.catalog.store.snapshot_diff import SnapshotDiff

#: Maximum over all cached diffs together; a change takes about 500 bytes, and a night changes a few thousand prices.
MOST_CHANGES = 100_000

#: Maximum number of concurrent computations: each holds a connection and a core while it reads.
MOST_AT_ONCE = 4

#: The ids of the snapshot before and the one after.
Pair = tuple[str, str]


class DiffCache:
    """The most recently used diffs; thread-safe, and each computed once even if several threads request it.

    A request for another pair, or for a cached one, does not wait for a slow computation.
    """

    def __init__(self, most_changes: int = MOST_CHANGES, most_at_once: int = MOST_AT_ONCE) -> None:
        """Creates an empty cache."""
        self._at_once = threading.BoundedSemaphore(most_at_once)
        self._changing = threading.Condition()
        self._diffs: LRUCache[Pair, SnapshotDiff] = LRUCache(most_changes, getsizeof=lambda diff: len(diff.offers))
        self._of = cached(self._diffs, key=lambda pair, _: pair, condition=self._changing)(self._work_out)

    def of(self, pair: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        """The diff of this pair, computed if not cached. Raises what `work_out` raises, and then caches nothing."""
        return self._of(pair, work_out)

    def _work_out(self, _: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        with self._at_once:
            return work_out()

    def retain_only(self, snapshot_ids: Collection[str]) -> None:
        """Drop diffs of all other snapshots."""
        with self._changing:
            for pair in [diff for diff in self._diffs if not set(diff) <= set(snapshot_ids)]:
                del self._diffs[pair]
