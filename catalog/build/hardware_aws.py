"""EC2 hardware: the DescribeInstanceTypes records that moto carries, read when the catalogue is built.

EC2 states counts, memory, vCPU, disk and network; how the devices of a node are joined it does not
say, so `data/ec2_families.csv` adds that per family, and `data/ec2_devices.csv` names the
accelerator behind EC2's device name and memory.
"""

import gzip
import json
import re
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from catalog.build.fact_tables import Row, mapping_table
from catalog.data_tables import data_table
from catalog.offer import Implausible, InstanceType

_MIB_PER_GIB = 1024
#: Where EC2 lists accelerators: (group, list within it). Inferentia 1 stands in two groups; the first counts.
_DEVICE_LISTS = (
    ("GpuInfo", "Gpus"),
    ("NeuronInfo", "NeuronDevices"),
    ("InferenceAcceleratorInfo", "Accelerators"),
)
_SOURCE = "EC2 DescribeInstanceTypes as carried by moto {moto}; link: {link}{network}"
#: When the list was last read and compared with the other tables; moto does not say when it asked EC2.
_AS_OF = "2026-11-21"


def ec2_instance_types() -> list[InstanceType]:
    """Every accelerated type in EC2's list that has a known device and is not stated in a fact table.

    Raises `Implausible` for a device name or family that the tables do not know, so that a new
    family is looked up rather than guessed.
    """
    elsewhere = {row["name"] for row in [*mapping_table("hardware_aws"), *data_table("left_out.csv")]}
    records = [each for name, each in sorted(ec2_records().items()) if name not in elsewhere]
    return [_instance_type(each) for each in records if _devices(each)]


@cache
def ec2_records() -> dict[str, dict[str, Any]]:
    """EC2's own records by instance type, in the shape of the DescribeInstanceTypes answer."""
    packed = files("moto.ec2") / "resources" / "instance_types.json.gz"
    records = json.loads(gzip.decompress(packed.read_bytes()))
    return records if isinstance(records, dict) else {each["InstanceType"]: each for each in records}


def _devices(record: dict[str, Any]) -> list[dict[str, Any]]:
    for group, within in _DEVICE_LISTS:
        if record.get(group, {}).get(within):
            return list(record[group][within])
    return []


def _instance_type(record: dict[str, Any]) -> InstanceType:
    name = record["InstanceType"]
    family = _family(name)
    (device,) = _devices(record)
    share = Fraction(device.get("GpuPartitionSize", 1))
    count = device["Count"] if share == 1 else share
    memory_mib = device["MemoryInfo"]["SizeInMiB"]
    disk_gb = record.get("InstanceStorageInfo", {}).get("TotalSizeInGB")
    network_gbps, network_note = _network(record["NetworkInfo"])
    has_peers = count > 1
    return InstanceType(
        provider="aws",
        name=name,
        accelerator=_accelerator(device["Name"], round(memory_mib / share)),
        accelerator_count=Fraction(count),
        accelerator_memory_mib=memory_mib if share < 1 else None,
        vcpus=float(record["VCpuInfo"]["DefaultVCpus"]),
        ram_gib=record["MemoryInfo"]["SizeInMiB"] / _MIB_PER_GIB,
        local_disk_gb=float(disk_gb) if disk_gb else None,
        intranode_link=family["intranode_link"] if has_peers else "",
        intranode_gbs=float(family["intranode_gbs"]) if has_peers and family["intranode_gbs"] else None,
        scaleup_domain=max(1, int(count)),
        network_gbps=network_gbps,
        fabric="EFA" if record["NetworkInfo"].get("EfaSupported") else "ENA",
        clusters=share == 1,
        sold_on_demand=family["sold_on_demand"] == "yes",
        source=_SOURCE.format(moto=version("moto"), link=family["source"], network=network_note),
        as_of=_AS_OF,
    )


def _family(name: str) -> Row:
    family = name.partition(".")[0]
    found = _families().get(family)
    if found is None:
        raise Implausible(f"instance type {name}: data/ec2_families.csv lacks the family {family}")
    return found


@cache
def _families() -> dict[str, Row]:
    return {row["family"]: row for row in data_table("ec2_families.csv")}


def _accelerator(ec2_name: str, memory_mib: int) -> str:
    """Our name for a whole device of that name and memory; EC2 rounds the memory of a share."""
    for row in data_table("ec2_devices.csv"):
        if row["ec2_name"] == ec2_name and abs(int(row["ec2_memory_mib"]) - memory_mib) <= 8:
            return row["accelerator"]
    raise Implausible(f"data/ec2_devices.csv lacks the EC2 device {ec2_name!r} of {memory_mib} MiB")


def _network(info: dict[str, Any]) -> tuple[float, str]:
    """Gbit/s of the node, and a note where it may burst above that.

    The headline ("8x 100 Gigabit") rather than the sum over network cards, which for several
    families exceeds or falls short of what AWS documents; for "up to" the sustained baseline.
    """
    headline = info["NetworkPerformance"]
    if headline.startswith("Up to"):
        baseline = sum(card["BaselineBandwidthInGbps"] for card in info["NetworkCards"])
        return float(baseline), f"; network: baseline, {headline[0].lower()}{headline[1:]} in bursts"
    stated = re.fullmatch(r"(?:(\d+)x )?([\d.]+) Gigabit", headline)
    if stated is None:
        raise Implausible(f"EC2 network performance {headline!r} is not understood")
    return int(stated[1] or 1) * float(stated[2]), ""
