"""GCP's machines of the embedded catalogue: what is known of a name whatever Compute Engine says, or if it says nothing."""

from fractions import Fraction
from functools import cache

from catalog.embedded import embedded_instance_types
from catalog.offer import InstanceType
from providers.gcp.compose import Described, Shape
from providers.gcp.tables import family_of

PROVIDER = "gcp"
GB_PER_GIB = 2**30 / 10**9
#: One partition of local SSD, https://cloud.google.com/compute/docs/disks/local-ssd
GIB_PER_SSD_PARTITION = 375


@cache
def known_types() -> dict[str, InstanceType]:
    """Machines that come with their accelerators, by name."""
    of_gcp = (each for each in embedded_instance_types() if each.provider == PROVIDER)
    return {each.name: each for each in of_gcp if family_of(each.name) is not None and "+" not in each.name}


def _ssd_gib(each: InstanceType) -> int:
    """Its local SSD in whole partitions, 0 if it has none."""
    partitions = round((each.local_disk_gb or 0.0) / GB_PER_GIB / GIB_PER_SSD_PARTITION)
    return partitions * GIB_PER_SSD_PARTITION


def known_machines() -> list[Described]:
    """Every known machine as it would be priced, for when Compute Engine cannot be asked."""
    made = []
    for name, each in known_types().items():
        if each.vcpus is None or each.ram_gib is None:
            continue
        shape = Shape(
            name=name,
            vcpus=int(each.vcpus),
            ram_gib=Fraction(each.ram_gib),
            gpu=each.accelerator,
            gpus=each.accelerator_count,
            ssd_gib=_ssd_gib(each),
        )
        made.append(Described(instance_type=each, shape=shape))
    return made
