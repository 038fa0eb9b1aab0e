"""Compose a region's rows from the shared reading: prices, instance types, and notes on missing prices."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR
from gpuplan.catalog.model.n1_machines import N1Machine, n1_machines
from gpuplan.catalog.model.offer import Implausible, InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.tpu_slices import TpuSlice
from gpuplan.providers.contract import Quarantined, Rows
from gpuplan.providers.gcp.known_machines import PROVIDER
from gpuplan.providers.gcp.price_composition import KINDS, Described, Part, Shape, n1_parts, parts_of, priced, tpu_parts
from gpuplan.providers.gcp.shared_reading import Reading
from gpuplan.providers.gcp.skus import Prices

SOURCE = "Cloud Billing Catalog API, sum of parts"
TPU_SOURCE = "Cloud Billing Catalog API, per chip"


@dataclass(slots=True, kw_only=True)
class RegionRows:
    """Rows of one region during collection."""

    region: str
    prices: Prices
    observed_at: datetime
    types: dict[str, InstanceType] = field(default_factory=dict)
    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    unpriced: dict[str, None] = field(default_factory=dict)
    lacking: dict[tuple[str, str, tuple[str, ...]], None] = field(default_factory=dict)

    def add(
        self, made: InstanceType, parts: list[Part], *, source: str, zone: str = "", available: bool = True
    ) -> None:
        """Add one machine in every kind in which all its parts are priced in the region."""
        self.types[made.name] = made
        result = priced(parts, self.region, self.prices)
        for kind, usd_micros in result.usd_micros.items():
            interruptible = price_kinds()[kind].interruptible
            try:
                offer = Offer(
                    provider=PROVIDER,
                    region=self.region,
                    zone=zone,
                    instance_type=made.name,
                    price_kind=kind,
                    usd_micros_per_hour=usd_micros,
                    observed_at=self.observed_at,
                    interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR if interruptible else None,
                    modelled=("interruption_rate",) if interruptible else (),
                    available=available,
                    source=source,
                )
            except Implausible as error:
                self.quarantined.append(Quarantined(what=f"{made.name} {kind}", reason=str(error)))
            else:
                self.offers.append(offer)
        for kind, why in result.unusable.items():
            self.quarantined.append(Quarantined(what=f"{made.name} {kind}", reason=why))
        family = _family(made.name)
        for kind, missing in result.lacking.items():
            self.lacking[family, kind, missing] = None
        if not result.usd_micros:
            self.unpriced[family] = None

    def notes(self) -> list[str]:
        """Notes on missing prices, once per family and kind."""
        lines = [
            f"{family}: no {kind} price where the price list has none of its {', '.join(missing)}"
            for family, kind, missing in sorted(self.lacking)
        ]
        if self.unpriced:
            lines.append("without a public price: " + ", ".join(sorted(self.unpriced)))
        return lines


def _family(name: str) -> str:
    """The group of machines that differ only in size: `a2-ultragpu`, `n1-standard+P100`, `tpu-v5p`."""
    host, _, attached = name.partition("+")
    family = "-".join(host.split("-")[:2])
    return f"{family}+{attached.rpartition('x')[2]}" if attached else family


def region_rows(reading: Reading, region: str, observed_at: datetime) -> Rows:
    """The rows of a region of a whole reading."""
    rows = RegionRows(region=region, prices=reading.prices, observed_at=observed_at)
    for machine_type in reading.machines_in.get(region, ()):
        add_machine(rows, machine_type)
    for machine in n1_machines():
        if machine.gpu in reading.attached_in.get(region, ()):
            add_n1(rows, machine)
    for zone, slices in sorted(reading.slices_in.get(region, {}).items()):
        for slice_ in slices:
            _add_slice(rows, slice_, zone)
    return Rows(
        instance_types=tuple(rows.types.values()),
        offers=tuple(rows.offers),
        quarantined=(*rows.quarantined, *reading.quarantined_in.get(region, ())),
        whole_kinds=frozenset(KINDS),
        unread_types=reading.unread_types(region),
        failures=(*reading.failures, *reading.failures_in.get(region, ())),
        notes=(*reading.notes, *rows.notes()),
    )


def add_machine(rows: RegionRows, described: Described, *, available: bool = True) -> None:
    """Add a machine type with built-in accelerators."""
    parts = parts_of(described.shape, rows.region, rows.prices)
    rows.add(described.instance_type, parts, source=SOURCE, available=available)


def add_n1(rows: RegionRows, machine: N1Machine, *, available: bool = True) -> None:
    """Add N1 with GPUs attached."""
    shape = Shape(
        name=machine.name,
        vcpus=machine.vcpus,
        ram_gib=machine.ram_gib,
        gpu=machine.gpu,
        gpus=Fraction(machine.gpus),
    )
    rows.add(machine.instance_type, n1_parts(shape), source=SOURCE, available=available)


def _add_slice(rows: RegionRows, tpu_slice: TpuSlice, zone: str) -> None:
    parts = tpu_parts(tpu_slice.accelerator, pod=tpu_slice.hosts > 1, chips=tpu_slice.chips_per_host)
    rows.add(tpu_slice.instance_type, parts, source=TPU_SOURCE, zone=zone)


def quarantined_by_region(reading: Reading, regions: Iterable[str]) -> dict[str, list[Quarantined]]:
    """Quarantined SKUs, each with the first region that it concerns.

    Omits SKUs of components that no accelerated machine contains (the cores of CPU families).
    """
    made: dict[str, list[Quarantined]] = defaultdict(list)
    known, components = sorted(regions), reading.components()
    for row in reading.prices.quarantined:
        if row.component in components:
            made[next((region for region in row.regions if region in known), known[0])].append(row.row)
    return made
