"""Convert one record of EC2's DescribeInstanceTypes (from moto or from the API) to an instance type.

EC2 states counts, memory, vCPU, disk and network, but not how the devices of a node are linked. `data/ec2_families.csv`
adds the link per family, and `data/ec2_devices.csv` maps EC2's device name and memory to the accelerator. The link of a
family outside the table is unknown. A device outside the table is rejected, because nothing can be planned on an unknown
accelerator.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import Implausible, InstanceType

_MIB_PER_GIB = 1024
#: Where EC2 lists accelerators: (group, list within it). Inferentia is in two groups; the first counts.
_DEVICE_LISTS = (
    ("GpuInfo", "Gpus"),
    ("NeuronInfo", "NeuronDevices"),
    ("InferenceAcceleratorInfo", "Accelerators"),
)
#: For some types (p5e, p5en) EC2 names only the device's vendor; the memory then identifies it.
_MAKERS = {"NVIDIA"}
#: EC2 rounds the memory of a share of a card.
_MEMORY_TOLERANCE_MIB = 8
#: The smallest share of a card that EC2 rents is an eighth.
_SMALLEST_SHARE = Fraction(1, 8)


class UnknownAccelerator(Implausible):
    """A machine with a device that `data/ec2_devices.csv` lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Devices:
    """The accelerators that EC2 states for one machine; `memory_mib` of one device, or of a share of one."""

    accelerator: str
    count: Fraction
    memory_mib: int


def has_accelerators(record: Mapping[str, Any]) -> bool:
    """Whether the record lists devices that a training framework can use."""
    return bool(_listed(record))


def ec2_instance_type(record: Mapping[str, Any], *, source: str, as_of: str) -> InstanceType:
    """The instance type of a record in the shape of the DescribeInstanceTypes answer.

    Raises `UnknownAccelerator` for a device that the table lacks, and `Implausible` for a record without a device, with two
    different devices, or with text in place of a size.
    """
    name = str(record.get("InstanceType", ""))
    try:
        return _instance_type(name, record, source=source, as_of=as_of)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, Implausible):
            raise
        raise Implausible(f"instance type {name}: EC2's record is not understood ({problem!r})") from problem


def _instance_type(name: str, record: Mapping[str, Any], *, source: str, as_of: str) -> InstanceType:
    devices = _devices(name, record)
    family = ec2_families().get(name.partition(".")[0])
    network = record.get("NetworkInfo") or {}
    network_gbps, network_note = _network(network)
    disk_gb = (record.get("InstanceStorageInfo") or {}).get("TotalSizeInGB")
    vcpus = (record.get("VCpuInfo") or {}).get("DefaultVCpus")
    ram_mib = (record.get("MemoryInfo") or {}).get("SizeInMiB")
    has_peers = devices.count > 1
    link = family if family and has_peers else {"intranode_link": "", "intranode_gbs": ""}
    link_note = f"; link: {family['source']}" if family else ""
    return InstanceType(
        provider="aws",
        name=name,
        accelerator=devices.accelerator,
        accelerator_count=devices.count,
        accelerator_memory_mib=devices.memory_mib if devices.count < 1 else None,
        vcpus=float(vcpus) if vcpus else None,
        ram_gib=ram_mib / _MIB_PER_GIB if ram_mib else None,
        local_disk_gb=float(disk_gb) if disk_gb else None,
        intranode_link=link["intranode_link"],
        intranode_gbs=float(link["intranode_gbs"]) if link["intranode_gbs"] else None,
        scaleup_domain=max(1, int(devices.count)) if family else 1,
        network_gbps=network_gbps,
        fabric="EFA" if network.get("EfaSupported") else "ENA",
        clusters=devices.count >= 1,
        sold_on_demand=_sold_on_demand(record, family),
        source=f"{source}{link_note}{network_note}",
        as_of=as_of,
    )


@cache
def ec2_families() -> dict[str, dict[str, str]]:
    """How the devices of a node are linked, by family."""
    return {row["family"]: row for row in data_table("ec2_families.csv")}


def _sold_on_demand(record: Mapping[str, Any], family: Mapping[str, str] | None) -> bool:
    """Whether it is sold on demand. EC2 says yes for types sold only as capacity blocks; the table overrides it."""
    classes = record.get("SupportedUsageClasses") or ["on-demand"]
    return "on-demand" in classes and (family is None or family["sold_on_demand"] == "yes")


def _listed(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for group, within in _DEVICE_LISTS:
        listed = (record.get(group) or {}).get(within)
        if listed:
            return list(listed)
    return []


def _devices(name: str, record: Mapping[str, Any]) -> _Devices:
    listed = _listed(record)
    kinds = {(device.get("Name", ""), (device.get("MemoryInfo") or {}).get("SizeInMiB")) for device in listed}
    if len(kinds) != 1:
        raise Implausible(f"instance type {name}: one kind of accelerator is needed, EC2 lists {len(kinds)}")
    device = listed[0]
    ec2_name = str(device.get("Name", ""))
    stated_mib = int((device.get("MemoryInfo") or {}).get("SizeInMiB") or _total_mib(record) or 0)
    whole = sum(int(device.get("Count") or 0) for device in listed)
    share = _share(device, whole, ec2_name, stated_mib)
    row = _device_row(ec2_name, round(stated_mib / share)) or (_device_row(ec2_name, stated_mib) if share < 1 else None)
    if row is None and not stated_mib:
        row = _only_device(ec2_name)
    if row is None:
        raise UnknownAccelerator(f"unknown accelerator {ec2_name} ({stated_mib} MiB) of {name}")
    if share == 1:
        return _Devices(accelerator=row["accelerator"], count=Fraction(whole), memory_mib=stated_mib)
    of_whole = abs(int(row["ec2_memory_mib"]) - stated_mib) <= _MEMORY_TOLERANCE_MIB or not stated_mib
    memory_mib = int(int(row["ec2_memory_mib"]) * share) if of_whole else stated_mib
    count = share * max(1, int(device.get("LogicalGpuCount") or 1))
    return _Devices(accelerator=row["accelerator"], count=count, memory_mib=memory_mib)


def _total_mib(record: Mapping[str, Any]) -> int:
    return int((record.get("GpuInfo") or {}).get("TotalGpuMemoryInMiB") or 0)


def _share(device: Mapping[str, Any], whole: int, ec2_name: str, stated_mib: int) -> Fraction:
    """The share of a card behind one device: as stated, or derived from its memory if the count is 0."""
    stated = device.get("GpuPartitionSize")
    if stated:
        return Fraction(stated)
    row = _only_device(ec2_name)
    if whole or row is None or not stated_mib:
        return Fraction(1)
    eighths = round(Fraction(stated_mib, int(row["ec2_memory_mib"])) / _SMALLEST_SHARE)
    return max(1, eighths) * _SMALLEST_SHARE


def _device_row(ec2_name: str, memory_mib: int) -> dict[str, str] | None:
    """The table row of a whole device with that name and memory, or the vendor's only one with that memory."""
    fitting = [
        row
        for row in data_table_of_devices()
        if abs(int(row["ec2_memory_mib"]) - memory_mib) <= _MEMORY_TOLERANCE_MIB
        and (row["ec2_name"] == ec2_name or ec2_name in _MAKERS)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _only_device(ec2_name: str) -> dict[str, str] | None:
    """The row of a device that exists with one memory size only."""
    fitting = [row for row in data_table_of_devices() if row["ec2_name"] == ec2_name]
    return fitting[0] if len(fitting) == 1 else None


@cache
def data_table_of_devices() -> tuple[dict[str, str], ...]:
    """Maps EC2's device names and memories to our accelerators."""
    return tuple(data_table("ec2_devices.csv"))


def _network(info: Mapping[str, Any]) -> tuple[float | None, str]:
    """Gbit/s of the node, and a note where it may burst above that; None if EC2 states no figure.

    Uses the headline ("8x 100 Gigabit") rather than the sum over network cards, which for several families exceeds or falls
    short of AWS's documentation; for "up to" it uses the sustained baseline.
    """
    headline = str(info.get("NetworkPerformance") or "")
    if headline.startswith("Up to"):
        baselines = [card.get("BaselineBandwidthInGbps") for card in info.get("NetworkCards") or []]
        note = f"; network: baseline, {headline[0].lower()}{headline[1:]} in bursts"
        return (float(sum(baselines)), note) if baselines and all(baselines) else (None, "")
    stated = re.fullmatch(r"(?:(\d+)x )?([\d.]+) Gigabit", headline)
    return (int(stated[1] or 1) * float(stated[2]), "") if stated else (None, "")
