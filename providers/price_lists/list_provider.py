"""Providers with one list for all their regions, read once per refresh, or with one list for each region."""

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
        listing = self._whole()
        placeless = () if listing.kinds_by_place else (UNKNOWN_REGION,)
        return (*sorted(listing.regions), *placeless)

    def fetch(self, region: str) -> Rows:
        """The rows of one region of the list."""
        if region not in self.regions():
            raise UnusableInput.at("region", message=f"{self.name} has no region {region!r}")
        return rows_of(self._whole(), region, _origin(self))

    def listings(self, places: Sequence[str]) -> list[Listing]:
        """The list, which has all places. Raises `ProviderFailure`."""
        return [self._whole()]

    def _whole(self) -> Listing:
        """The list, read by the first call. Raises `ProviderFailure` for one that is empty."""
        with self._lock:
            if self._listing is None:
                self._listing = _filled(self.read(), self.source)
            return self._listing


@dataclass(slots=True, kw_only=True)
class RegionalListProvider:
    """See `gpuplan.providers.contract.Provider`; `read` fetches and parses the list of one region, which fails alone."""

    name: str
    read_regions: Callable[[], Sequence[str]]
    read: Callable[[str], Listing]
    read_at: datetime
    source: str
    network_gbps: float | None
    #: The fabric between nodes that the list calls joined.
    fabric: str = ""
    fabric_gbps: float | None = None
    parallel: int = 4
    _lock: Lock = field(default_factory=Lock)
    _regions: Sequence[str] | None = None

    def regions(self) -> Sequence[str]:
        """The provider's regions."""
        with self._lock:
            if self._regions is None:
                self._regions = tuple(sorted(self.read_regions()))
            return self._regions

    def fetch(self, region: str) -> Rows:
        """The rows of one region, from its own list. Raises `ProviderFailure` for one that is empty."""
        if region not in self.regions():
            raise UnusableInput.at("region", message=f"{self.name} has no region {region!r}")
        listing = _filled(self.read(region), f"{self.source} in {region}")
        return rows_of(listing, region, _origin(self, self.fabric, self.fabric_gbps))

    def listings(self, places: Sequence[str]) -> list[Listing]:
        """The lists of those of `places` that the provider has. Raises `ProviderFailure`."""
        return [self.read(region) for region in self.regions() if region in places]


def _filled(listing: Listing, source: str) -> Listing:
    """The list. Raises `ProviderFailure` if it has nothing, which no provider of accelerators says."""
    if not listing.machines:
        reasons = {aside.reason for aside in listing.quarantined}
        why = f" ({min(reasons)})" if reasons else ""
        raise ProviderFailure(f"{source}: the list has no machine with accelerators{why}; earlier prices stay")
    return listing


def _origin(
    provider: ListProvider | RegionalListProvider, fabric: str = "", fabric_gbps: float | None = None
) -> ListOrigin:
    return ListOrigin(
        provider=provider.name,
        source=provider.source,
        read_at=provider.read_at,
        known={row.name: row for row in embedded_instance_types() if row.provider == provider.name},
        network_gbps=provider.network_gbps,
        fabric=fabric,
        fabric_gbps=fabric_gbps,
    )
