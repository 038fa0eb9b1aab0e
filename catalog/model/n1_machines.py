"""N1 machines with attached GPUs. GCP does not name them, so gpuplan does: `n1-standard-{vCPUs}+{GPUs}x{GPU}`.

The vCPUs allowed per number of GPUs, and the network, are from https://cloud.google.com/compute/docs/gpus and
.../docs/general-purpose-machines#n1_machines. `data/n1_shapes.csv` holds the offered shapes: one row per GPU, number of
GPUs and vCPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType

PROVIDER = "gcp"
N1_GIB_PER_VCPU = Decimal("3.75")
N1_SOURCE = "https://cloud.google.com/compute/docs/gpus https://cloud.google.com/compute/docs/general-purpose-machines"
N1_AS_OF = "2026-11"
#: Egress limit of N1 in Gbit/s by minimum vCPUs, default networking tier.
N1_NETWORK_GBPS = ((16, 32.0), (8, 16.0), (2, 10.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class N1Machine:
    """`gpus` devices of `gpu` (T4, P100, ...) on n1-standard with `vcpus`; `gpu` as in price lists."""

    gpu: str
    gpus: int
    vcpus: int
    instance_type: InstanceType

    @property
    def name(self) -> str:
        """`n1-standard-8+1xT4`."""
        return self.instance_type.name

    @property
    def ram_gib(self) -> Fraction:
        """Memory of the host, exact."""
        return Fraction(self.vcpus) * Fraction(N1_GIB_PER_VCPU)


@cache
def n1_machines() -> tuple[N1Machine, ...]:
    """Every machine of the table, in its order.

    Raises `ValueError` for a shape with more vCPUs than that number of GPUs allows.
    """
    return tuple(_machine(row) for row in data_table("n1_shapes.csv"))


def _machine(row: Mapping[str, str]) -> N1Machine:
    vcpus, gpus = int(row["vcpus"]), int(row["gpus"])
    if vcpus > int(row["max_vcpus"]):
        raise ValueError(f"{gpus} x {row['gpu']} may have {row['max_vcpus']} vCPUs at most, not {vcpus}")
    return N1Machine(gpu=row["gpu"], gpus=gpus, vcpus=vcpus, instance_type=_instance_type(row, vcpus, gpus))


def _instance_type(row: Mapping[str, str], vcpus: int, gpus: int) -> InstanceType:
    """Link bandwidth, one direction: what the shape states, else the vendor's total, else PCIe."""
    gpu = accelerators()[row["accelerator"]]
    whole_gbs = gpu.link_gbs / 2 if gpu.link_gbs else gpu.pcie_gbs
    link_gbs = float(row["link_gbs"]) if row["link_gbs"] else whole_gbs
    return InstanceType(
        provider=PROVIDER,
        name=f"n1-standard-{vcpus}+{gpus}x{row['gpu']}",
        accelerator=row["accelerator"],
        accelerator_count=Fraction(gpus),
        vcpus=float(vcpus),
        ram_gib=float(vcpus * N1_GIB_PER_VCPU),
        intranode_link=gpu.link if gpus > 1 else "",
        intranode_gbs=link_gbs if gpus > 1 else None,
        scaleup_domain=gpus,
        network_gbps=next(gbps for least, gbps in N1_NETWORK_GBPS if vcpus >= least),
        fabric="tcp",
        clusters=True,
        source=f"{N1_SOURCE} ({row['link_note']})" if row["link_note"] else N1_SOURCE,
        as_of=N1_AS_OF,
    )
