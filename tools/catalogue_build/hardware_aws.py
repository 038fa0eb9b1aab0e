"""EC2 hardware: the DescribeInstanceTypes records in moto, read when the catalogue is built."""

import gzip
import json
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.ec2_hardware import ec2_families, ec2_instance_type, has_accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType
from tools.catalogue_build.fact_tables import mapping_table

_SOURCE = "EC2 DescribeInstanceTypes as carried by moto {moto}"
#: When the list was last compared with the other tables; moto does not date it.
_AS_OF = "2026-11-21"


def ec2_instance_types() -> list[InstanceType]:
    """Every accelerated type in EC2's list with a known device, except those in a fact table.

    Raises `Implausible` for an unknown device name or family, so that a new family is researched rather than guessed.
    """
    elsewhere = {row["name"] for row in [*mapping_table("hardware_aws"), *data_table("left_out.csv")]}
    records = [item for name, item in sorted(ec2_records().items()) if name not in elsewhere]
    return [_instance_type(record) for record in records if has_accelerators(record)]


@cache
def ec2_records() -> dict[str, dict[str, Any]]:
    """EC2's own records by instance type, in the shape of the DescribeInstanceTypes answer."""
    archive = files("moto.ec2") / "resources" / "instance_types.json.gz"
    records = json.loads(gzip.decompress(archive.read_bytes()))
    return records if isinstance(records, dict) else {record["InstanceType"]: record for record in records}


def _instance_type(record: dict[str, Any]) -> InstanceType:
    name = record["InstanceType"]
    family = name.partition(".")[0]
    if family not in ec2_families():
        raise Implausible(f"instance type {name}: data/ec2_families.csv lacks the family {family}")
    made = ec2_instance_type(record, source=_SOURCE.format(moto=version("moto")), as_of=_AS_OF)
    if made.network_gbps is None:
        raise Implausible(f"instance type {name}: EC2's network performance is not understood")
    return made
