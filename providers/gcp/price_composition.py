"""Compose machine prices from their parts: vCPUs, GiB of memory, GPUs and bundled local SSD, per price kind.

GCP prices only parts, not machines. A sum is exact until it is rounded once to micro-dollars. If a part has no price in a
kind and region, neither has the machine: a partial sum would look like a price.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.providers.gcp.mapping_tables import Family, family_of, tpu_prices
from gpuplan.providers.gcp.sku_descriptions import LOCAL_SSD, component
from gpuplan.providers.gcp.skus import Prices

KINDS = ("on_demand", "spot", "committed_1y", "committed_3y", "flex_start", "calendar")
NANOS_PER_MICRO = 1000
_MEMORY = re.compile(r"-\d+gb\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The priced parts of a machine; `gpus` may be a fraction of one card, `ssd_gib` is the bundled SSD."""

    name: str
    vcpus: int
    ram_gib: Fraction
    gpu: str
    gpus: Fraction
    ssd_gib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A machine type with its hardware and its priced parts."""

    instance_type: InstanceType
    shape: Shape


@dataclass(frozen=True, slots=True)
class Part:
    """A number of units of a component, in any of its spellings; `label` is for people."""

    label: str
    spellings: tuple[str, ...]
    units: Fraction


@dataclass(frozen=True, slots=True)
class Priced:
    """Micro-dollars an hour by kind; for partly priced kinds, the parts without a price.

    `unusable` gives per kind the part with a quarantined SKU, and why: the kind is sold, but its price could not be read.
    """

    usd_micros: dict[str, int]
    lacking: dict[str, tuple[str, ...]]
    unusable: dict[str, str]


def priced(parts: Sequence[Part], region: str, prices: Prices) -> Priced:
    """The machine's price in every kind; the first part decides whether a kind is sold."""
    made = Priced({}, {}, {})
    for kind in KINDS:
        part_prices = [(part, prices.find(part.spellings, region, kind)) for part in parts]
        missing = tuple(part.label for part, nanos in part_prices if nanos is None)
        for part, nanos in part_prices:
            why = prices.why_unusable(part.spellings, region, kind) if nanos is None else None
            if why is not None:
                made.unusable[kind] = f"the SKU of its {part.label} {why}"
        if not missing:
            total = sum((part.units * nanos for part, nanos in part_prices if nanos is not None), Fraction(0))
            made.usd_micros[kind] = round(total / NANOS_PER_MICRO)
        elif part_prices[0][1] is not None:
            made.lacking[kind] = missing
    return made


def parts_of(shape: Shape, region: str, prices: Prices) -> list[Part]:
    """The parts of an accelerated machine, GPU first.

    A family outside the table uses the usual spelling. Less than one GPU uses the SKU of such shares if there is one, which
    includes vCPUs and memory, else that fraction of the GPU.
    """
    family = family_of(shape.name)
    if family is None:
        candidates = [_parts(shape, usual_shape) for usual_shape in _usual(shape)]
    elif family.shares and shape.gpus < 1:
        share = Part(f"GPU share ({family.shares[0]})", family.shares, shape.gpus / family.gpus_per_share)
        candidates = [[share], _parts(shape, family)]
    else:
        candidates = [_parts(shape, family)]
    sold = [parts for parts in candidates if any(prices.find(parts[0].spellings, region, kind) for kind in KINDS)]
    return (sold or candidates)[0]


def components_of(shape: Shape) -> set[str]:
    """Every spelling of a component for a machine of a family outside the table."""
    if family_of(shape.name) is not None:
        return set()
    return {
        spelling for usual_shape in _usual(shape) for part in _parts(shape, usual_shape) for spelling in part.spellings
    }


def n1_parts(shape: Shape) -> list[Part]:
    """The parts of N1 with GPUs attached; `shape.gpu` is the GPU's name in prices (T4)."""
    family = family_of("n1-standard-1")
    if family is None:
        raise KeyError("families.csv has no n1-standard")
    return [Part(shape.gpu, (component(shape.gpu),), shape.gpus), *_host(shape, family)]


def tpu_parts(accelerator: str, *, pod: bool, chips: Fraction) -> list[Part]:
    """The parts of a number of chips of a TPU generation. Raises `KeyError` for one outside the table."""
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
    """The usual pricing of an unknown family: parts under its own name, or per GPU slice."""
    name = shape.name.split("-")[0]
    gpus = tuple(dict.fromkeys(component(name) for name in (shape.gpu, _MEMORY.sub("", shape.gpu))))
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
