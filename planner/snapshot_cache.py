"""Caches that live as long as their snapshot."""

from collections.abc import Callable
from functools import lru_cache, partial, update_wrapper
from typing import Any, Concatenate, cast

#: Snapshots, with the user's own machines, whose answers are cached: a service loads a new one each night.
MOST_SNAPSHOTS = 8


def cached_per_snapshot[Snapshot, **Rest, Answer](
    most: int,
) -> Callable[[Callable[Concatenate[Snapshot, Rest], Answer]], Callable[Concatenate[Snapshot, Rest], Answer]]:
    """Keeps up to `most` answers for each of the last few first arguments.

    One least-recently-used cache over all arguments would keep each old snapshot alive for as long as one answer on
    it is among the last `most`, which on a service that is asked little is for months.
    """

    def cached(
        function: Callable[Concatenate[Snapshot, Rest], Answer],
    ) -> Callable[Concatenate[Snapshot, Rest], Answer]:
        @lru_cache(maxsize=MOST_SNAPSHOTS)
        def beside(snapshot: Any) -> Callable[..., Answer]:
            return lru_cache(maxsize=most)(partial(cast(Callable[..., Answer], function), snapshot))

        def answer(snapshot: Any, /, *args: Any, **kwargs: Any) -> Answer:
            return beside(snapshot)(*args, **kwargs)

        return cast(Callable[Concatenate[Snapshot, Rest], Answer], update_wrapper(answer, function))

    return cached
