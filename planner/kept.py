"""Answers kept beside what they rest on and let go with it, as many as memory is meant for."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, partial, update_wrapper
from typing import Any, Concatenate, cast

#: Snapshots, the user's own machines among them, of which answers are kept: a service meets a new one each night.
MOST_SNAPSHOTS = 8


def kept_per_snapshot[Snapshot, **Rest, Answer](
    most: int,
) -> Callable[[Callable[Concatenate[Snapshot, Rest], Answer]], Callable[Concatenate[Snapshot, Rest], Answer]]:
    """Keeps up to `most` answers for each of the last few first arguments.

    One least-recently-used cache over all arguments would keep each old snapshot alive for as long as one answer on
    it is among the last `most`, which on a service that is asked little is for months.
    """

    def kept(function: Callable[Concatenate[Snapshot, Rest], Answer]) -> Callable[Concatenate[Snapshot, Rest], Answer]:
        @lru_cache(maxsize=MOST_SNAPSHOTS)
        def beside(snapshot: Any) -> Callable[..., Answer]:
            return lru_cache(maxsize=most)(partial(cast(Callable[..., Answer], function), snapshot))

        def answer(snapshot: Any, /, *args: Any, **kwargs: Any) -> Answer:
            return beside(snapshot)(*args, **kwargs)

        return cast(Callable[Concatenate[Snapshot, Rest], Answer], update_wrapper(answer, function))

    return kept


def kept_within[**Rest, Answer](
    most: int, most_bytes: int, bytes_of: Callable[[Answer], int]
) -> Callable[[Callable[Rest, Answer]], Callable[Rest, Answer]]:
    """Keeps the answers used last: up to `most`, which by `bytes_of` take no more than `most_bytes` together.

    For answers whose size is up to who asks: a number of them alone bounds no memory. Arguments are hashable; safe to
    share between threads, of which two that ask the same at once both work it out.
    """

    def kept(function: Callable[Rest, Answer]) -> Callable[Rest, Answer]:
        answers: OrderedDict[Hashable, tuple[Answer, int]] = OrderedDict()
        changing, held = threading.Lock(), 0

        def answer(*args: Rest.args, **kwargs: Rest.kwargs) -> Answer:
            nonlocal held
            key = (args, tuple(kwargs.items()))
            with changing:
                if key in answers:
                    answers.move_to_end(key)
                    return answers[key][0]
            found = function(*args, **kwargs)
            size = bytes_of(found)
            with changing:
                if key not in answers and size <= most_bytes:
                    answers[key], held = (found, size), held + size
                while len(answers) > most or held > most_bytes:
                    held -= answers.popitem(last=False)[1][1]
            return found

        return answer

    return kept
