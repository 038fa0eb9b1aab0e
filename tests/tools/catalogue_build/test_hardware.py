"""Every priced machine has its hardware, EC2's agrees with EC2's own list, and shares of cards are exact."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import Implausible, InstanceType
from gpuplan.catalog.model.unavailable_machines import left_out
from tools.catalogue_build import hardware
from tools.catalogue_build.fact_tables import fact_table, mapping_table
from tools.catalogue_build.hardware import ec2_instance_types, ec2_records, instance_types

EC2_DEVICE_LISTS = (("GpuInfo", "Gpus"), ("NeuronInfo", "NeuronDevices"), ("InferenceAcceleratorInfo", "Accelerators"))
#: EC2 states these before ECC (T4) or in error (512 GiB for a Trainium2 chip of 96 GiB).
EC2_MEMORY_DIFFERS = {"T4", "T4g", "Trainium2"}


@cache
def types() -> dict[str, InstanceType]:
    """Every machine by its name: made for the tests that ask, since it takes a second."""
    return {instance_type.name: instance_type for instance_type in instance_types()}


def test_every_machine_names_its_source_and_date() -> None:
    for item in types().values():
        assert "https://" in item.source, item.name
        assert item.as_of.startswith("20"), item.name


def test_every_machine_has_vcpus_and_memory_in_proportion() -> None:
    for item in types().values():
        assert item.vcpus is not None, item.name
        assert item.ram_gib is not None, item.name
        assert 1.5 < item.ram_gib / item.vcpus < 25, item.name
        assert item.network_gbps is None or 1 <= item.network_gbps <= 6_400, item.name


def test_only_machines_with_peers_have_a_link() -> None:
    for item in types().values():
        assert (item.scaleup_domain > 1) == bool(item.intranode_link), item.name
        assert item.scaleup_domain % item.devices == 0, item.name


def test_no_link_is_faster_than_the_device_can_drive() -> None:
    for item in types().values():
        chip = accelerators()[item.accelerator]
        fastest = max((chip.link_gbs or 0) / 2, chip.pcie_gbs or 0)
        assert item.intranode_gbs is None or item.intranode_gbs <= fastest, item.name


def test_ec2_machines_agree_with_ec2() -> None:
    for ec2_instance_type in ec2_instance_types():
        record = ec2_records()[ec2_instance_type.name]
        devices = next(record[group][within] for group, within in EC2_DEVICE_LISTS if record.get(group))
        share = devices[0].get("GpuPartitionSize", 1)
        assert ec2_instance_type.accelerator_count == (devices[0]["Count"] if share == 1 else Fraction(share)), (
            ec2_instance_type.name
        )
        assert ec2_instance_type.vcpus == record["VCpuInfo"]["DefaultVCpus"], ec2_instance_type.name
        assert ec2_instance_type.ram_gib == record["MemoryInfo"]["SizeInMiB"] / 1024, ec2_instance_type.name
        memory = (
            ec2_instance_type.accelerator_memory_mib or accelerators()[ec2_instance_type.accelerator].device_memory_mib
        )
        if ec2_instance_type.accelerator not in EC2_MEMORY_DIFFERS:
            assert memory == devices[0]["MemoryInfo"]["SizeInMiB"], ec2_instance_type.name


def test_every_accelerated_type_that_ec2_describes_is_covered_or_left_out_by_name() -> None:
    groups = ("GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo", "MediaAcceleratorInfo")
    accelerated = {name for name, record in ec2_records().items() if any(record.get(group) for group in groups)}
    assert len(accelerated) > 80
    assert accelerated <= set(types()) | set(left_out())


def test_what_the_tables_say_of_a_type_that_ec2_describes_without_devices_agrees_with_ec2() -> None:
    stated = [types()[row["name"]] for row in mapping_table("hardware_aws") if row["name"] in ec2_records()]
    assert [item.name for item in stated] == ["trn2u.48xlarge"]
    record = ec2_records()["trn2u.48xlarge"]
    assert stated[0].vcpus == record["VCpuInfo"]["DefaultVCpus"]
    assert stated[0].ram_gib == record["MemoryInfo"]["SizeInMiB"] / 1024


@pytest.mark.parametrize(
    ("name", "gbps"),
    [
        ("p5.48xlarge", 3200),
        ("p4d.24xlarge", 400),
        ("p3dn.24xlarge", 100),
        ("p6-b200.48xlarge", 3200),
        ("p6-b300.48xlarge", 6400),
        ("trn1n.32xlarge", 1600),
        ("g5.48xlarge", 100),
        ("g6e.48xlarge", 400),
        ("g5.xlarge", 2.5),
        ("Standard_ND96isr_H100_v5", 3200),
        ("Standard_ND96asr_v4", 1600),
        ("a3-highgpu-8g", 800),
        ("a3-megagpu-8g", 1600),
        ("a3-ultragpu-8g", 3200),
        ("a4-highgpu-8g", 3200),
    ],
)
def test_network_is_that_of_the_whole_node_for_its_accelerators(name: str, gbps: float) -> None:
    assert types()[name].network_gbps == gbps


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("p5.48xlarge", 8),
        ("a2-megagpu-16g", 16),
        ("trn1.32xlarge", 16),
        ("p6e-gb200.36xlarge", 72),
        ("Standard_ND128isr_NDR_GB200_v6", 72),
        ("a4x-highgpu-4g", 72),
        ("trn2u.48xlarge", 64),
        ("p5.4xlarge", 1),
    ],
)
def test_the_fast_link_reaches_as_far_as_documented(name: str, domain: int) -> None:
    assert types()[name].scaleup_domain == domain


@pytest.mark.parametrize(
    ("name", "count", "mib"),
    [
        ("Standard_NV6ads_A10_v5", Fraction(1, 6), 4096),
        ("Standard_NV12ads_A10_v5", Fraction(1, 3), 8192),
        ("Standard_NC16ads_A10_v4", Fraction(2, 3), 16384),
        ("Standard_NV4as_v4", Fraction(1, 8), 2048),
        ("Standard_NG8ads_V620_v1", Fraction(1, 4), 8192),
        ("Standard_NV4ads_V710_v5", Fraction(1, 6), 4096),
        ("g6f.large", Fraction(1, 8), 2861),
        ("gr6f.4xlarge", Fraction(1, 2), 11444),
        ("g4-standard-6", Fraction(1, 8), 12288),
    ],
)
def test_shares_of_a_card_are_exact_and_have_their_own_memory(name: str, count: Fraction, mib: int) -> None:
    assert types()[name].accelerator_count == count
    assert types()[name].accelerator_memory_mib == mib
    assert types()[name].devices == 1
    assert not types()[name].clusters


@pytest.mark.parametrize(
    ("name", "accelerator", "count"),
    [
        ("p2.16xlarge", "K80", 16),
        ("g3.16xlarge", "M60", 4),
        ("Standard_NC24", "K80", 4),
        ("p4de.24xlarge", "A100-80GB-SXM", 8),
        ("p5.4xlarge", "H100-80GB-SXM", 1),
        ("Standard_NC24ads_A100_v4", "A100-80GB-PCIe", 1),
        ("Standard_NC80adis_H100_v5", "H100-94GB-NVL", 2),
        ("Standard_ND40rs_v2", "V100-32GB", 8),
        ("a2-ultragpu-8g", "A100-80GB-SXM", 8),
        ("trn2.48xlarge", "Trainium2", 16),
    ],
)
def test_model_and_form_factor_follow_from_the_machine(name: str, accelerator: str, count: int) -> None:
    assert (types()[name].accelerator, types()[name].accelerator_count) == (accelerator, Fraction(count))


def test_what_can_only_be_reserved_is_not_sold_on_demand() -> None:
    reserved = {name for name, item in types().items() if not item.sold_on_demand}
    assert reserved == {
        "a3-highgpu-1g",
        "a3-highgpu-2g",
        "a3-highgpu-4g",
        "a3-ultragpu-8g",
        "a4-highgpu-8g",
        "a4x-highgpu-4g",
        "a4x-maxgpu-4g-metal",
        "p5e.48xlarge",
        "p6e-gb200.36xlarge",
        "trn2u.48xlarge",
    }


def test_retired_families_are_there_and_marked_with_their_date() -> None:
    retired = {name: item for name, item in types().items() if item.retired}
    assert {"p2.xlarge", "g2.2xlarge", "g3s.xlarge", "Standard_NC6", "Standard_NV6s_v2", "Standard_NC6s_v3"} <= set(
        retired
    )
    assert all("retired" in item.source or "previous generation" in item.source for item in retired.values())


def test_fpga_and_video_machines_are_left_out_with_a_reason() -> None:
    assert {"f1.2xlarge", "f2.48xlarge", "vt1.3xlarge", "Standard_NP10s"} <= set(left_out())
    assert not set(left_out()) & set(types())
    assert all(left_out().values())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"accelerator": "H101"}, "no accelerator is named 'H101'"),
        ({"accelerator_count": Fraction(1, 2), "clusters": False}, "needs its own accelerator_memory_mib"),
        ({"accelerator_count": Fraction(1, 2), "accelerator_memory_mib": 40960}, "cannot work with other nodes"),
        ({"scaleup_domain": 4}, "exceed scaleup_domain"),
        ({"source": ""}, "source and as_of are needed"),
    ],
)
def test_a_row_that_cannot_be_is_refused(
    change: dict[str, object], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(types()["p5.48xlarge"], **change)  # type: ignore[arg-type]
    monkeypatch.setattr(hardware, "ec2_instance_types", lambda: [wrong])
    with pytest.raises(Implausible, match=complaint):
        instance_types()


def test_a_type_stated_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "ec2_instance_types", lambda: [types()["a2-highgpu-1g"]])
    with pytest.raises(Implausible, match="gcp/a2-highgpu-1g is stated twice"):
        instance_types()


def test_every_priced_machine_is_covered_or_left_out_by_name() -> None:
    priced = {(row["provider"], row["instance_type"]) for row in fact_table("listed_prices")}
    composed = {(provider, name) for provider, name in priced if name.startswith(("n1-", "tpu-"))}
    missing = {name for _, name in priced - composed} - set(types()) - set(left_out())
    assert len(priced) > 190
    assert not missing


def test_counts_agree_with_the_price_lists() -> None:
    rows = {row["instance_type"]: row["accelerator_count"] for row in fact_table("listed_prices")}
    for name, count in rows.items():
        if name in types():
            assert float(types()[name].accelerator_count) == pytest.approx(float(count), abs=1e-3), name
