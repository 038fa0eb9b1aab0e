"""AWS without credentials: list prices from public price files, spot modelled from the public spot advisor.

Rows that no public source covers (spot prices by zone, capacity blocks, the regions of an account) stay unchanged, and a
note says so.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.aws.advisor import SpotAdvisor
from gpuplan.providers.aws.file_addresses import parent_of
from gpuplan.providers.aws.price_rows import RESERVED_KINDS
from gpuplan.providers.aws.priced_files import Priced, PriceFiles
from gpuplan.providers.aws.public_offers import PROVIDER, RegionOffers, hardware
from gpuplan.providers.aws.savings_plan_files import KINDS as PLAN_KINDS
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Provider, Quarantined, Rows
from gpuplan.providers.feed_client import MissingResource

#: The network is the bottleneck: a region's file is about a hundred megabytes, or tens when compressed.
PARALLEL = 4
LISTED_KINDS = frozenset({"on_demand", *RESERVED_KINDS.values()})
_NOT_READ = (
    "spot prices by zone, capacity blocks and the account's own regions were not read, earlier prices "
    "of these kinds stay and are marked stale"
)
_SET = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
WITHOUT_CREDENTIALS = f"no AWS credentials: {_NOT_READ}; {_SET}"
#: With a place for the missing module and how to install it.
WITHOUT_SDK = f"no AWS SDK: {_NOT_READ}; they need {{}} and credentials: {_SET}"
NO_PLAN_FILES = "savings plans: AWS has no public price files of them at this address, earlier rates stay as they were"


def price_files_provider(sources: Sources, *, read_at: datetime, why: str = WITHOUT_CREDENTIALS) -> Provider:
    """AWS through its public files; reads nothing before the first call. `why` says what they lack, and why."""
    return _PublicAws(sources, read_at, why)


class _PublicAws:
    """A `Provider` over public files; findings about all regions are reported with the first finished region."""

    def __init__(self, sources: Sources, read_at: datetime, why: str) -> None:
        self._files = PriceFiles(sources, instance_types=frozenset(hardware()))
        self._advisor = SpotAdvisor(sources)
        self._read_at = read_at
        self._why = why
        self._said: set[str] = set()
        self._lock = Lock()

    @property
    def name(self) -> str:
        return PROVIDER

    @property
    def parallel(self) -> int:
        return PARALLEL

    def regions(self) -> Sequence[str]:
        return self._files.places()

    def fetch(self, region: str) -> Rows:
        places = self._files.places()
        if region not in places:
            raise UnusableInput.at("region", message=f"{region!r} is none that AWS has prices for: {', '.join(places)}")
        priced = self._files.priced(region)
        zones = frozenset(place for place in priced.rows if place not in places and parent_of(place) == region)
        gathered = RegionOffers(region=region, zones=zones, read_at=self._read_at)
        for place in (region, *sorted(zones)):
            gathered.add_listed(priced.rows.get(place, ()))
            gathered.quarantined += priced.doubts.get(place, ())
        gathered.quarantined += self._of_no_place(priced)
        failures: list[str] = []
        provider_failures: list[str] = []
        provider_notes = [self._why]
        plan_kinds = self._add_plan_rates(gathered, failures, provider_notes)
        self._add_spot(gathered, provider_failures)
        gathered.notes += _strangers(priced, places)
        return Rows(
            instance_types=gathered.instance_types,
            offers=tuple(gathered.offers),
            quarantined=tuple(gathered.quarantined),
            whole_kinds=LISTED_KINDS | plan_kinds,
            failures=self._not_yet_noted(failures),
            notes=self._not_yet_noted(gathered.notes),
            provider_failures=tuple(provider_failures),
            provider_notes=tuple(provider_notes),
        )

    def _add_plan_rates(self, gathered: RegionOffers, failures: list[str], provider_notes: list[str]) -> frozenset[str]:
        """Add the rates; returns the kinds that were read completely."""
        try:
            plans = self._files.plan_rates(gathered.region)
        except MissingResource:
            provider_notes.append(NO_PLAN_FILES)
            return frozenset()
        except ProviderFailure as failure:
            failures.append(f"savings plans: {failure}; earlier rates stay as they were")
            return frozenset()
        gathered.add_plan_rates(plans.rates)
        for place in (gathered.region, *sorted(gathered.zones)):
            gathered.quarantined += plans.doubts.get(place, ())
        return frozenset(PLAN_KINDS.values())

    def _add_spot(self, gathered: RegionOffers, provider_failures: list[str]) -> None:
        try:
            gathered.add_spot(self._advisor.savings(), self._advisor.interruption_rates())
        except ProviderFailure as failure:
            provider_failures.append(
                f"spot advisor: {failure}; spot prices are not modelled, earlier ones stay as they were"
            )

    def _of_no_place(self, priced: Priced) -> list[Quarantined]:
        """Findings about products in no known place, reported with the first region that reads the file."""
        fresh = set(self._not_yet_noted(doubt.what for doubt in priced.doubts.get("", ())))
        return [doubt for doubt in priced.doubts.get("", ()) if doubt.what in fresh]

    def _not_yet_noted(self, lines: Iterable[str]) -> tuple[str, ...]:
        """The lines that no region has reported before."""
        with self._lock:
            fresh = tuple(dict.fromkeys(line for line in lines if line not in self._said))
            self._said.update(fresh)
        return fresh


def _strangers(priced: Priced, places: Sequence[str]) -> list[str]:
    """A note for each region that has prices in a file but is not listed."""
    return [
        f"{place}: {len(rows)} prices in the file of another region are left out, for no index lists it"
        for place, rows in sorted(priced.rows.items())
        if rows and place not in places and parent_of(place) not in places
    ]
