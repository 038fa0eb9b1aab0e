"""Data shared by all regions of an AWS account, read once: places, machines, list prices, savings plans.

DescribeRegions comes first and alone, so that wrong credentials cost one call. The price list is the slow part (a hundred
queries at five a second); it starts with the known types while EC2 is queried for others.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws.api_calls import BAD_CREDENTIALS, CallFailed, Calls
from gpuplan.providers.aws.hardware import Machines, confirm_on_demand, read_machines
from gpuplan.providers.aws.price_list import PriceListReader, Prices
from gpuplan.providers.aws.price_rows import WAVELENGTH_ZONE
from gpuplan.providers.aws.regions_and_zones import Place, listed_regions, read_place, regions_of_the_table
from gpuplan.providers.aws.savings_plans import PlanRates, read_plan_rates

#: Concurrent queries for zones and offerings; each region has its own rate limits.
AT_ONCE = 16
CHECK_CREDENTIALS = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (or the profile), and this machine's clock"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account's data before any region's own prices are read; `regions` are all that may be fetched.

    `places` holds the regions that EC2 lists; Local Zones and regions of other partitions are known from the price list
    only. `listed` is False if EC2 did not list regions. `failures` are those of account-wide calls.
    """

    places: Mapping[str, Place]
    listed: bool
    machines: Machines
    prices: Prices
    plans: PlanRates
    regions: tuple[str, ...]
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    def place_of(self, region: str) -> Place | None:
        """The region itself or, for a Local Zone, its parent."""
        place = self.places.get(region)
        return place or next((place for name, place in self.places.items() if region.startswith(f"{name}-")), None)

    def is_closed(self, region: str) -> bool:
        """Whether the account may rent nothing in it: not opted in, or another partition.

        A Local Zone has the state of its parent region.
        """
        place = self.place_of(region)
        return self.listed if place is None else not place.enabled


def read_account(calls: Calls, seed: str, *, read_at: datetime) -> Account:
    """Read all shared data. Raises `ProviderFailure` if AWS rejects the credentials or answers nothing at all."""
    region_places = {
        instance_type.name for instance_type in embedded_instance_types() if instance_type.provider == "aws"
    }
    enabled, failures, reachable = _regions(calls, seed)
    listed = not failures
    reader = PriceListReader(calls)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aws-account") as pool:
        known = pool.submit(reader.read, region_places)
        asked = {
            name: pool.submit(_place, calls, name, is_enabled and reachable, is_enabled)
            for name, is_enabled in enabled.items()
        }
        places = {name: future.result() for name, future in asked.items()}
        machines = read_machines(calls, places.values(), as_of=read_at.date().isoformat())
        plans = pool.submit(read_plan_rates, calls, machines.types)
        reader.read(machines.types.keys() - region_places)
        known.result()
    prices, rates = reader.prices(), plans.result()
    on_demand = {row.instance_type for row in prices.rows if row.price_kind == "on_demand"}
    confirm_on_demand(machines, on_demand, as_of=read_at.date().isoformat())
    failures += [*prices.failures, *rates.failures, *machines.failures]
    answered = [place for place in places.values() if place.zones is not None or place.offered is not None]
    if not prices.rows and not answered:
        raise ProviderFailure(
            f"AWS gave neither prices nor machines: {failures[0] if failures else 'no region is enabled'}"
        )
    return Account(
        places=places,
        listed=listed,
        machines=machines,
        prices=prices,
        plans=rates,
        regions=_all_regions(places, prices, whole=not failures),
        failures=tuple(failures),
        notes=tuple(_notes(machines, prices)),
    )


def _regions(calls: Calls, seed: str) -> tuple[dict[str, bool], list[str], bool]:
    """Regions with their opt-in state, failures, and whether EC2 answers at all."""
    try:
        listed = listed_regions(calls, seed)
    except CallFailed as failure:
        if failure.code in BAD_CREDENTIALS:
            raise ProviderFailure(f"AWS does not accept the credentials ({failure}); {CHECK_CREDENTIALS}") from failure
        line = f"{failure}; the regions are those that gpuplan knows"
        return regions_of_the_table(), [line], not failure.unreachable
    if not listed:
        return (
            regions_of_the_table(),
            ["ec2 describe_regions: no region; the regions are those that gpuplan knows"],
            True,
        )
    return listed, [], True


def _place(calls: Calls, region: str, ask: bool, enabled: bool) -> Place:
    return read_place(calls, region) if ask else Place(region=region, enabled=enabled, unreachable=True)


def _all_regions(places: Mapping[str, Place], prices: Prices, *, whole: bool) -> tuple[str, ...]:
    """Regions that EC2 or the price list has; after a failure also the known ones.

    An unlisted region counts as gone, which a failed call does not prove.
    """
    names = set(places) | {row.region for row in prices.rows}
    names |= {group for place in places.values() for group in place.local_zone_groups}
    if not whole or any(place.zones is None for place in places.values()):
        known = [region for region in known_regions().values() if region.provider == "aws"]
        names |= {region.name for region in known if region.partition != "china"}
    return tuple(sorted(name for name in names if not WAVELENGTH_ZONE.search(name)))


def _notes(machines: Machines, prices: Prices) -> list[str]:
    notes = list(machines.notes)
    if undescribed := machines.undescribed & {row.instance_type for row in prices.rows}:
        names = ", ".join(sorted(undescribed))
        notes.append(
            f"priced, and not described to this account by EC2; their hardware is gpuplan's own table's: {names}"
        )
    if prices.wavelength:
        zones = ", ".join(sorted(prices.wavelength))
        notes.append(f"Wavelength zones are left out, being inside carriers' networks and not for training: {zones}")
    return notes
