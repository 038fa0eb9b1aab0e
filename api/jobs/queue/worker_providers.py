"""The providers of the current refresh in a worker process, so that data common to all regions is read once per
process.
"""

import threading
from collections.abc import Mapping
from datetime import datetime

from gpuplan.catalog.store.run_store import Run
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.cloud_registry import MakeCloud
from gpuplan.providers.contract import Provider


class WorkerProviders:
    """Creates each provider once per refresh, with the time of its rows; thread-safe."""

    def __init__(self, clouds: Mapping[str, MakeCloud], sources: Sources) -> None:
        """Creates no provider yet."""
        self._clouds, self._sources = clouds, sources
        self._lock = threading.Lock()
        self._of = ""
        self._providers: dict[str, Provider] = {}

    def provider(self, run: Run, name: str) -> Provider:
        """The provider of this refresh, whose `at` is fixed. Raises what its constructor raises."""
        with self._lock:
            if self._of != run.id:
                self._of, self._providers = run.id, {}
            if name not in self._providers:
                at = datetime.fromisoformat(run.request["at"])
                self._providers[name] = self._clouds[name](self._sources, at)
            return self._providers[name]

    def forget(self, run_id: str) -> None:
        """Drop the providers of a refresh."""
        with self._lock:
            if self._of == run_id:
                self._of, self._providers = "", {}
