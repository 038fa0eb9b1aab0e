"""Hardware of machine types: Compute Engine's figures, with the device and links that gpuplan knows by name."""

from dataclasses import replace
from fractions import Fraction

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.providers.gcp.known_machines import GB_PER_GIB, PROVIDER, known_types
from gpuplan.providers.gcp.listed_places import Machine
from gpuplan.providers.gcp.mapping_tables import accelerator_named
from gpuplan.providers.gcp.price_composition import Described, Shape

SOURCE = "GCP Compute Engine machineTypes"
#: Machines that differ from the preceding name only in their local SSD.
WITHOUT_SSD = "-nolssd"


def described(machine: Machine, as_of: str) -> Described | None:
    """The instance type; None if its accelerator is unknown.

    Raises `gpuplan.catalog.model.offer.Implausible` for an impossible size. `as_of` is the month of the reading
    (`2026-11`), for machines outside the embedded catalogue.
    """
    known = known_types().get(machine.name)
    alike = known or known_types().get(machine.name.removesuffix(WITHOUT_SSD))
    made = _of_a_known(machine, alike, known is not None, as_of) if alike else _of_its_accelerator(machine, as_of)
    if made is None:
        return None
    shape = Shape(
        name=machine.name,
        vcpus=machine.vcpus,
        ram_gib=machine.ram_gib,
        gpu=machine.accelerator_type,
        gpus=made.accelerator_count,
        ssd_gib=machine.ssd_gib,
    )
    return Described(instance_type=made, shape=shape)


def _of_a_known(machine: Machine, known: InstanceType, same: bool, as_of: str) -> InstanceType:
    """Sizes are Compute Engine's; a count below one card is gpuplan's, since the API counts whole cards only."""
    stated = machine.accelerators and not known.is_slice
    count = Fraction(machine.accelerators) if stated else known.accelerator_count
    disk_gb = _disk_gb(machine) or (known.local_disk_gb if same else None)
    live = replace(
        known,
        name=machine.name,
        accelerator_count=count,
        vcpus=float(machine.vcpus),
        ram_gib=_ram_gib(machine),
        local_disk_gb=disk_gb,
        retired=machine.retired,
    )
    return live if live == known else replace(live, source=f"{SOURCE}; links: {known.source}", as_of=as_of)


def _of_its_accelerator(machine: Machine, as_of: str) -> InstanceType | None:
    name = accelerator_named(machine.accelerator_type)
    if name is None:
        return None
    device = accelerators()[name]
    linked = machine.accelerators > 1
    link_gbs = device.link_gbs / 2 if device.link_gbs else device.pcie_gbs
    return InstanceType(
        provider=PROVIDER,
        name=machine.name,
        accelerator=name,
        accelerator_count=Fraction(machine.accelerators),
        vcpus=float(machine.vcpus),
        ram_gib=_ram_gib(machine),
        local_disk_gb=_disk_gb(machine),
        intranode_link=device.link if linked else "",
        intranode_gbs=link_gbs if linked else None,
        scaleup_domain=machine.accelerators,
        fabric="tcp",
        clusters=True,
        retired=machine.retired,
        source=f"{SOURCE}; links: {device.source}",
        as_of=as_of,
    )


def _ram_gib(machine: Machine) -> float:
    whole = float(machine.ram_gib)
    return round(whole, 3)


def _disk_gb(machine: Machine) -> float | None:
    return round(machine.ssd_gib * GB_PER_GIB, 1) if machine.ssd_gib else None
