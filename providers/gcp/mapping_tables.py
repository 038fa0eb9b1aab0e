"""Mapping tables of GCP: the SKUs of each machine family, and the device behind each name."""

import csv
import io
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.gcp.sku_descriptions import LOCAL_SSD, component


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Pricing of machines whose name starts with `prefix`.

    `cores`, `rams` and `gpus` are spellings of one component each, of which the first with a price counts; `ssd_included`
    if the GPU's price includes the bundled local SSD. Machines with less than one GPU may have a separate price: `shares`
    are its spellings, for `gpus_per_share` of a GPU with its host.
    """

    prefix: str
    cores: tuple[str, ...]
    rams: tuple[str, ...]
    gpus: tuple[str, ...]
    gpu_includes_host: bool
    ssd_included: bool
    shares: tuple[str, ...] = ()
    gpus_per_share: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuPrice:
    """The SKUs of one TPU generation: one host by `singles`, more by `pods`, for `chips_per_unit` chips an hour."""

    accelerator: str
    slice_prefix: str
    singles: tuple[str, ...]
    pods: tuple[str, ...]
    chips_per_unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuMachine:
    """A machine type of Compute Engine that hosts TPUs, and the slices that its presence implies."""

    accelerator: str
    single_hosts: bool
    pods: bool


@cache
def families() -> tuple[Family, ...]:
    """Every family of `data/families.csv`, longest prefix first."""
    made = [
        Family(
            prefix=row["family"],
            cores=_spellings(row["core"]),
            rams=_spellings(row["ram"]),
            gpus=_spellings(row["gpu"]),
            gpu_includes_host=row["gpu_includes_host"] == "yes",
            ssd_included=row["local_ssd"] == "included",
            shares=_spellings(row["share"]),
            gpus_per_share=Fraction(row["gpus_per_share"] or 1),
        )
        for row in _table("families.csv")
    ]
    return tuple(sorted(made, key=lambda family: -len(family.prefix)))


def family_of(machine: str) -> Family | None:
    """The family of a machine type's name, None if the table has none."""
    return next((family for family in families() if machine.startswith(f"{family.prefix}-")), None)


@cache
def accelerator_named(accelerator_type: str) -> str | None:
    """gpuplan's name of GCP's accelerator type, None if it is unknown."""
    row = _accelerator_types().get(accelerator_type)
    if row is not None:
        return row["accelerator"]
    try:
        return find_accelerator(accelerator_type).name
    except UnusableInput:
        return None


@cache
def attached_as(accelerator_type: str) -> str:
    """The GPU's name in N1 machines (T4, P100), empty if it cannot be attached to them."""
    row = _accelerator_types().get(accelerator_type)
    return row["attached_as"] if row else ""


@cache
def tpu_prices() -> dict[str, TpuPrice]:
    """The SKUs of each TPU generation, by accelerator."""
    return {
        row["accelerator"]: TpuPrice(
            accelerator=row["accelerator"],
            slice_prefix=row["slice_prefix"],
            singles=_spellings(row["sku"]),
            pods=_spellings(row["pod_sku"]),
            chips_per_unit=int(row["chips_per_unit"]),
        )
        for row in _table("tpus.csv")
    }


@cache
def tpu_machines() -> dict[str, TpuMachine]:
    """TPU hosts among Compute Engine's machines, by their accelerator type."""
    return {
        row["accelerator_type"]: TpuMachine(
            accelerator=row["accelerator"], single_hosts=row["single_hosts"] == "yes", pods=row["pods"] == "yes"
        )
        for row in _table("tpu_machines.csv")
    }


@cache
def known_components() -> frozenset[str]:
    """Every spelling of a component of the tables' machines."""
    parts = [
        spelling for family in families() for spelling in (*family.cores, *family.rams, *family.gpus, *family.shares)
    ]
    tpus = [spelling for tpu_price in tpu_prices().values() for spelling in (*tpu_price.singles, *tpu_price.pods)]
    attached = [component(row["attached_as"]) for row in _accelerator_types().values() if row["attached_as"]]
    return frozenset((*parts, *tpus, *attached, LOCAL_SSD))


@cache
def _accelerator_types() -> dict[str, dict[str, str]]:
    return {row["accelerator_type"]: row for row in _table("accelerator_types.csv")}


def _spellings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(component(spelling) for spelling in text.split("|") if spelling))


def _table(name: str) -> list[dict[str, str]]:
    text = (files("gpuplan.providers.gcp") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
