"""AWS with credentials, region by region: list prices, savings plans, spot by zone, capacity blocks."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from catalog.errors import ProviderFailure, UnusableInput
from catalog.offer import Implausible, Offer
from providers.aws import capacity_blocks, price_list, savings_plans, spot
from providers.aws.account import Account, read_account
from providers.aws.advisor import SpotAdvisor
from providers.aws.calls import CallFailed, Calls
from providers.aws.once import Once
from providers.aws.places import Place
from providers.aws.price_rows import PriceRow
from providers.contract import Quarantined, Rows
from providers.sources import Sources


class _Found:
    """The rows of one region while they come in."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.quarantined: list[Quarantined] = []
        self.whole: set[str] = set()
        self.failures: list[str] = []
        self.notes: list[str] = []


class LiveAws:
    """The rows of an account; what concerns all regions is reported with the first region that is fetched."""

    name = "aws"
    parallel = 16

    def __init__(self, calls: Calls, sources: Sources, *, seed: str, read_at: datetime) -> None:
        self._calls = calls
        self._seed = seed
        self._read_at = read_at
        self._advisor = SpotAdvisor(sources)
        self._account: Once[str, Account] = Once()
        self._lock = threading.Lock()
        self._shared_is_told = False
        self._advisor_is_told = False

    def regions(self) -> Sequence[str]:
        """Regions and Local Zones; those of other partitions too, where the price list has prices of theirs."""
        return self._shared().regions

    def fetch(self, region: str) -> Rows:
        """The rows of a region or Local Zone; see `providers.contract.Provider`."""
        account = self._shared()
        if region not in account.regions:
            raise UnusableInput.at(
                "region", message=f"AWS has no region {region!r}; accepted: {', '.join(account.regions)}"
            )
        found, place = _Found(), account.places.get(region)
        self._list_prices(found, account, region)
        self._plans(found, account, region)
        if place is not None and place.enabled:
            self._own_prices(found, account, place)
        else:
            self._elsewhere(found, account, region)
        if not found.offers and found.failures:
            raise ProviderFailure(found.failures[0])
        return self._rows(found, account, region)

    def _shared(self) -> Account:
        return self._account.get("", lambda: read_account(self._calls, self._seed, read_at=self._read_at))

    def _list_prices(self, found: _Found, account: Account, region: str) -> None:
        for row in account.prices.of(region):
            self._take(found, account, row, price_list.SOURCE)
        if account.prices.whole:
            found.whole |= price_list.KINDS

    def _plans(self, found: _Found, account: Account, region: str) -> None:
        for row, source in account.plans.rows(region):
            self._take(found, account, row, source)
        if account.plans.whole:
            found.whole.update(savings_plans.KINDS)

    def _take(self, found: _Found, account: Account, row: PriceRow, source: str) -> None:
        """Adds the offer of a price, or its reason for being implausible."""
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
            found.quarantined.append(Quarantined(what=what, reason=str(problem)))
        else:
            found.offers.append(offer)

    def _elsewhere(self, found: _Found, account: Account, region: str) -> None:
        """Where no spot prices are asked for: a Local Zone's stand with its parent; others the account may not see."""
        parent = account.place_of(region)
        if parent is None:
            found.notes.append("not among the account's regions: list prices only")
        elif parent.enabled:
            found.whole |= {spot.KIND, capacity_blocks.KIND}
        else:
            found.notes.append("not enabled for this account: list prices only, nothing there is available")

    def _own_prices(self, found: _Found, account: Account, place: Place) -> None:
        found.failures += place.failures
        if place.unreachable:
            return
        sold = account.machines.types.keys() & (
            account.machines.types.keys() if place.offered is None else place.offered
        )
        try:
            rows = spot.read_spot(self._calls, place, frozenset(sold), read_at=self._read_at)
        except CallFailed as failure:
            found.failures.append(f"{failure}; its spot prices stay as they were")
            if failure.unreachable:
                return
        else:
            if place.zones is None and rows.zones:
                place = replace(place, zones=rows.zones)
            rates = self._interruption_rates(found)
            found.offers += [spot.with_interruption_rate(offer, rates) for offer in rows.offers]
            found.quarantined += rows.quarantined
            if sold & account.machines.on_spot and not rows.offers and not rows.quarantined:
                found.failures.append(f"{spot.NOTHING}; its spot prices stay as they were")
            elif not rows.quarantined:
                found.whole.add(spot.KIND)
        blocks = capacity_blocks.read_capacity_blocks(
            self._calls, place, frozenset(sold & account.machines.in_blocks), read_at=self._read_at
        )
        found.offers += blocks.offers
        found.quarantined += blocks.quarantined
        found.failures += blocks.failures
        if not blocks.failures and not blocks.quarantined:
            found.whole.add(capacity_blocks.KIND)

    def _interruption_rates(self, found: _Found) -> dict[tuple[str, str], float]:
        try:
            return dict(self._advisor.interruption_rates())
        except ProviderFailure as failure:
            with self._lock:
                told, self._advisor_is_told = self._advisor_is_told, True
            if not told:
                found.failures.append(f"{failure}; spot rows carry a modelled interruption rate")
            return {}

    def _rows(self, found: _Found, account: Account, region: str) -> Rows:
        with self._lock:
            first, self._shared_is_told = not self._shared_is_told, True
        place = account.places.get(region)
        names = {offer.instance_type for offer in found.offers} | (
            place.offered or frozenset() if place else frozenset()
        )
        found.quarantined += _doubts(account, region)
        if first:
            found.quarantined += _doubts_without_region(account)
        known, offers = _with_hardware(account, found)
        return Rows(
            instance_types=tuple(account.machines.types[name] for name in sorted(names & known)),
            offers=tuple(offers),
            quarantined=tuple(_unique(found.quarantined)),
            whole_kinds=frozenset() if account.machines.failures else frozenset(found.whole),
            closed=account.is_closed(region),
            failures=tuple(found.failures),
            notes=tuple(found.notes),
            provider_failures=account.failures,
            provider_notes=account.notes,
        )


def _available(account: Account, region: str, name: str) -> bool:
    """False where the account may not go, and where EC2 does not sell the type; as listed where EC2 did not say."""
    place = account.place_of(region)
    if place is None:
        return True
    if not place.enabled:
        return False
    return place.region != region or place.offered is None or name in place.offered


def _with_hardware(account: Account, found: _Found) -> tuple[set[str], list[Offer]]:
    """Names whose machine is known, and the offers of those; the others go to quarantine by type."""
    known = set(account.machines.types)
    for name in sorted({offer.instance_type for offer in found.offers} - known):
        found.quarantined.append(Quarantined(what=name, reason="it has prices, but nobody has described its hardware"))
    return known, [offer for offer in found.offers if offer.instance_type in known]


def _doubts(account: Account, region: str) -> list[Quarantined]:
    """What the lists that all regions share say of this one (or, under "", of none) and nobody can take."""
    rows = [*account.prices.doubts.get(region, ()), *account.plans.doubts.get(region, ())]
    return sorted(rows, key=lambda row: (row.what, row.reason))


def _doubts_without_region(account: Account) -> list[Quarantined]:
    return [*account.machines.quarantined, *_doubts(account, "")]


def _unique(rows: Iterable[Quarantined]) -> list[Quarantined]:
    return list(dict.fromkeys(rows))
