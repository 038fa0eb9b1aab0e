"""Every instance type rented by name: EC2's descriptions, and cited fact tables for the rest.

GCP N1 machines with attached GPUs and TPU slices have no instance type names at GCP; `gcp_composition` and `tpu` create
them.

EC2 hardware: the DescribeInstanceTypes records in moto, read when the catalogue is built.
"""

import gzip
import json
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.ec2_hardware import ec2_families, ec2_instance_type, has_accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType
from tools.catalogue_build.fact_tables import Row, mapping_table

_SOURCE = "EC2 DescribeInstanceTypes as carried by moto {moto}"
#: When the list was last compared with the other tables; moto does not date it.
_AS_OF = "2026-11-21"


def ec2_instance_types() -> list[InstanceType]:
    """Every accelerated type in EC2's list with a known device, except those in a fact table.

    Raises `Implausible` for an unknown device name or family, so that a new family is researched rather than guessed.
    """
    elsewhere = {row["name"] for row in [*mapping_table("hardware_aws"), *data_table("left_out.csv")]}
    records = [item for name, item in sorted(ec2_records().items()) if name not in elsewhere]
    return [_aws_instance_type(record) for record in records if has_accelerators(record)]


@cache
def ec2_records() -> dict[str, dict[str, Any]]:
    """EC2's own records by instance type, in the shape of the DescribeInstanceTypes answer."""
    archive = files("moto.ec2") / "resources" / "instance_types.json.gz"
    records = json.loads(gzip.decompress(archive.read_bytes()))
    return records if isinstance(records, dict) else {record["InstanceType"]: record for record in records}


def _aws_instance_type(record: dict[str, Any]) -> InstanceType:
    name = record["InstanceType"]
    family = name.partition(".")[0]
    if family not in ec2_families():
        raise Implausible(f"instance type {name}: data/ec2_families.csv lacks the family {family}")
    made = ec2_instance_type(record, source=_SOURCE.format(moto=version("moto")), as_of=_AS_OF)
    if made.network_gbps is None:
        raise Implausible(f"instance type {name}: EC2's network performance is not understood")
    return made


#: Fact tables in the fields of `InstanceType`, one per cloud; that of AWS has only types that EC2's list lacks.
_TABLES = ("hardware_aws", "hardware_azure", "hardware_gcp")


def instance_types() -> list[InstanceType]:
    """Every known AWS, Azure and GCP instance type, sorted by provider and name.

    Raises `Implausible` with the row for a duplicate type, an unknown accelerator, a share of a card without its memory, or
    an impossible size.
    """
    stated = [_instance_type(row) for table in _TABLES for row in mapping_table(table)]
    types: dict[tuple[str, str], InstanceType] = {}
    for item in [*stated, *ec2_instance_types()]:
        key = (item.provider, item.name)
        if key in types:
            raise Implausible(f"instance type {item.provider}/{item.name} is stated twice")
        _check(item)
        types[key] = item
    return [types[key] for key in sorted(types)]


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


def _check(instance_type: InstanceType) -> None:
    if instance_type.accelerator not in accelerators():
        raise Implausible(f"instance type {instance_type.name}: no accelerator is named {instance_type.accelerator!r}")
    if instance_type.is_slice and instance_type.accelerator_memory_mib is None:
        raise Implausible(f"instance type {instance_type.name}: a share of a card needs its own accelerator_memory_mib")
    if instance_type.is_slice and instance_type.clusters:
        raise Implausible(f"instance type {instance_type.name}: a share of a card cannot work with other nodes")
    if instance_type.scaleup_domain < instance_type.devices and instance_type.intranode_gbs is not None:
        raise Implausible(
            f"instance type {instance_type.name}: its {instance_type.devices} devices exceed scaleup_domain"
        )
    if not instance_type.source or not instance_type.as_of:
        raise Implausible(f"instance type {instance_type.name}: source and as_of are needed")
