"""What the descriptions of SKUs say: kind and component, without a network."""

import pytest

from gpuplan.providers.gcp.sku_descriptions import LOCAL_SSD, component, price_kind


def test_a_b200_spot_sku_that_says_on_demand_is_spot() -> None:
    assert price_kind("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "OnDemand") == "spot"


def test_a_preemptible_tpu_sku_that_says_on_demand_is_spot() -> None:
    assert price_kind("Preemptible Tpu-v3 Pod running in Americas", "OnDemand") == "spot"


def test_the_usage_type_tells_spot_where_the_description_does_not() -> None:
    assert price_kind("Nvidia L4 GPU running in Americas", "Preemptible") == "spot"


@pytest.mark.parametrize(
    "description",
    [
        "DWS Defined Duration A3 Core running in Americas",
        "Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas",
        "DWS Flex Start H4D Instance Core running in Americas",
        "Nvidia L4 GPU attached to DWS Flex-Start VMs running in Americas",
    ],
)
def test_dws_defined_duration_and_dws_flex_start_are_both_flex_start(description: str) -> None:
    assert price_kind(description, "OnDemand") == "flex_start"


@pytest.mark.parametrize(
    "description",
    [
        "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas",
        "Reserved TpuV5p in Delhi in Calendar Mode",
    ],
)
def test_calendar_mode_is_a_kind_of_its_own(description: str) -> None:
    assert price_kind(description, "OnDemand") == "calendar"


def test_other_sales_of_the_workload_scheduler_are_no_known_kind() -> None:
    assert price_kind("DWS Something New A3 Core running in Americas", "OnDemand") is None


@pytest.mark.parametrize(
    ("description", "usage", "kind"),
    [
        ("Commitment v1: A2 Cpu in APAC for 1 Year", "Commit1Yr", "committed_1y"),
        ("Commitment v1: TpuV5p running in Netherlands for 3 Years", "Commit3Yr", "committed_3y"),
        ("Commitment v1: A2 Cpu in Americas for 1 Month", "Commit1Mo", None),
        ("Commitment v1: Local SSD In Iowa for 3 Years", "Commit3Yr", "committed_3y"),
    ],
)
def test_commitments_are_told_by_their_years(description: str, usage: str, kind: str | None) -> None:
    assert price_kind(description, usage) == kind


@pytest.mark.parametrize(
    "description",
    [
        "A2 Sole Tenancy Instance Core running in Americas",
        "Sole Tenancy Premium for A2 Sole Tenancy Instance Core",
        "N1 Custom Instance Core running in Americas",
        "Custom Extended Instance Ram running in Americas",
        "Reserved G2 Instance Core in Americas",
        "Memory-optimized Instance Core Upgrade Premium running in Americas",
        "A2 Instance Ram suspended in Americas",
        "Nvidia L4 Virtual Workstation GPU running in Americas",
    ],
)
def test_dedicated_custom_reserved_and_surcharge_skus_are_no_price_of_a_machine(description: str) -> None:
    assert price_kind(description, "OnDemand") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nvidia Tesla A100 GPU running in Americas", "Nvidia Tesla A100 80GB GPU running in Americas"),
        ("Nvidia H100 80GB GPU running in Americas", "Nvidia H100 80GB Mega GPU running in Americas"),
        ("A3 Instance Core running in Americas", "A3Plus Instance Core running in Americas"),
        ("A3Plus Instance Core running in Americas", "A3Ultra Instance Core running in Americas"),
        ("Nvidia L4 GPU running in Americas", "Nvidia L4 Virtual Workstation GPU running in Americas"),
        ("Tpu-v3 running in Americas", "Tpu-v3 Pod running in Americas"),
        ("TpuV5e running in Delhi", "TpuV5p running in Delhi"),
    ],
)
def test_a_neighbour_that_begins_alike_is_another_component(one: str, other: str) -> None:
    assert component(one) != component(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nvidia H100 80GB Mega GPU running in Americas", "Nvidia H100 Mega 80GB GPU attached to Spot Preemptible VMs"),
        ("A2 Instance Core running in Americas", "Commitment v1: A2 Cpu in APAC for 1 Year"),
        ("A2 Instance Ram running in Americas", "DWS Defined Duration A2 Ram running in Americas"),
        ("Spot Preemptible G2 Instance Core running in Iowa", "G2 Instance Core running in Belgium"),
        ("H200 141GB GPU running in Americas", "Nvidia H200 141GB GPU running in Tokyo"),
        ("RTX 6000 96GB running in Belgium", "RTX 6000 96GB attached to Spot Preemptible VMs running in Belgium"),
        ("TPU7x running in Americas", "Commitment v1: TPU7x running in Americas for 1 Year"),
        ("TpuV5p running in Delhi", "Reserved TpuV5p in Delhi in Calendar Mode"),
        ("TpuV5e running in Delhi", "Reserved V5e TPU in Calendar Mode"),
        ("Tpu-v2 running in Iowa", "TPU-v2 Accelerator USA"),
        ("Tpu-v2 running in Iowa", "TPU-v2 Preemptible Accelerator Taiwan"),
        ("Tpu-v4 Pod running in Americas", "Tpu-v4 Pod Accelerator USA"),
        ("Tpu-v3 Pod running in Americas", "Tpu-v3 Pod EMEA"),
    ],
)
def test_one_component_is_the_same_however_it_is_sold_and_spelt(one: str, other: str) -> None:
    assert component(one) == component(other)


@pytest.mark.parametrize(
    "description",
    [
        "SSD backed Local Storage",
        "SSD backed Local Storage attached to Spot Preemptible VMs",
        "DWS Defined Duration SSD backed Local Storage running in Americas",
        "Commitment v1: Local SSD In Iowa for 1 Year",
    ],
)
def test_local_ssd_has_a_spelling_for_each_kind(description: str) -> None:
    assert component(description) == LOCAL_SSD
