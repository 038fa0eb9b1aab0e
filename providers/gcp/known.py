"""Machines of the embedded catalogue as they would be priced, for when Compute Engine cannot be asked."""

from fractions import Fraction

from providers.gcp.compose import Shape
from providers.gcp.hardware import GB_PER_GIB, Described, known_types
from providers.gcp.places import GIB_PER_SSD_PARTITION
from providers.gcp.tables import family_of


def known_machines() -> list[Described]:
    """Every machine type of the table that comes with its accelerators and is priced in parts."""
    made = []
    for name, each in known_types().items():
        family = family_of(name)
        if family is None or not family.gpus or each.vcpus is None or each.ram_gib is None:
            continue
        disk_gib = (each.local_disk_gb or 0.0) / GB_PER_GIB
        shape = Shape(
            name=name,
            vcpus=int(each.vcpus),
            ram_gib=Fraction(each.ram_gib),
            gpu=each.accelerator,
            gpus=each.accelerator_count,
            ssd_gib=round(disk_gib / GIB_PER_SSD_PARTITION) * GIB_PER_SSD_PARTITION,
        )
        made.append(Described(instance_type=each, shape=shape))
    return made
