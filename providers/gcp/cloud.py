"""GCP as a provider: regions by name, then one shared reading, from which each region's rows are composed.

With an API key alone, or where the project may not list machines, the price list is still read: then the
machines are those of gpuplan's own table, in the regions that the price list names.
"""

import threading
from collections.abc import Sequence
from datetime import datetime

from catalog.embedded import embedded_snapshot
from catalog.errors import ProviderFailure, UnusableInput
from catalog.n1_machines import n1_machines
from catalog.regions import regions
from providers.contract import Rows
from providers.gcp.calls import NoAccess, Patience
from providers.gcp.clients import Account, account
from providers.gcp.known import known_machines
from providers.gcp.places import Places
from providers.gcp.reading import ALL, COMPUTE_ENGINE, Reading, read_all, read_prices
from providers.gcp.rows import RegionRows, add_machine, add_n1, quarantined_by_region, region_rows
from providers.gcp.skus import Prices
from providers.gcp.tables import families
from providers.gcp.words import component
from providers.sources import Sources

PRICES_ONLY = (
    "machines could not be listed, so prices are for the machines of gpuplan's own table, in the regions that the price"
    " list names; TPUs are left as they were"
)


class GcpProvider:
    """Google Cloud through its own clients; see `providers.contract.Provider`."""

    name = "gcp"
    parallel = 2

    def __init__(self, sources: Sources, *, read_at: datetime, patience: Patience) -> None:
        """Nothing is asked yet. Every offer is observed at `read_at`."""
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
        """Every region that the project sees, or that the price list names if machines cannot be listed."""
        with self._lock:
            return tuple(sorted(self._regions()))

    def fetch(self, region: str) -> Rows:
        """The rows of one region; the first call reads what all share."""
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
            who = self._account()
            if not who.for_compute:
                self._refused = "gcp: there is an API key but no project with credentials"
                self._zones = self._regions_of_prices()
            else:
                self._zones = self._listed_regions(who)
        return self._zones

    def _listed_regions(self, who: Account) -> dict[str, tuple[str, ...]]:
        try:
            zones, self._failures = Places(who, self._sources, self._patience).zones_by_region()
        except NoAccess as error:
            self._refused = str(error)
            return self._regions_of_prices()
        return zones

    def _regions_of_prices(self) -> dict[str, tuple[str, ...]]:
        """Every region that is known or in which an accelerator is priced: none has gone because it has no price.

        Raises what made machines unlistable too.
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
        """The reading, made once; a failed one fails again at once."""
        if self._reading is None:
            try:
                self._reading = self._read()
            except ProviderFailure as error:
                self._reading = error
        if isinstance(self._reading, ProviderFailure):
            raise self._reading
        return self._reading

    def _read(self) -> Reading:
        who = self._account()
        if self._refused:
            reading = Reading(prices=Prices())
            skus = read_prices(who, self._sources, self._patience, self._read_at, COMPUTE_ENGINE)
            reading.prices.add(skus)
            return reading
        zones = self._zones or {}
        reading = read_all(who, self._sources, self._patience, self._read_at, zones)
        for line in self._failures:
            reading.failed(line, ALL)
        for region, aside in quarantined_by_region(reading, zones).items():
            reading.quarantined_in[region] += aside
        return reading

    def _rows_of_prices_alone(self, reading: Reading, region: str) -> Rows:
        """Machines of the table that have a price here; available where the embedded catalogue says so."""
        rows = RegionRows(region=region, prices=reading.prices, observed_at=self._read_at)
        seen = {
            (offer.region, offer.instance_type) for offer in embedded_snapshot().offers if offer.provider == self.name
        }
        for each in known_machines():
            add_machine(rows, each, available=(region, each.instance_type.name) in seen)
        for machine in n1_machines():
            add_n1(rows, machine, available=(region, machine.name) in seen)
        priced = {offer.instance_type for offer in rows.offers}
        return Rows(
            instance_types=tuple(each for name, each in rows.types.items() if name in priced),
            offers=tuple(rows.offers),
            quarantined=tuple(rows.quarantined),
            failures=(f"{self._refused}; {PRICES_ONLY}",) if self._account().for_compute else (),
            notes=(f"{self._refused}; {PRICES_ONLY}",),
        )
