"""GCP machines of the embedded catalogue: supplement Compute Engine, or replace it if it does not answer."""

from fractions import Fraction
from functools import cache

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.gcp.mapping_tables import family_of
from gpuplan.providers.gcp.price_composition import Described, Shape

PROVIDER = "gcp"
GB_PER_GIB = 2**30 / 10**9
#: One partition of local SSD, https://cloud.google.com/compute/docs/disks/local-ssd
GIB_PER_SSD_PARTITION = 375


@cache
def known_types() -> dict[str, InstanceType]:
    """Machines with built-in accelerators, by name."""
    of_gcp = (instance_type for instance_type in embedded_instance_types() if instance_type.provider == PROVIDER)
    return {
        instance_type.name: instance_type
        for instance_type in of_gcp
        if family_of(instance_type.name) is not None and "+" not in instance_type.name
    }


def _ssd_gib(instance_type: InstanceType) -> int:
    """Local SSD in whole partitions, 0 if it has none."""
    partitions = round((instance_type.local_disk_gb or 0.0) / GB_PER_GIB / GIB_PER_SSD_PARTITION)
    return partitions * GIB_PER_SSD_PARTITION


def known_machines() -> list[Described]:
    """Every known machine in the form for pricing, for use if Compute Engine does not answer."""
    made = []
    for name, known_type in known_types().items():
        if known_type.vcpus is None or known_type.ram_gib is None:
            continue
        shape = Shape(
            name=name,
            vcpus=int(known_type.vcpus),
            ram_gib=Fraction(known_type.ram_gib),
            gpu=known_type.accelerator,
            gpus=known_type.accelerator_count,
            ssd_gib=_ssd_gib(known_type),
        )
        made.append(Described(instance_type=known_type, shape=shape))
    return made
