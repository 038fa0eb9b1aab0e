"""Compute shared values once: the first thread computes, the others wait for its result."""

from collections.abc import Callable, Hashable
from threading import Lock

from gpuplan.catalog.runtime.errors import ProviderFailure


class SingleFlight[K: Hashable, V]:
    """Values by key, each computed once; failures are cached too, so that no caller waits for one twice."""

    def __init__(self) -> None:
        self._made: dict[K, V | ProviderFailure] = {}
        self._locks: dict[K, Lock] = {}
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, computed by the first call; thread-safe.

        Raises the `ProviderFailure` of the first call to every caller.
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
