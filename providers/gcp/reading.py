"""The one reading that all regions share: listings and price lists, asked for at the same time.

What does not answer is a line among the failures and leaves the rest whole; without the price list of
Compute Engine, or without any machines, there is nothing to compose and the reading fails.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from catalog.errors import ProviderFailure
from catalog.left_out import left_out
from catalog.offer import Implausible
from catalog.tpu_slices import TpuSlice
from providers.contract import Quarantined
from providers.gcp.calls import Patience, listed
from providers.gcp.clients import Account, billing_client
from providers.gcp.compose import Described, components_of
from providers.gcp.hardware import described
from providers.gcp.places import Attachable, Machine, Places, TpuTypes, Unread, region_of
from providers.gcp.skus import PricedSku, Prices, read_skus
from providers.gcp.tables import attached_as, known_components, tpu_machines
from providers.gcp.tpus import slices_in_zone
from providers.sources import Sources

COMPUTE_ENGINE = "services/6F81-5844-456A"
CLOUD_TPU = "services/E000-3F24-B8AA"
#: The service gives up to 5,000; smaller pages take less memory at once, and 25 more calls little time.
SKUS_PER_PAGE = 1000
#: Which instance types come from which list, by their names: machines with their own accelerators, N1 with GPUs
#: attached, TPU slices, or any of them.
MACHINES = r"(?!tpu-)[^+]*"
ATTACHED = r".*\+.*"
SLICES = r"tpu-.*"
ALL = r".*"
FROM_MACHINES = "slices are taken from machine types, others stay as they were"


@dataclass(slots=True, kw_only=True)
class Reading:
    """What was read, by region; `failures` concern every region, `failures_in` one.

    `unread` and `unread_in` say of which instance types the list did not answer (see `Rows.unread_types`).
    """

    prices: Prices
    machines_in: dict[str, list[Described]] = field(default_factory=lambda: defaultdict(list))
    attached_in: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    slices_in: dict[str, dict[str, list[TpuSlice]]] = field(default_factory=lambda: defaultdict(dict))
    quarantined_in: dict[str, list[Quarantined]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    failures_in: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unread: set[str] = field(default_factory=set)
    unread_in: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    notes: list[str] = field(default_factory=list)

    def components(self) -> frozenset[str]:
        """Every component that a machine with an accelerator may be made of; most SKUs price parts of others."""
        new = {each.shape.name: each.shape for machines in self.machines_in.values() for each in machines}
        return known_components().union(*map(components_of, new.values()))

    def failed(self, line: str, *types: str) -> None:
        """A list that all regions share did not answer; those of `types` stay as they were."""
        self.failures.append(line)
        self.unread.update(types)

    def failed_in(self, region: str, line: str, *types: str) -> None:
        """The part of a list that concerns one region did not answer."""
        self.failures_in[region].append(line)
        self.unread_in[region].update(types)

    def unread_types(self, region: str) -> frozenset[str]:
        """The instance types of this region of which nobody knows whether they are still there."""
        return frozenset(self.unread | self.unread_in.get(region, set()))


def read_prices(who: Account, sources: Sources, patience: Patience, read_at: datetime, service: str) -> list[PricedSku]:
    """The SKUs of one service that price a part of some machine.

    Raises `ProviderFailure`, also for an empty list: a service with a mistaken id looks like that.
    """
    from google.cloud import billing_v1

    what = f"gcp Cloud Billing Catalog, SKUs of {service}"
    request = billing_v1.ListSkusRequest(parent=service, currency_code="USD", page_size=SKUS_PER_PAGE)
    seen = 0

    def rows_of(page: billing_v1.ListSkusResponse) -> list[PricedSku]:
        nonlocal seen
        seen += len(billing_v1.ListSkusResponse.pb(page).skus)
        return read_skus(page, read_at)

    with billing_client(who, sources) as client:
        skus = listed(what, client.list_skus, request, rows_of, patience=patience, secrets=(who.api_key,))
    if not seen:
        raise ProviderFailure(f"{what}: the list is empty, which a price list never is")
    return skus


def read_all(
    who: Account,
    sources: Sources,
    patience: Patience,
    read_at: datetime,
    zones_by_region: Mapping[str, tuple[str, ...]],
) -> Reading:
    """Machines, GPUs, TPU slices and prices of all regions. Raises `ProviderFailure` if no price can be composed."""
    places = Places(who, sources, patience)
    with ThreadPoolExecutor(4) as pool:
        skus = pool.submit(read_prices, who, sources, patience, read_at, COMPUTE_ENGINE)
        tpu_skus = pool.submit(read_prices, who, sources, patience, read_at, CLOUD_TPU)
        machines = pool.submit(places.machines)
        attachables = pool.submit(places.attachables)
        zones = pool.submit(_tpu_zones, places, zones_by_region)
    reading = Reading(prices=Prices())
    reading.prices.add(skus.result())
    with _tried(reading, "prices of TPU v2 to v4 stay as they were", SLICES):
        reading.prices.add(tpu_skus.result())
    hosts: dict[str, set[str]] = defaultdict(set)
    with _tried(reading, "machines stay as they were", MACHINES, SLICES):
        _add_machines(reading, *machines.result(), hosts, read_at)
    with _tried(reading, "N1 machines stay as they were", ATTACHED):
        _add_attachables(reading, *attachables.result())
    with _tried(reading, "TPU slices stay as they were", SLICES):
        _add_slices(reading, *zones.result(), hosts)
    if not (reading.machines_in or reading.attached_in or reading.slices_in):
        raise ProviderFailure(
            "; ".join(reading.failures) or "gcp: no machine with an accelerator is listed in any zone"
        )
    return reading


@contextmanager
def _tried(reading: Reading, what_stays: str, *types: str) -> Iterator[None]:
    """A list that does not answer leaves the others whole; the instance types that come from it stay as they were."""
    try:
        yield
    except ProviderFailure as error:
        reading.failed(f"{error}; {what_stays}", *types)


def _tpu_zones(places: Places, zones_by_region: Mapping[str, tuple[str, ...]]) -> tuple[TpuTypes, list[str]]:
    """The TPU API's answer for every zone that the regions or the zones name, and what failed on the way."""
    named = {zone for zones in zones_by_region.values() for zone in zones}
    failures = []
    try:
        named.update(places.zones())
    except ProviderFailure as error:
        if not named:
            raise
        failures.append(f"{error}; the zones are those that the regions name")
    return places.tpu_types(sorted(named)), failures


def _add_machines(
    reading: Reading, machines: list[Machine], unread: list[Unread], hosts: dict[str, set[str]], read_at: datetime
) -> None:
    _add_unread(reading, "machine types", unread, MACHINES, SLICES)
    zones_of: dict[str, list[Machine]] = defaultdict(list)
    for machine in machines:
        if machine.accelerator_type in tpu_machines():
            hosts[machine.zone].add(machine.accelerator_type)
        elif machine.name not in left_out():
            zones_of[machine.name].append(machine)
    for name in sorted(zones_of):
        _add_machine(reading, sorted(zones_of[name], key=lambda each: (each.retired, each.zone)), f"{read_at:%Y-%m}")


def _add_machine(reading: Reading, in_zones: list[Machine], as_of: str) -> None:
    """One type is one machine wherever it stands: as the first zone that does not retire it says."""
    first, regions = in_zones[0], sorted({region_of(each.zone) for each in in_zones})
    try:
        made = described(first, as_of)
        reason = f"accelerator {first.accelerator_type!r} is not in gpuplan's table yet"
    except Implausible as error:
        made, reason = None, str(error)
    for region in regions:
        if made is not None:
            reading.machines_in[region].append(made)
        else:
            reading.quarantined_in[region].append(Quarantined(what=first.name, reason=reason))


def _add_attachables(reading: Reading, attachables: list[Attachable], unread: list[Unread]) -> None:
    _add_unread(reading, "accelerator types", unread, ATTACHED)
    for each in attachables:
        gpu = attached_as(each.accelerator_type)
        if gpu:
            reading.attached_in[region_of(each.zone)].add(gpu)


def _add_unread(reading: Reading, what: str, unread: list[Unread], *types: str) -> None:
    for each in unread:
        line = f"gcp Compute Engine, {what} of {each.what}: {each.reason}; they stay as they were"
        reading.failed_in(region_of(each.what), line, *types)


def _add_slices(reading: Reading, tpus: TpuTypes, failures: list[str], hosts: Mapping[str, set[str]]) -> None:
    for line in failures:
        reading.failed(line, SLICES)
    if tpus.refused and not tpus.found:
        first = min(tpus.refused)
        reading.failed(f"{tpus.refused[first]} (and so in every zone); {FROM_MACHINES}", SLICES)
    elif tpus.refused:
        reading.notes.append("zones in which this project may not see TPUs: " + ", ".join(sorted(tpus.refused)))
    for zone, reason in sorted(tpus.failed.items()):
        reading.failed_in(region_of(zone), f"{reason}; {FROM_MACHINES}", SLICES)
    for zone in sorted({*tpus.found, *tpus.failed, *tpus.refused, *hosts}):
        slices = slices_in_zone(tpus.found.get(zone, frozenset()), sorted(hosts.get(zone, ())))
        if slices:
            reading.slices_in[region_of(zone)][zone] = slices
