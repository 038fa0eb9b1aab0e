"""No machine has a price on GCP, its parts have: vCPUs, GiB of memory, GPUs and bundled local SSD, each per kind.

A sum is exact until its one rounding to micro-dollars. Where a part has no price in a kind and region,
the machine has none there: a partial sum would pass for a price.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from catalog.offer import InstanceType
from providers.gcp.skus import Prices
from providers.gcp.tables import Family, family_of, tpu_prices
from providers.gcp.words import LOCAL_SSD, component

KINDS = ("on_demand", "spot", "committed_1y", "committed_3y", "flex_start", "calendar")
NANOS_PER_MICRO = 1000
_MEMORY = re.compile(r"-\d+gb\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of a machine is paid for; `gpus` may be a fraction of one card, `ssd_gib` is what comes with it."""

    name: str
    vcpus: int
    ram_gib: Fraction
    gpu: str
    gpus: Fraction
    ssd_gib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A machine type with its hardware and what of it is paid for."""

    instance_type: InstanceType
    shape: Shape


@dataclass(frozen=True, slots=True)
class Part:
    """So many units of a component, by any of its spellings; `label` is for people."""

    label: str
    spellings: tuple[str, ...]
    units: Fraction


@dataclass(frozen=True, slots=True)
class Priced:
    """Micro-dollars an hour by kind; for kinds in which only some parts are priced, the parts that are not.

    `unusable` says of a kind which part has a SKU that was set aside, and why: the kind is sold, at a
    price that could not be read.
    """

    usd_micros: dict[str, int]
    lacking: dict[str, tuple[str, ...]]
    unusable: dict[str, str]


def priced(parts: Sequence[Part], region: str, prices: Prices) -> Priced:
    """The machine of these parts in every kind; the first part is the one that tells whether a kind is sold."""
    made = Priced({}, {}, {})
    for kind in KINDS:
        found = [(part, prices.find(part.spellings, region, kind)) for part in parts]
        missing = tuple(part.label for part, nanos in found if nanos is None)
        for part, nanos in found:
            why = prices.why_unusable(part.spellings, region, kind) if nanos is None else None
            if why is not None:
                made.unusable[kind] = f"the SKU of its {part.label} {why}"
        if not missing:
            total = sum((part.units * nanos for part, nanos in found if nanos is not None), Fraction(0))
            made.usd_micros[kind] = round(total / NANOS_PER_MICRO)
        elif found[0][1] is not None:
            made.lacking[kind] = missing
    return made


def parts_of(shape: Shape, region: str, prices: Prices) -> list[Part]:
    """The parts of an accelerated machine, GPU first.

    For a family that the table lacks, by the usual spelling; for less than one GPU, the SKU of such shares where
    there is one, which holds its vCPUs and memory, else that fraction of the GPU.
    """
    family = family_of(shape.name)
    if family is None:
        candidates = [_parts(shape, each) for each in _usual(shape)]
    elif family.shares and shape.gpus < 1:
        share = Part(f"GPU share ({family.shares[0]})", family.shares, shape.gpus / family.gpus_per_share)
        candidates = [[share], _parts(shape, family)]
    else:
        candidates = [_parts(shape, family)]
    sold = [parts for parts in candidates if any(prices.find(parts[0].spellings, region, kind) for kind in KINDS)]
    return (sold or candidates)[0]


def components_of(shape: Shape) -> set[str]:
    """Every spelling of a component under which a machine of a family that the table lacks may be priced."""
    if family_of(shape.name) is not None:
        return set()
    return {spelling for each in _usual(shape) for part in _parts(shape, each) for spelling in part.spellings}


def n1_parts(shape: Shape) -> list[Part]:
    """The parts of N1 with GPUs attached; `shape.gpu` is the GPU as prices name it (T4)."""
    family = family_of("n1-standard-1")
    if family is None:
        raise KeyError("families.csv has no n1-standard")
    return [Part(shape.gpu, (component(shape.gpu),), shape.gpus), *_host(shape, family)]


def tpu_parts(accelerator: str, *, pod: bool, chips: Fraction) -> list[Part]:
    """So many chips of a TPU generation. Raises `KeyError` for one that the table lacks."""
    row = tpu_prices()[accelerator]
    return [Part(accelerator, row.pods if pod else row.singles, chips / row.chips_per_unit)]


def _parts(shape: Shape, family: Family) -> list[Part]:
    parts = [Part(f"GPU ({family.gpus[0]})", family.gpus, shape.gpus)]
    if not family.gpu_includes_host:
        parts += _host(shape, family)
    if shape.ssd_gib and not family.ssd_included:
        parts.append(Part("local SSD", (LOCAL_SSD,), Fraction(shape.ssd_gib)))
    return parts


def _host(shape: Shape, family: Family) -> list[Part]:
    return [
        Part("vCPU", family.cores, Fraction(shape.vcpus)),
        Part("memory", family.rams, shape.ram_gib),
    ]


def _usual(shape: Shape) -> tuple[Family, Family]:
    """How a family would be priced that nobody has described: in parts of its own name, or per GPU slice."""
    name = shape.name.split("-")[0]
    gpus = tuple(dict.fromkeys(component(each) for each in (shape.gpu, _MEMORY.sub("", shape.gpu))))
    slices = tuple(component(f"{name} {gpu} 1 gpu slice") for gpu in gpus)
    in_parts = Family(
        prefix=name,
        cores=(component(f"{name} core"),),
        rams=(component(f"{name} ram"),),
        gpus=gpus,
        gpu_includes_host=False,
        ssd_included=False,
    )
    per_slice = Family(prefix=name, cores=(), rams=(), gpus=slices, gpu_includes_host=True, ssd_included=True)
    return in_parts, per_slice
