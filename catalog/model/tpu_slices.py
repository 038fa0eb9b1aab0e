"""The documented slices of each TPU generation: `data/tpu_slices.csv`, one row each.

A slice is rented whole. Its node is one host VM, so `fixed_nodes` is its hosts and the price per node-hour is the chip's
price times the chips of a host. The name's suffix counts cores up to v4, for v5p and for TPU7x (two per chip), and chips
for v5e and v6e. Slices end at 256 chips: larger ones are sold by arrangement, and the default node limit is far lower. All
chips of a slice communicate over the inter-chip interconnect, across hosts too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType

PROVIDER = "gcp"
MAX_CHIPS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuSlice:
    """`chips` on `hosts`; `priced_from` is the slice whose listed price per chip applies to this one too."""

    chips: int
    hosts: int
    topology: str
    priced_from: str
    instance_type: InstanceType

    @property
    def name(self) -> str:
        """`tpu-` and the accelerator type of the TPU API, or `tpu7x-` and the cores: `tpu-v5p-8`."""
        return self.instance_type.name

    @property
    def accelerator(self) -> str:
        """The chip, as `gpuplan.catalog.model.accelerators` names it."""
        return self.instance_type.accelerator

    @property
    def chips_per_host(self) -> Fraction:
        """Chips of one node, by which the price per chip is multiplied."""
        return Fraction(self.chips, self.hosts)


@cache
def tpu_slices() -> tuple[TpuSlice, ...]:
    """Every slice of the table, in its order. Raises `ValueError` for one of more than `MAX_CHIPS`."""
    return tuple(_slice(row) for row in data_table("tpu_slices.csv"))


def _slice(row: Mapping[str, str]) -> TpuSlice:
    chips, hosts = int(row["chips"]), int(row["hosts"])
    if chips > MAX_CHIPS:
        raise ValueError(f"TPU slice {row['instance_type']} has {chips} chips, above {MAX_CHIPS}")
    return TpuSlice(
        chips=chips,
        hosts=hosts,
        topology=row["topology"],
        priced_from=row["priced_from"],
        instance_type=_instance_type(row, chips, hosts),
    )


def _instance_type(row: Mapping[str, str], chips: int, hosts: int) -> InstanceType:
    """One host of the slice; the link is the chip's own, one direction of the vendor's total."""
    link_gbs = accelerators()[row["accelerator"]].link_gbs
    return InstanceType(
        provider=PROVIDER,
        name=row["instance_type"],
        accelerator=row["accelerator"],
        accelerator_count=Fraction(chips, hosts),
        vcpus=float(row["host_vcpus"]) if row["host_vcpus"] else None,
        ram_gib=float(row["host_ram_gib"]) if row["host_ram_gib"] else None,
        intranode_link="ici",
        intranode_gbs=link_gbs / 2 if link_gbs else None,
        scaleup_domain=chips,
        clusters=hosts > 1,
        fixed_nodes=hosts,
        source=f"{row['source']} (topology {row['topology']})",
        as_of=row["as_of"],
    )
