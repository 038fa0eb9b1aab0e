"""Machines as DescribeInstanceTypes tells them, odd spellings included."""

from typing import Any

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.offer import InstanceType

#: EC2 has named these by their maker alone.
NAMED_BY_MAKER = ("p5e.", "p5en.")
MAKERS = {"Gaudi HL-205": "Habana", "Radeon Pro V520": "AMD", "Qualcomm AI100": "Qualcomm"}
Record = dict[str, Any]


def record_of(machine: InstanceType, *, in_blocks: bool) -> Record | None:
    """EC2's record of a machine; None for one whose device EC2's name for is not known."""
    row = next((item for item in data_table("ec2_devices.csv") if item["accelerator"] == machine.accelerator), None)
    if row is None:
        return None
    name, memory = row["ec2_name"], int(row["ec2_memory_mib"])
    return {
        **_plain_record(machine, in_blocks=in_blocks),
        **_devices(machine, name, machine.accelerator_memory_mib or memory),
    }


def ordinary_record(name: str) -> Record:
    """A machine without any accelerator, of which a region sells hundreds."""
    return {
        "InstanceType": name,
        "CurrentGeneration": True,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "BareMetal": False,
        "Hypervisor": "nitro",
        "VCpuInfo": {"DefaultVCpus": 8, "DefaultCores": 4, "DefaultThreadsPerCore": 2},
        "MemoryInfo": {"SizeInMiB": 32768},
        "NetworkInfo": {"NetworkPerformance": "Up to 12.5 Gigabit", "EfaSupported": False},
    }


def odd_records() -> list[Record]:
    """Cards that no training framework runs on."""
    fpga = {"Fpgas": [{"Name": "VU47P", "Manufacturer": "Xilinx", "Count": 1, "MemoryInfo": {"SizeInMiB": 82944}}]}
    media = {
        "Accelerators": [{"Count": 1, "Name": "U30", "Manufacturer": "Xilinx", "MemoryInfo": {"SizeInMiB": 24576}}]
    }
    return [
        {**ordinary_record("f2.6xlarge"), "FpgaInfo": {**fpga, "TotalFpgaMemoryInMiB": 82944}},
        {**ordinary_record("vt1.3xlarge"), "MediaAcceleratorInfo": {**media, "TotalMediaMemoryInMiB": 24576}},
    ]


def _plain_record(machine: InstanceType, *, in_blocks: bool) -> Record:
    classes = ["on-demand", "spot"] if machine.sold_on_demand or not in_blocks else []
    record: Record = {
        "InstanceType": machine.name,
        "CurrentGeneration": not machine.retired,
        "SupportedUsageClasses": [*classes, *(["capacity-block"] if in_blocks else [])],
        "VCpuInfo": {"DefaultVCpus": round(machine.vcpus or 0)},
        "MemoryInfo": {"SizeInMiB": round((machine.ram_gib or 0) * 1024)},
        "NetworkInfo": {**_network(machine.network_gbps), "EfaSupported": machine.fabric == "EFA"},
    }
    if machine.local_disk_gb:
        record["InstanceStorageInfo"] = {"TotalSizeInGB": round(machine.local_disk_gb)}
    return record


def _network(gbps: float | None) -> Record:
    if gbps is None:
        return {"NetworkPerformance": "High"}
    if gbps.is_integer():
        return {"NetworkPerformance": f"{gbps:.0f} Gigabit"}
    return {"NetworkPerformance": "Up to 25 Gigabit", "NetworkCards": [{"BaselineBandwidthInGbps": gbps}]}


def _devices(machine: InstanceType, name: str, memory: int) -> Record:
    """Where EC2 lists them: Trainium as Neuron devices, Inferentia there and as inference cards, Qualcomm only as those."""
    count = machine.devices
    device: Record = {"Name": name, "Count": count, "MemoryInfo": {"SizeInMiB": memory}}
    neuron = {"NeuronInfo": {"NeuronDevices": [device], "TotalNeuronDeviceMemoryInMiB": count * memory}}
    inference = {
        "InferenceAcceleratorInfo": {
            "Accelerators": [{**device, "Manufacturer": MAKERS.get(name, "AWS")}],
            "TotalInferenceMemoryInMiB": count * memory,
        }
    }
    if name.startswith("Trainium"):
        return neuron
    if name.startswith("Inferentia"):
        return {**neuron, **inference}
    if name.startswith("Qualcomm"):
        return inference
    gpu = {**device, "Manufacturer": MAKERS.get(name, "NVIDIA"), "LogicalGpuCount": count, "GpuPartitionSize": 1.0}
    if machine.is_slice:
        gpu |= {"Count": 0, "LogicalGpuCount": 1, "GpuPartitionSize": float(machine.accelerator_count)}
    if machine.name.startswith(NAMED_BY_MAKER):
        gpu["Name"] = "NVIDIA"
    total = 0 if machine.name == "gr6f.4xlarge" else count * memory
    return {"GpuInfo": {"Gpus": [gpu], "TotalGpuMemoryInMiB": total}}
