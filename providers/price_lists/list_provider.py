"""A provider that has one list for all its regions: read once per refresh, given region by region."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.contract import Rows
from gpuplan.providers.price_lists.listed_machines import Listing, ListOrigin, rows_of


@dataclass(slots=True, kw_only=True)
class ListProvider:
    """See `gpuplan.providers.contract.Provider`; `read` fetches and parses the list. Any number of threads may call it."""

    name: str
    read: Callable[[], Listing]
    read_at: datetime
    source: str
    #: Gbit/s between nodes of a machine that gpuplan's own table lacks; None if machines stand alone.
    network_gbps: float | None
    parallel: int = 4
    _lock: Lock = field(default_factory=Lock)
    _listing: Listing | None = None

    def regions(self) -> Sequence[str]:
        """The provider's regions, and the place that its price list does not state."""
        return (*sorted(self._whole().regions), UNKNOWN_REGION)

    def fetch(self, region: str) -> Rows:
        """The rows of one region of the list."""
        if region not in self.regions():
            raise UnusableInput.at("region", message=f"{self.name} has no region {region!r}")
        known = {row.name: row for row in embedded_instance_types() if row.provider == self.name}
        origin = ListOrigin(
            provider=self.name,
            source=self.source,
            read_at=self.read_at,
            known=known,
            network_gbps=self.network_gbps,
        )
        return rows_of(self._whole(), region, origin)

    def _whole(self) -> Listing:
        """The list, read by the first call. Raises `ProviderFailure` for one that is empty."""
        with self._lock:
            if self._listing is None:
                listing = self.read()
                if not listing.machines:
                    raise ProviderFailure(
                        f"{self.source}: the list has no machine with accelerators; earlier prices stay"
                    )
                self._listing = listing
            return self._listing
