"""Records of DescribeInstanceTypes as EC2 answers today, odd ones included."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from gpuplan.catalog.model.ec2_hardware import UnknownAccelerator, ec2_instance_type, has_accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType


def gpu(name: str, memory_mib: int, **extra: Any) -> dict[str, Any]:
    return {"Name": name, "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": memory_mib}} | extra


def record(name: str, *gpus: Mapping[str, Any], **extra: Any) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "VCpuInfo": {"DefaultVCpus": 96},
        "MemoryInfo": {"SizeInMiB": 1152 * 1024},
        "NetworkInfo": {"NetworkPerformance": "4x 100 Gigabit", "EfaSupported": True},
        "GpuInfo": {"Gpus": list(gpus)},
    } | extra


def made(item: Mapping[str, Any]) -> InstanceType:
    return ec2_instance_type(item, source="EC2 DescribeInstanceTypes", as_of="2026-11-21")


def test_a_known_machine_is_read_with_its_link() -> None:
    machine = made(record("p4d.24xlarge", gpu("A100", 40960)))
    assert (machine.accelerator, machine.devices, machine.vcpus, machine.ram_gib) == ("A100-40GB-SXM", 8, 96, 1152)
    assert (machine.intranode_link, machine.intranode_gbs, machine.scaleup_domain) == ("nvlink", 300, 8)
    assert (machine.network_gbps, machine.fabric, machine.clusters) == (400, "EFA", True)


def test_a100_of_40_and_80_gb_are_told_apart_by_memory_alone() -> None:
    assert made(record("p4de.24xlarge", gpu("A100", 81920))).accelerator == "A100-80GB-SXM"


@pytest.mark.parametrize("name", ["p5e.48xlarge", "p5en.48xlarge"])
def test_a_device_named_nvidia_is_known_by_its_memory(name: str) -> None:
    assert made(record(name, gpu("NVIDIA", 144384))).accelerator == "H200-141GB-SXM"


def test_a_device_named_nvidia_whose_memory_fits_two_is_unknown() -> None:
    with pytest.raises(UnknownAccelerator, match=r"unknown accelerator NVIDIA \(81920 MiB\) of p7\.48xlarge"):
        made(record("p7.48xlarge", gpu("NVIDIA", 81920)))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("memory_mib", [2861, 22888, 0])
def test_a_fractional_gpu_has_a_count_of_0_or_1_and_its_share_whatever_memory_is_stated(
    count: int, memory_mib: int
) -> None:
    device = gpu("L4", memory_mib, Count=count, LogicalGpuCount=1, GpuPartitionSize=0.125)
    machine = made(record("g6f.large", device))
    assert machine.accelerator_count == Fraction(1, 8)
    assert machine.accelerator_memory_mib == 2861
    assert not machine.clusters


def test_a_fractional_gpu_without_a_stated_share_is_told_by_its_memory() -> None:
    machine = made(record("gr6f.4xlarge", gpu("L4", 11444, Count=0)))
    assert (machine.accelerator_count, machine.accelerator_memory_mib) == (Fraction(1, 2), 11444)


def test_a_total_memory_of_0_does_not_matter() -> None:
    total = {"GpuInfo": {"Gpus": [gpu("L4", 22888, Count=1)], "TotalGpuMemoryInMiB": 0}}
    assert made(record("g6.xlarge", **total)).accelerator == "L4"


def test_inferentia_listed_in_two_blocks_is_counted_once() -> None:
    device = {"Name": "Inferentia2", "Count": 12, "MemoryInfo": {"SizeInMiB": 32768}}
    machine = made(
        record(
            "inf2.48xlarge",
            GpuInfo=None,
            NeuronInfo={"NeuronDevices": [device]},
            InferenceAcceleratorInfo={"Accelerators": [{**device, "Manufacturer": "AWS"}]},
        )
    )
    assert (machine.accelerator, machine.devices) == ("Inferentia2", 12)


def test_trainium_stands_among_neuron_devices_alone() -> None:
    device = {"Name": "Trainium", "Count": 16, "MemoryInfo": {"SizeInMiB": 32768}}
    machine = made(record("trn1.32xlarge", GpuInfo=None, NeuronInfo={"NeuronDevices": [device]}))
    assert (machine.accelerator, machine.devices) == ("Trainium1", 16)


def test_qualcomm_stands_among_inference_accelerators_alone() -> None:
    device = {"Name": "Qualcomm AI100", "Manufacturer": "Qualcomm", "Count": 8, "MemoryInfo": {"SizeInMiB": 16000}}
    machine = made(record("dl2q.24xlarge", GpuInfo=None, InferenceAcceleratorInfo={"Accelerators": [device]}))
    assert (machine.accelerator, machine.devices) == ("AI100", 8)


def test_gaudi_is_known() -> None:
    machine = made(record("dl1.24xlarge", gpu("Gaudi HL-205", 32768, Manufacturer="Habana")))
    assert (machine.accelerator, machine.devices) == ("Gaudi1", 8)


@pytest.mark.parametrize("group", ["FpgaInfo", "MediaAcceleratorInfo"])
def test_fpgas_and_video_cards_are_no_accelerators(group: str) -> None:
    odd = record("f3.2xlarge", GpuInfo=None, **{group: {"Any": [{"Count": 1}]}})
    assert not has_accelerators(odd)


def test_an_unknown_family_has_an_unknown_link() -> None:
    machine = made(record("p9.48xlarge", gpu("H100", 81920)))
    assert (machine.intranode_link, machine.intranode_gbs, machine.sold_on_demand) == ("", None, True)


def test_what_is_sold_in_capacity_blocks_alone_is_not_sold_on_demand() -> None:
    assert not made(record("p9.48xlarge", gpu("H100", 81920), SupportedUsageClasses=["capacity-block"])).sold_on_demand


def test_a_record_without_network_disk_or_usage_classes_is_read() -> None:
    bare = {"InstanceType": "p9.48xlarge", "GpuInfo": {"Gpus": [gpu("H100", 81920)]}}
    machine = made(bare)
    assert (machine.network_gbps, machine.vcpus, machine.local_disk_gb) == (None, None, None)
    assert machine.sold_on_demand


def test_up_to_so_many_gigabit_is_the_baseline_where_it_is_stated_and_else_unknown() -> None:
    burst = {"NetworkPerformance": "Up to 10 Gigabit"}
    stated = burst | {"NetworkCards": [{"BaselineBandwidthInGbps": 2.5}]}
    assert made(record("g5.xlarge", gpu("A10G", 22888, Count=1), NetworkInfo=stated)).network_gbps == 2.5
    assert made(record("g5.xlarge", gpu("A10G", 22888, Count=1), NetworkInfo=burst)).network_gbps is None


def test_an_unknown_device_is_named_with_its_memory_and_type() -> None:
    with pytest.raises(UnknownAccelerator, match=r"unknown accelerator R100 \(294912 MiB\) of p9\.48xlarge"):
        made(record("p9.48xlarge", gpu("R100", 294912)))


def test_two_kinds_of_accelerators_in_one_machine_are_refused() -> None:
    with pytest.raises(Implausible, match="one kind of accelerator is needed, EC2 lists 2"):
        made(record("p9.48xlarge", gpu("H100", 81920), gpu("L4", 22888)))


def test_text_in_place_of_a_size_is_refused_with_the_name_of_the_type() -> None:
    with pytest.raises(Implausible, match=r"p9\.48xlarge: EC2's record is not understood"):
        made(record("p9.48xlarge", gpu("H100", 81920), MemoryInfo={"SizeInMiB": "much"}))
