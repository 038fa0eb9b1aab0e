"""Unit prices that the embedded catalogue's GCP rows may be sums of, and which rows they give to the micro-dollar.

The catalogue holds totals. For each family, region and kind this finds prices per vCPU, GiB and GPU, in whole
nano-dollars, from which as many of the totals as possible follow by one rounding. Memory is given a
plausible price; the vCPU's follows from machines with different shares of vCPUs per GPU; the GPU takes the
rest. Totals of other sources or dates that fit no such prices are left out, with every row of that machine
in that region. Knows nothing of how gpuplan composes prices.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot

SSD_NANOS_PER_GIB_MONTH = {
    "on_demand": 80_000_000,
    "spot": 32_000_000,
    "committed_1y": 50_400_000,
    "committed_3y": 36_000_000,
}
HALF = Fraction(499, 1000)
#: Core, memory and GPU as SKUs name them, GiB of bundled local SSD per GPU.
FAMILIES = {
    "a2-highgpu": ("A2", "Nvidia Tesla A100 GPU", 0),
    "a2-megagpu": ("A2", "Nvidia Tesla A100 GPU", 0),
    "a2-ultragpu": ("A2", "Nvidia Tesla A100 80GB GPU", 375),
    "a3-highgpu": ("A3", "Nvidia H100 80GB GPU", 750),
    "a3-edgegpu": ("A3", "Nvidia H100 80GB GPU", 750),
    "a3-megagpu": ("A3Plus", "Nvidia H100 80GB Mega GPU", 750),
    "g2-standard": ("G2", "Nvidia L4 GPU", 0),
    "g4-standard": ("G4", "RTX 6000 96GB", 0),
}
N1_GPUS = {name: f"Nvidia Tesla {name} GPU" for name in ("T4", "P4", "P100", "V100")}
#: Families whose machines differ in GiB per GPU rather than in vCPUs per GPU.
MEMORY_FOLLOWS = frozenset(("G4",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What one machine of the catalogue is made of; `share` groups what must be served together."""

    name: str
    host: str
    gpu: str
    vcpus: int
    ram_gib: Fraction
    gpus: Fraction
    ssd_gib: int
    share: str


@dataclass(slots=True)
class UnitPrices:
    """Nano-dollars by (component, region, kind), and the rows of the catalogue that follow from them."""

    nanos: dict[tuple[str, str, str], int] = field(default_factory=dict)
    rows: list[Offer] = field(default_factory=list)
    left_out: int = 0


def machine_of(instance_type: InstanceType) -> Machine | None:
    """None for TPU slices and families whose rows are no whole prices."""
    if instance_type.vcpus is None or instance_type.ram_gib is None:
        return None
    count, vcpus, ram_gib = instance_type.accelerator_count, int(instance_type.vcpus), Fraction(instance_type.ram_gib)
    if "+" in instance_type.name:
        gpu = instance_type.name.rpartition("x")[2]
        made = ("N1", N1_GPUS[gpu], 0)
    else:
        made = FAMILIES.get(instance_type.name.rpartition("-")[0], ("", "", 0))
    host, gpu_sku, ssd = made
    if not host:
        return None
    share = gpu_sku if host == "N1" else instance_type.name
    return Machine(
        name=instance_type.name,
        host=host,
        gpu=gpu_sku,
        vcpus=vcpus,
        ram_gib=ram_gib,
        gpus=count,
        ssd_gib=int(ssd * count),
        share=share,
    )


def unit_prices() -> UnitPrices:
    """Prices of components for every family, and the rows that they give."""
    snapshot = embedded_snapshot()
    machines = {m.name: m for t in snapshot.instance_types if t.provider == "gcp" and (m := machine_of(t))}
    rows: dict[tuple[str, str], dict[str, list[Offer]]] = defaultdict(lambda: defaultdict(list))
    for offer in snapshot.offers:
        if offer.provider == "gcp" and offer.instance_type in machines:
            rows[machines[offer.instance_type].host, offer.region][offer.price_kind].append(offer)
    made = UnitPrices()
    for (host, region), by_kind in sorted(rows.items()):
        _add_group(made, host, region, by_kind, machines)
    return made


def _add_group(
    made: UnitPrices, host: str, region: str, by_kind: dict[str, list[Offer]], machines: dict[str, Machine]
) -> None:
    """Serve machines of which every kind that their parts are priced in fits; drop the others until that holds."""
    dropped: set[str] = set()
    while True:
        solved = {
            kind: _solve(
                host, kind, [row for row in rows if machines[row.instance_type].share not in dropped], machines
            )
            for kind, rows in sorted(by_kind.items())
        }
        fits = {(kind, row.instance_type) for kind, (_, good) in solved.items() for row in good}
        sold = {(kind, machines[name].gpu) for kind, name in fits}
        names = [name for name, machine in machines.items() if machine.host == host and machine.share not in dropped]
        current = {row.instance_type for rows in by_kind.values() for row in rows}
        bad = {
            machines[name].share
            for name in names
            for kind, gpu in sold
            if gpu == machines[name].gpu and (kind, name) not in fits and (name in current or host == "N1")
        }
        if not bad:
            break
        dropped |= bad
    for kind, (nanos, good) in solved.items():
        made.left_out += len(by_kind[kind]) - len(good)
        made.rows += good
        if good:
            made.nanos.update({(name, region, kind): value for name, value in nanos.items()})


def _solve(
    host: str, kind: str, rows: Sequence[Offer], machines: dict[str, Machine]
) -> tuple[dict[str, int], list[Offer]]:
    """Nano-dollars per component, and the rows whose totals they round to."""
    if not rows:
        return {}, []
    least = min(rows, key=lambda row: row.usd_micros_per_hour)
    first, micros = machines[least.instance_type], least.usd_micros_per_hour
    core = round(Fraction(micros * 80, first.vcpus)) // 1000 * 1000
    ram = round(Fraction(micros * 40) / first.ram_gib) // 1000 * 1000
    memory = host in MEMORY_FOLLOWS
    by_gpu: dict[str, list[Offer]] = defaultdict(list)
    for row in rows:
        by_gpu[machines[row.instance_type].gpu].append(row)
    free = _best(
        span
        for price in by_gpu.values()
        for span in _spans_of_free(price, machines, kind, core if memory else ram, memory)
    )
    if free is not None:
        core, ram = (core, free) if memory else (free, ram)
    nanos = {f"{host} Core": core, f"{host} Ram": ram}
    good = []
    for gpu, item in by_gpu.items():
        price = _best(_span_of_gpu(row, machines[row.instance_type], kind, core, ram) for row in item)
        if price is None or price <= 0 or core <= 0 or ram <= 0:
            continue
        nanos[gpu] = price
        for row in item:
            low, high = _span_of_gpu(row, machines[row.instance_type], kind, core, ram)
            good += [row] if low <= price <= high else []
    return nanos, good


def _ssd(machine: Machine, kind: str) -> Fraction:
    return Fraction(machine.ssd_gib * SSD_NANOS_PER_GIB_MONTH[kind], 730)


def _span_of_gpu(row: Offer, machine: Machine, kind: str, core: int, ram: int) -> tuple[Fraction, Fraction]:
    """Between which nano-dollars the GPU must lie for the total to round to the row's."""
    host = machine.vcpus * core + machine.ram_gib * ram + _ssd(machine, kind)
    low, high = ((row.usd_micros_per_hour + side) * 1000 - host for side in (-HALF, HALF))
    return low / machine.gpus, high / machine.gpus


def _spans_of_free(
    rows: Sequence[Offer], machines: dict[str, Machine], kind: str, given: int, memory: bool
) -> Iterable[tuple[Fraction, Fraction]]:
    """Between which nano-dollars the vCPU (or the GiB) must lie for two machines with the same GPU."""
    for i, one in enumerate(rows):
        for other in rows[:i]:
            a, b = machines[one.instance_type], machines[other.instance_type]
            units = [(m.ram_gib if memory else Fraction(m.vcpus)) / m.gpus for m in (a, b)]
            if units[0] == units[1]:
                continue
            rest = []
            for row, m in ((one, a), (other, b)):
                fixed = (m.vcpus if memory else m.ram_gib) * given + _ssd(m, kind)
                rest.append((row.usd_micros_per_hour * 1000 - fixed) / m.gpus)
            slack = HALF * 1000 * (1 / a.gpus + 1 / b.gpus)
            bounds = [(rest[0] - rest[1] + side * slack) / (units[0] - units[1]) for side in (-1, 1)]
            yield min(bounds), max(bounds)


def _best(spans: Iterable[tuple[Fraction, Fraction]]) -> int | None:
    """A whole number that lies in as many spans as possible, in the middle of where they overlap."""
    all_spans = list(spans)
    whole = [(ceil(low), floor(high)) for low, high in all_spans]
    edges = sorted({bound for span in all_spans for bound in span})
    best, most = None, 0
    for low, high in zip(edges, edges[1:] or edges, strict=False):
        middle = round((low + high) / 2)
        inside = sum(start <= middle <= end for start, end in whole)
        if inside > most:
            best, most = middle, inside
    return best
