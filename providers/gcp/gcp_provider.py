"""GCP as a provider: list regions, read shared data once, compose each region's rows from it.

With only an API key, or if the project may not list machines, the price list is still read: then the machines are those of
gpuplan's own table, in the regions that the price list names.
"""

import threading
from collections.abc import Sequence
from datetime import datetime

from gpuplan.catalog.model.n1_machines import n1_machines
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Rows
from gpuplan.providers.gcp.api_calls import NoAccess, Patience
from gpuplan.providers.gcp.clients import Account, account
from gpuplan.providers.gcp.known_machines import known_machines
from gpuplan.providers.gcp.listed_places import Places
from gpuplan.providers.gcp.mapping_tables import families
from gpuplan.providers.gcp.price_list import COMPUTE_ENGINE
from gpuplan.providers.gcp.region_rows import RegionRows, add_machine, add_n1, quarantined_by_region, region_rows
from gpuplan.providers.gcp.shared_reading import ALL, Reading, read_all, read_prices
from gpuplan.providers.gcp.sku_descriptions import component
from gpuplan.providers.gcp.skus import Prices

PRICES_ONLY = (
    "machines could not be listed, so prices are for the machines of gpuplan's own table, in the regions that the price"
    " list names; TPUs are left as they were"
)


class GcpProvider:
    """Google Cloud; see `gpuplan.providers.contract.Provider`."""

    name = "gcp"
    parallel = 2

    def __init__(self, sources: Sources, *, read_at: datetime, patience: Patience) -> None:
        """Sends nothing yet. Every offer is observed at `read_at`."""
        self._sources = sources
        self._read_at = read_at
        self._patience = patience
        self._lock = threading.Lock()
        self._who: Account | None = None
        self._zones: dict[str, tuple[str, ...]] | None = None
        self._refused = ""
        self._failures: list[str] = []
        self._reading: Reading | ProviderFailure | None = None

    def regions(self) -> Sequence[str]:
        """Every region of the project, or of the price list if machines cannot be listed."""
        with self._lock:
            return tuple(sorted(self._regions()))

    def fetch(self, region: str) -> Rows:
        """The rows of one region; the first call reads the shared data."""
        with self._lock:
            known = self._regions()
            if region not in known:
                message = f"gcp has no region {region[:60]!r}; it has {', '.join(sorted(known))}"
                raise UnusableInput.at("region", message=message)
            reading = self._shared()
        if self._refused:
            return self._rows_of_prices_alone(reading, region)
        return region_rows(reading, region, self._read_at)

    def _account(self) -> Account:
        if self._who is None:
            self._who = account(self._sources)
        return self._who

    def _regions(self) -> dict[str, tuple[str, ...]]:
        if self._zones is None:
            account = self._account()
            if not account.for_compute:
                why = f" ({account.why_none})" if account.why_none else ""
                self._refused = f"gcp: there is an API key but no project with credentials{why}"
                self._zones = self._regions_of_prices()
            else:
                self._zones = self._listed_regions(account)
        return self._zones

    def _listed_regions(self, account: Account) -> dict[str, tuple[str, ...]]:
        try:
            zones, self._failures = Places(account, self._sources, self._patience).zones_by_region()
        except NoAccess as error:
            self._refused = str(error)
            return self._regions_of_prices()
        return zones

    def _regions_of_prices(self) -> dict[str, tuple[str, ...]]:
        """Every known region and every region with an accelerator price: a region without a price has not gone.

        Raises the error that prevented listing machines, too.
        """
        try:
            prices = self._shared().prices
        except ProviderFailure as error:
            raise ProviderFailure(f"{self._refused}; {error}") from error
        gpus = [spelling for family in families() for spelling in family.gpus]
        priced = prices.regions_of([*gpus, *(component(machine.gpu) for machine in n1_machines())])
        if not priced:
            raise ProviderFailure(f"{self._refused}; the price list names no region with a known accelerator")
        known = {region for provider, region in regions() if provider == self.name}
        return dict.fromkeys(sorted(priced | known), ())

    def _shared(self) -> Reading:
        """The shared reading, made once; a failed one raises again at once."""
        if self._reading is None:
            try:
                self._reading = self._read()
            except ProviderFailure as error:
                self._reading = error
        if isinstance(self._reading, ProviderFailure):
            raise self._reading
        return self._reading

    def _read(self) -> Reading:
        account = self._account()
        if self._refused:
            reading = Reading(prices=Prices())
            skus = read_prices(account, self._sources, self._patience, self._read_at, COMPUTE_ENGINE)
            reading.prices.add(skus)
            return reading
        zones = self._zones or {}
        reading = read_all(account, self._sources, self._patience, self._read_at, zones)
        for line in self._failures:
            reading.failed(line, ALL)
        for region, aside in quarantined_by_region(reading, zones).items():
            reading.quarantined_in[region] += aside
        return reading

    def _rows_of_prices_alone(self, reading: Reading, region: str) -> Rows:
        """Machines of the table with a price in the region; available where the embedded catalogue says so."""
        rows = RegionRows(region=region, prices=reading.prices, observed_at=self._read_at)
        seen = {
            (offer.region, offer.instance_type) for offer in embedded_snapshot().offers if offer.provider == self.name
        }
        for known_machine in known_machines():
            add_machine(rows, known_machine, available=(region, known_machine.instance_type.name) in seen)
        for machine in n1_machines():
            add_n1(rows, machine, available=(region, machine.name) in seen)
        priced = {offer.instance_type for offer in rows.offers}
        return Rows(
            instance_types=tuple(instance_type for name, instance_type in rows.types.items() if name in priced),
            offers=tuple(rows.offers),
            quarantined=tuple(rows.quarantined),
            failures=(f"{self._refused}; {PRICES_ONLY}",) if self._account().for_compute else (),
            notes=(f"{self._refused}; {PRICES_ONLY}",),
        )
