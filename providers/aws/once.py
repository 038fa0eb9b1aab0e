"""What several regions share is read once: by whichever thread comes first, while the others wait for it."""

from collections.abc import Callable, Hashable
from threading import Lock

from catalog.errors import ProviderFailure


class Once[K: Hashable, V]:
    """Values by key, each made once; a failure is remembered too, so that nobody waits for it twice."""

    def __init__(self) -> None:
        self._made: dict[K, V | ProviderFailure] = {}
        self._locks: dict[K, Lock] = {}
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made by the first call; any number of threads may ask.

        Raises the `ProviderFailure` of the first call, to every caller.
        """
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._made:
                try:
                    self._made[key] = make()
                except ProviderFailure as failure:
                    self._made[key] = failure
            made = self._made[key]
        if isinstance(made, ProviderFailure):
            raise type(made)(str(made)) from made
        return made
