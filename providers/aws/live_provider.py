"""AWS with credentials, region by region: list prices, savings plans, spot by zone, capacity blocks."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from gpuplan.catalog.model.offer import Implausible, Offer
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.aws import capacity_blocks, price_list, savings_plans, spot_prices
from gpuplan.providers.aws.advisor import SpotAdvisor
from gpuplan.providers.aws.api_calls import CallFailed, Calls
from gpuplan.providers.aws.price_rows import PriceRow
from gpuplan.providers.aws.regions_and_zones import Place
from gpuplan.providers.aws.shared_account import Account, read_account
from gpuplan.providers.aws.single_flight import SingleFlight
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Quarantined, Rows


class _RegionRows:
    """The rows of one region during collection."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.quarantined: list[Quarantined] = []
        self.whole: set[str] = set()
        self.failures: list[str] = []
        self.notes: list[str] = []


class LiveAws:
    """The rows of an account; account-wide failures are reported with the first fetched region."""

    name = "aws"
    parallel = 16

    def __init__(self, calls: Calls, sources: Sources, *, seed: str, read_at: datetime) -> None:
        self._calls = calls
        self._seed = seed
        self._read_at = read_at
        self._advisor = SpotAdvisor(sources)
        self._account: SingleFlight[str, Account] = SingleFlight()
        self._lock = threading.Lock()
        self._shared_is_told = False
        self._advisor_is_told = False

    def regions(self) -> Sequence[str]:
        """Regions and Local Zones, including those of other partitions if the price list has prices for them."""
        return self._shared().regions

    def fetch(self, region: str) -> Rows:
        """The rows of a region or Local Zone; see `gpuplan.providers.contract.Provider`."""
        account = self._shared()
        if region not in account.regions:
            raise UnusableInput.at(
                "region", message=f"AWS has no region {region!r}; accepted: {', '.join(account.regions)}"
            )
        region_data, place = _RegionRows(), account.places.get(region)
        self._list_prices(region_data, account, region)
        self._plans(region_data, account, region)
        if place is not None and place.enabled:
            self._account_prices(region_data, account, place)
        else:
            self._elsewhere(region_data, account, region)
        if not region_data.offers and region_data.failures:
            raise ProviderFailure(region_data.failures[0])
        return self._rows(region_data, account, region)

    def _shared(self) -> Account:
        return self._account.get("", lambda: read_account(self._calls, self._seed, read_at=self._read_at))

    def _list_prices(self, region_data: _RegionRows, account: Account, region: str) -> None:
        for row in account.prices.of(region):
            self._take(region_data, account, row, price_list.SOURCE)
        if account.prices.whole:
            region_data.whole |= price_list.KINDS

    def _plans(self, region_data: _RegionRows, account: Account, region: str) -> None:
        for row, source in account.plans.rows(region):
            self._take(region_data, account, row, source)
        if account.plans.whole:
            region_data.whole.update(savings_plans.KINDS)

    def _take(self, region_data: _RegionRows, account: Account, row: PriceRow, source: str) -> None:
        """Add the offer of a price, or the reason why it is implausible."""
        try:
            offer = Offer(
                provider="aws",
                region=row.region,
                zone=row.zone,
                instance_type=row.instance_type,
                price_kind=row.price_kind,
                usd_micros_per_hour=row.usd_micros_per_hour,
                observed_at=self._read_at,
                available=_available(account, row.region, row.instance_type),
                source=source,
            )
        except Implausible as problem:
            what = f"{row.instance_type} {row.price_kind} in {row.region}"
            region_data.quarantined.append(Quarantined(what=what, reason=str(problem)))
        else:
            region_data.offers.append(offer)

    def _elsewhere(self, region_data: _RegionRows, account: Account, region: str) -> None:
        """Regions without a spot query: a Local Zone's prices are with its parent; other regions are closed to the account."""
        parent = account.place_of(region)
        if parent is None:
            region_data.notes.append("not among the account's regions: list prices only")
        elif parent.enabled:
            region_data.whole |= {spot_prices.KIND, capacity_blocks.KIND}
        else:
            region_data.notes.append("not enabled for this account: list prices only, nothing there is available")

    def _account_prices(self, region_data: _RegionRows, account: Account, place: Place) -> None:
        region_data.failures += place.failures
        if place.unreachable:
            return
        sold = account.machines.types.keys() & (
            account.machines.types.keys() if place.offered is None else place.offered
        )
        try:
            rows = spot_prices.read_spot(self._calls, place, frozenset(sold), read_at=self._read_at)
        except CallFailed as failure:
            region_data.failures.append(f"{failure}; its spot prices stay as they were")
            if failure.unreachable:
                return
        else:
            if place.zones is None and rows.zones:
                place = replace(place, zones=rows.zones)
            rates = self._interruption_rates(region_data)
            region_data.offers += [spot_prices.with_interruption_rate(offer, rates) for offer in rows.offers]
            region_data.quarantined += rows.quarantined
            if sold & account.machines.on_spot and not rows.offers and not rows.quarantined:
                region_data.failures.append(f"{spot_prices.NOTHING}; its spot prices stay as they were")
            elif not rows.quarantined:
                region_data.whole.add(spot_prices.KIND)
        blocks = capacity_blocks.read_capacity_blocks(
            self._calls, place, frozenset(sold & account.machines.in_blocks), read_at=self._read_at
        )
        region_data.offers += blocks.offers
        region_data.quarantined += blocks.quarantined
        region_data.failures += blocks.failures
        if not blocks.failures and not blocks.quarantined:
            region_data.whole.add(capacity_blocks.KIND)

    def _interruption_rates(self, region_data: _RegionRows) -> dict[tuple[str, str], float]:
        try:
            return dict(self._advisor.interruption_rates())
        except ProviderFailure as failure:
            with self._lock:
                already_reported, self._advisor_is_told = self._advisor_is_told, True
            if not already_reported:
                region_data.failures.append(f"{failure}; spot rows carry a modelled interruption rate")
            return {}

    def _rows(self, region_data: _RegionRows, account: Account, region: str) -> Rows:
        with self._lock:
            first, self._shared_is_told = not self._shared_is_told, True
        place = account.places.get(region)
        names = {offer.instance_type for offer in region_data.offers} | (
            place.offered or frozenset() if place else frozenset()
        )
        region_data.quarantined += _doubts(account, region)
        if first:
            region_data.quarantined += _doubts_without_region(account)
        known, offers = _with_hardware(account, region_data)
        return Rows(
            instance_types=tuple(account.machines.types[name] for name in sorted(names & known)),
            offers=tuple(offers),
            quarantined=tuple(_unique(region_data.quarantined)),
            whole_kinds=frozenset() if account.machines.failures else frozenset(region_data.whole),
            closed=account.is_closed(region),
            failures=tuple(region_data.failures),
            notes=tuple(region_data.notes),
            provider_failures=account.failures,
            provider_notes=account.notes,
        )


def _available(account: Account, region: str, name: str) -> bool:
    """False if the account may not use the region or EC2 does not sell the type; as listed if EC2 did not say."""
    place = account.place_of(region)
    if place is None:
        return True
    if not place.enabled:
        return False
    return place.region != region or place.offered is None or name in place.offered


def _with_hardware(account: Account, region_data: _RegionRows) -> tuple[set[str], list[Offer]]:
    """Names with known hardware, and their offers; the others go to quarantine by type."""
    known = set(account.machines.types)
    for name in sorted({offer.instance_type for offer in region_data.offers} - known):
        region_data.quarantined.append(
            Quarantined(what=name, reason="it has prices, but its hardware is not described anywhere")
        )
    return known, [offer for offer in region_data.offers if offer.instance_type in known]


def _doubts(account: Account, region: str) -> list[Quarantined]:
    """Doubts from account-wide lists about this region (or, under "", about none) that no other region reports."""
    rows = [*account.prices.doubts.get(region, ()), *account.plans.doubts.get(region, ())]
    return sorted(rows, key=lambda row: (row.what, row.reason))


def _doubts_without_region(account: Account) -> list[Quarantined]:
    return [*account.machines.quarantined, *_doubts(account, "")]


def _unique(rows: Iterable[Quarantined]) -> list[Quarantined]:
    return list(dict.fromkeys(rows))
