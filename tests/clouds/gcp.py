"""A local server that speaks the REST of Compute Engine, Cloud TPU and the Cloud Billing Catalog.

It serves the GCP part of the embedded catalogue: machines by zone, GPUs to attach, TPU slices by zone, and unit
prices from which the catalogue's totals follow (`gcp_unit_prices`). What fits no such prices is not served.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.tpu_slices import TpuSlice, tpu_slices
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from tests.clouds.gcp_skus import Sku, component_sku, neighbours, padding, sku, ssd_sku
from tests.clouds.gcp_unit_prices import HALF, SSD_NANOS_PER_GIB_MONTH, machine_of, unit_prices
from tests.clouds.server import CloudServer, Reply, Request

COMPUTE_ENGINE = "6F81-5844-456A"
CLOUD_TPU = "E000-3F24-B8AA"
GUEST_ACCELERATORS = {
    "A100-40GB-SXM": "nvidia-tesla-a100",
    "A100-80GB-SXM": "nvidia-a100-80gb",
    "H100-80GB-SXM": "nvidia-h100-80gb",
    "L4": "nvidia-l4",
    "RTX-PRO-6000-Blackwell-Server": "nvidia-rtx-pro-6000",
}
#: Accelerator, SKU for one host, SKU for more, service, chips that the SKU's unit holds.
TPUS = {
    "TPU-v2": ("Tpu-v2", "Tpu-v2 Pod", CLOUD_TPU, 4),
    "TPU-v3": ("Tpu-v3", "Tpu-v3 Pod", CLOUD_TPU, 4),
    "TPU-v4": ("Tpu-v4 Pod", "Tpu-v4 Pod", CLOUD_TPU, 4),
    "TPU-v5e": ("TpuV5e", "TpuV5e", COMPUTE_ENGINE, 1),
    "TPU-v5p": ("TpuV5p", "TpuV5p", COMPUTE_ENGINE, 1),
    "TPU-v6e": ("TpuV6e", "TpuV6e", COMPUTE_ENGINE, 1),
}
WRONG_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}
Item = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class GcpCatalogue:
    """What the server holds; tests add to it or take from it before they start.

    `offers` are the rows that a refresh must give back (available, since a zone lists the machine),
    `instance_types` their machines; `left_out` rows of the embedded catalogue are sums of no unit prices.
    """

    zones: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    machines: dict[str, list[Item]] = field(default_factory=lambda: defaultdict(list))
    attachable: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    tpu_types: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    skus: dict[str, list[Sku]] = field(default_factory=lambda: {COMPUTE_ENGINE: [], CLOUD_TPU: []})
    offers: list[Offer] = field(default_factory=list)
    instance_types: dict[str, InstanceType] = field(default_factory=dict)
    left_out: int = 0

    def add_zone(self, zone: str) -> None:
        """A zone and its region, once."""
        region = zone.rpartition("-")[0]
        if zone not in self.zones[region]:
            self.zones[region].append(zone)

    def add_machine(self, zone: str, item: Item) -> None:
        """A machine type in one zone."""
        self.add_zone(zone)
        self.machines[zone].append({**item, "zone": zone})


def machine_item(
    name: str, vcpus: int, ram_gib: Fraction | int, accelerator: str = "", count: int = 0, ssd_partitions: int = 0
) -> Item:
    """A machine type as Compute Engine states it."""
    item: Item = {
        "kind": "compute#machineType",
        "id": "1000012",
        "creationTimestamp": "1969-12-31T16:00:00.000-08:00",
        "name": name,
        "description": name,
        "guestCpus": vcpus,
        "memoryMb": int(ram_gib * 1024),
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "isSharedCpu": False,
        "architecture": "X86_64",
    }
    if accelerator:
        item["accelerators"] = [{"guestAcceleratorType": accelerator, "guestAcceleratorCount": count}]
    if ssd_partitions:
        item["bundledLocalSsds"] = {"defaultInterface": "NVME", "partitionCount": ssd_partitions}
    return item


def gcp_catalogue(*, sku_count: int | None = None) -> GcpCatalogue:
    """The embedded catalogue as GCP would list it, padded to `sku_count` SKUs of Compute Engine."""
    made = GcpCatalogue()
    types = {
        instance_type.name: instance_type
        for instance_type in embedded_snapshot().instance_types
        if instance_type.provider == "gcp"
    }
    units = unit_prices()
    made.left_out = units.left_out
    made.offers += units.rows
    for name, region in sorted({(row.instance_type, row.region) for row in units.rows}):
        _add_type(made, types[name], region)
    compute = made.skus[COMPUTE_ENGINE]
    compute += [component_sku(name, kind, nanos, region) for (name, region, kind), nanos in sorted(units.nanos.items())]
    regions = sorted({row.region for row in units.rows})
    compute += [ssd_sku(kind, nanos, regions) for kind, nanos in SSD_NANOS_PER_GIB_MONTH.items()]
    _add_tpus(made)
    compute += neighbours(regions[0])
    compute += padding(max(0, (sku_count or 0) - len(compute)))
    made.offers = [replace(row, available=True) for row in made.offers]
    made.instance_types = {row.instance_type: types[row.instance_type] for row in made.offers}
    for zones in list(made.zones.values()):
        for zone in zones:
            made.machines[zone] += [
                {**machine_item(f"n1-standard-{n}", n, Fraction(15, 4) * n), "zone": zone} for n in (1, 4, 8)
            ]
    return made


def _add_type(made: GcpCatalogue, instance_type: InstanceType, region: str) -> None:
    """A machine stands in zone a, a GPU to attach in zones a and b beside its workstation variant."""
    made.add_zone(f"{region}-b")
    if "+" in instance_type.name:
        gpu = f"nvidia-tesla-{instance_type.name.rpartition('x')[2].lower()}"
        for zone in (f"{region}-a", f"{region}-b"):
            made.add_zone(zone)
            if gpu not in made.attachable[zone]:
                made.attachable[zone] += [gpu, f"{gpu}-vws"]
        return
    parts = machine_of(instance_type)
    assert parts is not None
    accelerator = "nvidia-h100-mega-80gb" if "mega" in instance_type.name and parts.host == "A3Plus" else ""
    accelerator = accelerator or GUEST_ACCELERATORS[instance_type.accelerator]
    item = machine_item(
        instance_type.name, parts.vcpus, parts.ram_gib, accelerator, instance_type.devices, parts.ssd_gib // 375
    )
    made.add_machine(f"{region}-a", item)


def _add_tpus(made: GcpCatalogue) -> None:
    """Slices by zone, at one price per region, generation and kind; rows of other prices are left out."""
    slices = {tpu_slice.name: tpu_slice for tpu_slice in tpu_slices()}
    rows = [row for row in embedded_snapshot().offers if row.provider == "gcp" and row.zone]
    spans: dict[tuple[str, str, str, str], list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for row in rows:
        spans[_tpu_key(row, slices)].append(_tpu_span(row, slices[row.instance_type]))
    prices = {key: _common(span) for key, span in spans.items()}
    fits = {row.key for row in rows if _fits(row, prices[_tpu_key(row, slices)], slices)}
    sold = {(description, region, kind) for description, _, region, kind in prices}
    whole = {
        (row.zone, row.instance_type)
        for row in rows
        if all(
            (row.provider, row.region, row.zone, row.instance_type, kind) in fits
            for kind in ("on_demand", "spot")
            if (_tpu_key(row, slices)[0], row.region, kind) in sold
        )
    }
    for row in rows:
        if (row.zone, row.instance_type) in whole:
            made.offers.append(row)
            made.add_zone(row.zone)
            name = row.instance_type.removeprefix("tpu-")
            made.tpu_types[row.zone] += [] if name in made.tpu_types[row.zone] else [name]
        else:
            made.left_out += 1
    used = {_tpu_key(row, slices) for row in made.offers if row.zone}
    for (description, service, region, kind), nanos in sorted(prices.items()):
        if (description, service, region, kind) in used:
            made.skus[service].append(_tpu_sku(description, service, nanos, region, kind))


def _tpu_key(row: Offer, slices: dict[str, TpuSlice]) -> tuple[str, str, str, str]:
    item = slices[row.instance_type]
    single, pod, service, _ = TPUS[item.accelerator]
    return (pod if item.hosts > 1 else single, service, row.region, row.price_kind)


def _tpu_span(row: Offer, tpu_slice: TpuSlice) -> tuple[Fraction, Fraction]:
    """Nano-dollars of the SKU's unit between which a host's price rounds to the row's."""
    units = tpu_slice.chips_per_host / TPUS[tpu_slice.accelerator][3]
    return tuple((row.usd_micros_per_hour + side) * 1000 / units for side in (-HALF, HALF))  # type: ignore[return-value]


def _common(spans: list[tuple[Fraction, Fraction]]) -> int:
    """A whole number in as many spans as possible."""
    middles = dict.fromkeys(round((max(a[0], b[0]) + min(a[1], b[1])) / 2) for a in spans for b in spans)
    whole = [(ceil(low), floor(high)) for low, high in spans]
    return max(middles, key=lambda item: sum(low <= item <= high for low, high in whole))


def _fits(row: Offer, nanos: int, slices: dict[str, TpuSlice]) -> bool:
    low, high = _tpu_span(row, slices[row.instance_type])
    return low <= nanos <= high


def _tpu_sku(description: str, service: str, nanos: int, region: str, kind: str) -> Sku:
    """New generations have a usage type of their own for spot; the old service says OnDemand and "Preemptible"."""
    place = region.title()
    if service == CLOUD_TPU:
        return sku(
            f"{'Preemptible ' if kind == 'spot' else ''}{description} running in {place}", nanos, [region], group="TPU"
        )
    attached = " attached to Spot Preemptible VMs" if kind == "spot" else ""
    usage = "Preemptible" if kind == "spot" else "OnDemand"
    return sku(f"{description}{attached} running in {place}", nanos, [region], group="TPU", usage=usage)


class GcpServer(CloudServer):
    """The three services on one port; `project` is the only one that there is.

    With `api_key` the price list refuses any other key; `most_per_page` is what the server gives at once
    however much is asked for.
    """

    def __init__(
        self,
        catalogue: GcpCatalogue | None = None,
        *,
        project: str = "project",
        api_key: str | None = None,
        most_per_page: int = 5000,
        latency_seconds: float = 0.0,
    ) -> None:
        super().__init__(self._answer, latency_seconds=latency_seconds)
        self.catalogue = catalogue or gcp_catalogue()
        self.project = project
        self.api_key = api_key
        self.most_per_page = most_per_page

    def _answer(self, request: Request) -> Reply:
        parts = request.path.strip("/").split("/")
        match parts:
            case ["compute", "v1", "projects", self.project, "regions"]:
                return self._page(request, "maxResults", self._regions())
            case ["compute", "v1", "projects", self.project, "zones"]:
                return self._page(request, "maxResults", self._zones())
            case ["compute", "v1", "projects", self.project, "aggregated", "machineTypes"]:
                return self._aggregated(request, "machineTypes", self.catalogue.machines)
            case ["compute", "v1", "projects", self.project, "aggregated", "acceleratorTypes"]:
                kinds = {
                    zone: [_accelerator_type(name) for name in names]
                    for zone, names in self.catalogue.attachable.items()
                }
                return self._aggregated(request, "acceleratorTypes", kinds)
            case ["v1", "services", service, "skus"]:
                if self.api_key is not None and request.headers.get("x-goog-api-key") != self.api_key:
                    return _json(WRONG_KEY, status=400)
                return self._page(request, "pageSize", self.catalogue.skus.get(service, []), key="skus", token="")
            case ["v2", "projects", self.project, "locations", zone, "acceleratorTypes"]:
                names = self.catalogue.tpu_types.get(zone, [])
                return self._page(
                    request, "pageSize", [_tpu_type(zone, name) for name in names], key="acceleratorTypes"
                )
            case _:
                return _json({"error": {"code": 404, "message": f"{request.path} was not found"}}, status=404)

    def _regions(self) -> list[Item]:
        base = f"{self.url}/compute/v1/projects/{self.project}"
        return [
            {"name": region, "status": "UP", "zones": [f"{base}/zones/{zone}" for zone in zones]}
            for region, zones in sorted(self.catalogue.zones.items())
        ]

    def _zones(self) -> list[Item]:
        base = f"{self.url}/compute/v1/projects/{self.project}/regions"
        return [
            {"name": zone, "status": "UP", "region": f"{base}/{region}"}
            for region, zones in sorted(self.catalogue.zones.items())
            for zone in zones
        ]

    def _page(
        self, request: Request, size: str, rows: list[Item], *, key: str = "items", token: str | None = None
    ) -> Reply:
        """A page of a plain list; the price list ends with an empty token, the others with none."""
        start, end = _window(request, size, self.most_per_page)
        body: Item = {key: rows[start:end]} if rows else {}
        if end < len(rows):
            body["nextPageToken"] = f"after-{end}"
        elif token is not None and rows:
            body["nextPageToken"] = token
        return _json(body)

    def _aggregated(self, request: Request, key: str, by_zone: dict[str, list[Item]]) -> Reply:
        """A page of so many items; every zone is named on every page, with a warning where it has none there."""
        start, end = _window(request, "maxResults", self.most_per_page)
        zones = [zone for zones in self.catalogue.zones.values() for zone in zones]
        items: dict[str, Item] = {}
        passed = 0
        for zone in sorted(zones, reverse=True):
            rows = by_zone.get(zone, [])
            current = rows[max(0, start - passed) : max(0, end - passed)]
            passed += len(rows)
            items[f"zones/{zone}"] = {key: current} if current else {"warning": _no_results(zone)}
        body: Item = {"kind": f"compute#{key}AggregatedList", "items": items}
        if end < passed:
            body["nextPageToken"] = f"after-{end}"
        return _json(body)


def _window(request: Request, size: str, most: int) -> tuple[int, int]:
    start = int(request.parameter("pageToken", "after-0").removeprefix("after-") or 0)
    return start, start + min(most, int(request.parameter(size, "500")))


def _no_results(zone: str) -> Item:
    return {"code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope 'zones/{zone}' on this page."}


def _accelerator_type(name: str) -> Item:
    return {"kind": "compute#acceleratorType", "id": "10002", "name": name, "maximumCardsPerInstance": 4}


def _tpu_type(zone: str, name: str) -> Item:
    return {"name": f"projects/project/locations/{zone}/acceleratorTypes/{name}", "type": name}


def _json(body: object, *, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode())
