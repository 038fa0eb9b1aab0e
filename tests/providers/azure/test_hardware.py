"""What is in an Azure size, by gpuplan's own table or by the SKU list."""

from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.providers.azure.hardware import NoTraining, Unknown, differs, hardware_of, known_sizes
from gpuplan.providers.azure.mapping_tables import families, family_of
from gpuplan.providers.azure.skus import Sku, skus_of
from tests.clouds.azure import restriction, sku

TODAY = date(2026, 11, 21)


def listed(name: str, region: str = "eastus", **changes: Any) -> Sku:
    result = skus_of([sku(name, region, **changes)]).at(region.lower(), name)
    assert result is not None
    return result


def machine(name: str, **changes: Any) -> InstanceType:
    made = hardware_of(name, listed(name, **changes), read_on=TODAY)
    assert isinstance(made, InstanceType)
    return made


def test_disks_snapshots_and_hosts_among_the_resources_are_passed_over() -> None:
    resources = [
        sku("Standard_NC4as_T4_v3", "eastus"),
        {"resourceType": "disks", "name": "Standard_NC_LRS", "locations": ["westus"]},
        {"resourceType": "hostGroups/hosts", "name": "Standard_NC4as_T4_v3", "locations": ["westus"]},
        None,
        "text",
        {},
    ]
    result = skus_of(resources)
    assert set(result.by_place) == {("eastus", "standard_nc4as_t4_v3")}
    assert result.regions == {"eastus"}


def test_locations_in_any_case_join_with_the_regions_of_the_price_list() -> None:
    result = skus_of([sku("Standard_NC4as_T4_v3", "WestUS3")])
    assert result.at("westus3", "STANDARD_nc4as_T4_v3") is not None


def test_capabilities_are_text_and_may_be_missing_or_broken() -> None:
    capabilities = {"GPUs": "eight", "vCPUs": "0.75", "MemoryGB": "", "RdmaEnabled": None, "MaxResourceVolumeMB": None}
    result = listed("Standard_NX4s_v9", capabilities=capabilities)
    assert (result.gpus, result.vcpus, result.ram_gib, result.infiniband, result.local_disk_gb) == (
        None, 0.75, None, False, None,
    )  # fmt: skip
    assert result.spot
    bare = {"resourceType": "virtualMachines", "name": "Standard_NX4s_v9", "locations": ["eastus"]}
    for broken in (bare, {**bare, "capabilities": "x", "restrictions": {"type": 5}}):
        assert skus_of([broken]).at("eastus", "Standard_NX4s_v9") == Sku(name="Standard_NX4s_v9")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(changes=st.dictionaries(st.sampled_from(sorted(sku("Standard_NC6", "eastus"))), ANYTHING))
def test_whatever_an_entry_holds_it_is_read_or_passed_over_and_the_next_one_stands(changes: dict[str, Any]) -> None:
    result = skus_of([{**sku("Standard_NC6", "eastus"), **changes}, sku("Standard_NC12", "eastus")])
    twelve = result.at("eastus", "Standard_NC12")
    assert twelve is not None
    for item in result.by_place.values():
        hardware_of(item.name, item, read_on=TODAY)


def test_the_resource_type_and_names_of_another_type_are_passed_over() -> None:
    assert skus_of([{"resourceType": "virtualMachines", "name": 5, "locations": "eastus"}]).by_place == {}


def test_nvme_disks_count_before_the_temporary_disk_and_mib_become_gb() -> None:
    both = {"NvmeDiskSizeInMiB": "915527", "MaxResourceVolumeMB": "65536"}
    assert listed("Standard_NC24ads_A100_v4", capabilities=both).local_disk_gb == 960.0
    assert listed("Standard_NC16as_T4_v3").local_disk_gb == 378.0


@pytest.mark.parametrize(
    "family",
    ["Standard NCASv3_T4 Family", "StandardNCASv3_T4Family", "standardncasv3_t4family", " Standard  NCASv3_T4Family"],
)
def test_a_family_in_any_spelling_names_the_card(family: str) -> None:
    result = family_of("Standard_NC999zz_v9", family)
    assert result is not None
    assert result.accelerator == "T4"


def test_families_name_cards_that_there_are() -> None:
    for family in families():
        assert bool(family.left_out) != (family.accelerator in accelerators())
        assert family.below_card in ("", "share", "unknown")
        assert bool(family.below_card) == bool(family.card_vcpus)


def test_the_names_of_all_known_sizes_lead_to_the_card_of_the_own_table() -> None:
    for known in known_sizes().values():
        family = family_of(known.name, "")
        assert family is not None, known.name
        assert family.accelerator == known.accelerator, known.name


def test_the_rules_count_every_known_size_as_the_own_table_does() -> None:
    for known in known_sizes().values():
        family = family_of(known.name, "")
        assert family is not None
        assert known.vcpus is not None
        if family.card_vcpus and known.vcpus < family.card_vcpus and family.below_card == "share":
            assert Fraction(int(known.vcpus), family.card_vcpus) == known.accelerator_count, known.name
            assert known.accelerator_memory_mib == family.card_memory_gib * 1024 * known.accelerator_count  # type: ignore[operator]
        else:
            assert known.accelerator_count >= 1, known.name


@pytest.mark.parametrize(
    ("name", "vcpus", "count", "memory"),
    [
        ("Standard_NV6adms_A10_v5", "6", Fraction(1, 6), 4096),
        ("Standard_NV12adms_A10_v5", "12", Fraction(1, 3), 8192),
        ("Standard_NV18adms_A10_v5", "18", Fraction(1, 2), 12288),
        ("Standard_NV2as_v4", "2", Fraction(1, 16), 1024),
        ("Standard_NV8adms_V710_v5", "8", Fraction(1, 3), 8192),
        ("Standard_NG8adms_V620_v1", "8", Fraction(1, 4), 8192),
    ],
)
def test_a_share_of_a_card_counts_by_its_vcpus_although_the_list_says_one_gpu(
    name: str, vcpus: str, count: Fraction, memory: int
) -> None:
    made = machine(name, capabilities={"vCPUs": vcpus, "GPUs": "1"})
    assert (made.accelerator_count, made.accelerator_memory_mib, made.clusters) == (count, memory, False)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Standard_NV6ads_A10_v5", Fraction(1, 6)),
        ("Standard_NV4as_v4", Fraction(1, 8)),
        ("Standard_NV8as_v4", Fraction(1, 4)),
        ("Standard_NV16as_v4", Fraction(1, 2)),
        ("Standard_NV32as_v4", Fraction(1)),
    ],
)
def test_a_known_share_stays_what_the_own_table_says(name: str, count: Fraction) -> None:
    assert machine(name).accelerator_count == count
    assert differs(machine(name), listed(name)) == ""


def test_a_size_that_nobody_has_described_takes_its_hardware_from_the_list() -> None:
    made = machine(
        "Standard_ND96isrx_H200_v5",
        family="standardNDSH200v5Family",
        capabilities={"GPUs": "8", "vCPUs": "96", "MemoryGB": "1850", "RdmaEnabled": "True"},
    )
    assert (made.accelerator, made.accelerator_count) == ("H200-141GB-SXM", Fraction(8))
    assert (made.vcpus, made.ram_gib, made.local_disk_gb, made.fabric) == (96, 1850, 378.0, "InfiniBand")
    assert (made.intranode_link, made.intranode_gbs, made.network_gbps) == ("nvlink", 450.0, None)
    assert (made.as_of, made.clusters) == ("2026-11-21", True)


def test_h100_of_the_nc_series_is_the_nvl_card() -> None:
    assert machine("Standard_NC80adiz_H100_v5", capabilities={"GPUs": "2"}).accelerator == "H100-94GB-NVL"


def test_a_wrong_gpu_count_in_the_list_is_told_and_the_own_table_kept() -> None:
    twelve = {"GPUs": "12", "vCPUs": "96"}
    made = machine("Standard_ND96isr_H100_v5", capabilities=twelve)
    assert made.accelerator_count == 8
    reported = differs(made, listed("Standard_ND96isr_H100_v5", capabilities=twelve))
    assert reported == ("Standard_ND96isr_H100_v5: the SKU list says 12 GPUs, gpuplan's own table 8, which is used")


def test_a_card_that_nobody_knows_is_unknown_and_not_guessed() -> None:
    result = hardware_of("Standard_NZ8s_v9", listed("Standard_NZ8s_v9"), read_on=TODAY)
    assert isinstance(result, Unknown)
    assert result.reason.startswith("unknown accelerator")


def test_a_new_line_of_machines_takes_its_card_from_the_name_and_its_count_from_the_list() -> None:
    for name, family, card in (
        ("Standard_ND96isr_B300_v7", "standardNDISRB300V7Family", "B300-SXM"),
        ("Standard_ND192isr_NDR_MI355X_v6", "", "MI355X"),
        ("Standard_NC96ds_xl_L40S_v6", "StandardNCdsL40Sv6Family", "L40S"),
    ):
        made = machine(name, family=family, capabilities={"GPUs": "8", "vCPUs": "96"})
        assert (made.accelerator, made.accelerator_count) == (card, Fraction(8))
        assert made.source.endswith("vm-naming-conventions")
        assert isinstance(hardware_of(name, None, read_on=TODAY), Unknown)


def test_one_gpu_of_a_new_line_may_be_a_share_except_in_the_training_series() -> None:
    shared = hardware_of(
        "Standard_NV6ads_L40S_v6", listed("Standard_NV6ads_L40S_v6", capabilities={"GPUs": "1"}), read_on=TODAY
    )
    assert isinstance(shared, Unknown)
    assert "a share, which counts as one too" in shared.reason
    assert machine("Standard_ND12is_L40S_v6", capabilities={"GPUs": "1"}).accelerator_count == 1


@pytest.mark.parametrize("name", ["Standard_NX96_H100_v9", "Standard_NX96_A100_v9", "Standard_ND40s_v3"])
def test_a_name_that_leaves_the_card_open_is_unknown_and_not_guessed(name: str) -> None:
    assert isinstance(hardware_of(name, listed(name, capabilities={"GPUs": "8"}), read_on=TODAY), Unknown)


def test_a_known_card_without_a_count_is_unknown() -> None:
    name = "Standard_ND96isrx_H200_v5"
    without = hardware_of(name, None, read_on=TODAY)
    silent = hardware_of(name, listed(name, capabilities={"GPUs": None}), read_on=TODAY)
    too_many = hardware_of(name, listed(name, capabilities={"GPUs": "6400"}), read_on=TODAY)
    assert isinstance(without, Unknown)
    assert "only the SKU list" in without.reason
    assert isinstance(silent, Unknown)
    assert "does not say how many" in silent.reason
    assert isinstance(too_many, Unknown)
    assert "6400 is outside" in too_many.reason


def test_less_than_a_card_that_is_not_shared_by_vcpus_is_unknown() -> None:
    name = "Standard_NC32ds_xl_RTXPRO6000BSE_v6"
    result = hardware_of(name, listed(name, capabilities={"vCPUs": "32"}), read_on=TODAY)
    assert isinstance(result, Unknown)
    assert "less than one" in result.reason


@pytest.mark.parametrize("name", ["Standard_NP10s", "standard_np20s", "Standard_NP80s", "Standard_NM16ads_MA35D"])
def test_fpgas_and_video_cards_are_no_gpus_although_the_list_counts_them(name: str) -> None:
    assert isinstance(hardware_of(name, listed(name), read_on=TODAY), NoTraining)


def test_a_restriction_on_the_location_closes_a_size_there() -> None:
    closed = listed("Standard_NV6s_v2", restrictions=[restriction("EastUS", reason="QuotaId")])
    assert closed.closed == "QuotaId"
    bare = listed("Standard_NV6s_v2", restrictions=[{"reasonCode": None}])
    assert bare.closed == "restricted"


def test_a_restriction_on_zones_or_on_another_location_leaves_a_size_open() -> None:
    remaining = [restriction("eastus", kind="Zone"), restriction("westus"), "odd", {"type": "Zone"}]
    assert listed("Standard_NV6", restrictions=remaining).closed == ""


def test_a_size_that_says_it_has_no_spot_has_none() -> None:
    assert not listed("Standard_NC6", capabilities={"LowPriorityCapable": "False"}).spot
    assert listed("Standard_NC6", capabilities={"LowPriorityCapable": None}).spot
