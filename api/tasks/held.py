"""Providers of the refresh at hand, held by each worker: what all regions share is then read once per process."""

import threading
from collections.abc import Mapping
from datetime import datetime

from catalog.runs import Run
from providers.clouds import MakeCloud
from providers.contract import Provider
from providers.sources import Sources


class HeldProviders:
    """Makes each provider once per refresh, with the time of its rows; for any number of threads."""

    def __init__(self, clouds: Mapping[str, MakeCloud], sources: Sources) -> None:
        """Nothing is made yet."""
        self._clouds, self._sources = clouds, sources
        self._lock = threading.Lock()
        self._of = ""
        self._providers: dict[str, Provider] = {}

    def provider(self, run: Run, name: str) -> Provider:
        """The provider of this refresh, whose `at` is settled. Raises whatever making it raises."""
        with self._lock:
            if self._of != run.id:
                self._of, self._providers = run.id, {}
            if name not in self._providers:
                at = datetime.fromisoformat(run.request["at"])
                self._providers[name] = self._clouds[name](self._sources, at)
            return self._providers[name]

    def forget(self, run_id: str) -> None:
        """Lets go what was read for a refresh."""
        with self._lock:
            if self._of == run_id:
                self._of, self._providers = "", {}
