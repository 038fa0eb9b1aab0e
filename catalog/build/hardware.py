"""Every instance type that is rented by name: what EC2 describes, and cited fact tables for the rest.

GCP N1 machines with attached GPUs and TPU slices are no names of their own there; `gcp_composition`
and `tpu` make them.
"""

from fractions import Fraction

from catalog.accelerators import accelerators
from catalog.build.fact_tables import Row, mapping_table
from catalog.build.hardware_aws import ec2_instance_types
from catalog.offer import Implausible, InstanceType

#: Fact tables in the fields of `InstanceType`, one per cloud; AWS has only what EC2's own list lacks.
_TABLES = ("hardware_aws", "hardware_azure", "hardware_gcp")


def instance_types() -> list[InstanceType]:
    """Every AWS, Azure and GCP instance type known, sorted by provider and name.

    Raises `Implausible` naming the row for a type stated twice, an accelerator that the table of
    accelerators lacks, a share of a card without its memory, or a size that cannot be.
    """
    stated = [_instance_type(row) for table in _TABLES for row in mapping_table(table)]
    found: dict[tuple[str, str], InstanceType] = {}
    for each in [*stated, *ec2_instance_types()]:
        key = (each.provider, each.name)
        if key in found:
            raise Implausible(f"instance type {each.provider}/{each.name} is stated twice")
        _check(each)
        found[key] = each
    return [found[key] for key in sorted(found)]


def _instance_type(row: Row) -> InstanceType:
    return InstanceType(
        provider=row["provider"],
        name=row["name"],
        accelerator=row["accelerator"],
        accelerator_count=Fraction(row["accelerator_count"]),
        accelerator_memory_mib=int(row["accelerator_memory_mib"]) if row["accelerator_memory_mib"] else None,
        vcpus=_size(row["vcpus"]),
        ram_gib=_size(row["ram_gib"]),
        local_disk_gb=_size(row["local_disk_gb"]),
        intranode_link=row["intranode_link"],
        intranode_gbs=_size(row["intranode_gbs"]),
        scaleup_domain=int(row["scaleup_domain"]),
        network_gbps=_size(row["network_gbps"]),
        fabric=row["fabric"],
        clusters=row["clusters"] == "yes",
        sold_on_demand=row["sold_on_demand"] == "yes",
        retired=row["retired"] == "yes",
        source=row["source"],
        as_of=row["as_of"],
    )


def _size(text: str) -> float | None:
    """A number, or None where the table is blank: unknown is never zero."""
    return float(text) if text else None


def _check(each: InstanceType) -> None:
    if each.accelerator not in accelerators():
        raise Implausible(f"instance type {each.name}: no accelerator is named {each.accelerator!r}")
    if each.is_slice and each.accelerator_memory_mib is None:
        raise Implausible(f"instance type {each.name}: a share of a card needs its own accelerator_memory_mib")
    if each.is_slice and each.clusters:
        raise Implausible(f"instance type {each.name}: a share of a card cannot work with other nodes")
    if each.scaleup_domain < each.devices and each.intranode_gbs is not None:
        raise Implausible(f"instance type {each.name}: its {each.devices} devices exceed scaleup_domain")
    if not each.source or not each.as_of:
        raise Implausible(f"instance type {each.name}: source and as_of are needed")
