"""Read the data that all regions share: lists and price lists, requested concurrently.

A list that does not answer becomes a failure line and leaves the rest whole. Without Compute Engine's price list, or
without any machines, there is nothing to compose and the reading fails.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from gpuplan.catalog.model.offer import Implausible
from gpuplan.catalog.model.tpu_slices import TpuSlice, tpu_slices
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Quarantined
from gpuplan.providers.gcp.api_calls import Patience
from gpuplan.providers.gcp.clients import Account
from gpuplan.providers.gcp.hardware import described
from gpuplan.providers.gcp.listed_places import Attachable, Machine, Places, TpuTypes, Unread, region_of
from gpuplan.providers.gcp.mapping_tables import attached_as, known_components, tpu_machines
from gpuplan.providers.gcp.price_composition import Described, components_of
from gpuplan.providers.gcp.price_list import COMPUTE_ENGINE, listed_skus
from gpuplan.providers.gcp.skus import PricedSku, Prices, read_skus


@cache
def slice_named(accelerator_type: str) -> TpuSlice | None:
    """The documented slice of the TPU API's accelerator type (`v5p-8`), None for larger or unknown ones."""
    names = {accelerator_type, f"tpu-{accelerator_type}"}
    return next((tpu_slice for tpu_slice in tpu_slices() if tpu_slice.name in names), None)


def slices_in_zone(api_types: Collection[str], machine_types: Iterable[str]) -> list[TpuSlice]:
    """The slices of one zone, in the order of the table.

    `api_types` are the TPU API's accelerator types in the zone (empty if it did not answer), `machine_types` the
    accelerator types of Compute Engine's machines in the zone (`ct5lp`).
    """
    by_api = {tpu_slice.name for tpu_slice in map(slice_named, api_types) if tpu_slice is not None}
    listed = {tpu_slice.accelerator for tpu_slice in tpu_slices() if tpu_slice.name in by_api}
    hosts = [tpu_machines()[name] for name in machine_types if name in tpu_machines()]
    shown = {
        tpu_slice.name
        for host in hosts
        if host.accelerator not in listed
        for tpu_slice in tpu_slices()
        if tpu_slice.accelerator == host.accelerator and (host.single_hosts if tpu_slice.hosts == 1 else host.pods)
    }
    return [tpu_slice for tpu_slice in tpu_slices() if tpu_slice.name in by_api | shown]


CLOUD_TPU = "services/E000-3F24-B8AA"
#: Patterns of instance type names per list: machines with their own accelerators, N1 with GPUs attached, TPU slices, or any
#: of them.
MACHINES = r"(?!tpu-)[^+]*"
ATTACHED = r".*\+.*"
SLICES = r"tpu-.*"
ALL = r".*"
FROM_MACHINES = "slices are taken from machine types, others stay as they were"


@dataclass(slots=True, kw_only=True)
class Reading:
    """The shared data by region; `failures` concern every region, `failures_in` one.

    `unread` and `unread_in` are the instance types whose list did not answer (see `Rows.unread_types`).
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
        """Every possible component of an accelerated machine; most SKUs price other parts."""
        new = {machine.shape.name: machine.shape for machines in self.machines_in.values() for machine in machines}
        return known_components().union(*map(components_of, new.values()))

    def failed(self, line: str, *types: str) -> None:
        """Record that a shared list did not answer; its `types` stay unchanged."""
        self.failures.append(line)
        self.unread.update(types)

    def failed_in(self, region: str, line: str, *types: str) -> None:
        """Record that a region's part of a list did not answer."""
        self.failures_in[region].append(line)
        self.unread_in[region].update(types)

    def unread_types(self, region: str) -> frozenset[str]:
        """The instance types of this region whose existence is unconfirmed."""
        return frozenset(self.unread | self.unread_in.get(region, set()))


def read_prices(
    account: Account, sources: Sources, patience: Patience, read_at: datetime, service: str
) -> list[PricedSku]:
    """The SKUs of one service that price a part of some machine.

    Raises `ProviderFailure`, also for an empty list, which a wrong service id would give.
    """
    return listed_skus(service, lambda page: read_skus(page, read_at), account, sources, patience=patience)


def read_all(
    account: Account,
    sources: Sources,
    patience: Patience,
    read_at: datetime,
    zones_by_region: Mapping[str, tuple[str, ...]],
) -> Reading:
    """Machines, GPUs, TPU slices and prices of all regions. Raises `ProviderFailure` if no price can be composed."""
    places = Places(account, sources, patience)
    with ThreadPoolExecutor(4) as pool:
        skus = pool.submit(read_prices, account, sources, patience, read_at, COMPUTE_ENGINE)
        tpu_skus = pool.submit(read_prices, account, sources, patience, read_at, CLOUD_TPU)
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
    """Run a call; if its list does not answer, record that its instance types stay unchanged."""
    try:
        yield
    except ProviderFailure as error:
        reading.failed(f"{error}; {what_stays}", *types)


def _tpu_zones(places: Places, zones_by_region: Mapping[str, tuple[str, ...]]) -> tuple[TpuTypes, list[str]]:
    """The TPU API's answer for every zone of the region or zone lists, and the failures."""
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
        _add_machine(
            reading, sorted(zones_of[name], key=lambda listing: (listing.retired, listing.zone)), f"{read_at:%Y-%m}"
        )


def _add_machine(reading: Reading, in_zones: list[Machine], as_of: str) -> None:
    """Add a type as one machine, described by its first zone that does not retire it."""
    first, regions = in_zones[0], sorted({region_of(in_zone.zone) for in_zone in in_zones})
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
    for attachable in attachables:
        gpu = attached_as(attachable.accelerator_type)
        if gpu:
            reading.attached_in[region_of(attachable.zone)].add(gpu)


def _add_unread(reading: Reading, what: str, unread: list[Unread], *types: str) -> None:
    for problem in unread:
        line = f"gcp Compute Engine, {what} of {problem.what}: {problem.reason}; they stay as they were"
        reading.failed_in(region_of(problem.what), line, *types)


def _add_slices(reading: Reading, tpus: TpuTypes, failures: list[str], hosts: Mapping[str, set[str]]) -> None:
    for line in failures:
        reading.failed(line, SLICES)
    if tpus.refused and not tpus.by_zone:
        first = min(tpus.refused)
        reading.failed(f"{tpus.refused[first]} (and so in every zone); {FROM_MACHINES}", SLICES)
    elif tpus.refused:
        reading.notes.append("zones in which this project may not see TPUs: " + ", ".join(sorted(tpus.refused)))
    for zone, reason in sorted(tpus.failed.items()):
        reading.failed_in(region_of(zone), f"{reason}; {FROM_MACHINES}", SLICES)
    for zone in sorted({*tpus.by_zone, *tpus.failed, *tpus.refused, *hosts}):
        slices = slices_in_zone(tpus.by_zone.get(zone, frozenset()), sorted(hosts.get(zone, ())))
        if slices:
            reading.slices_in[region_of(zone)][zone] = slices
