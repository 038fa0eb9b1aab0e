"""Machines of every family composed from their parts, over the wire."""

import pytest

from tests.clouds.gcp import COMPUTE_ENGINE, GcpCatalogue, machine_item
from tests.clouds.gcp_skus import neighbours, sku, ssd_sku
from tests.providers.gcp.reads import REGION, ZONE, add_parts, kinds, price, rows_of, small_catalogue

SLICE = "A4 Nvidia B200 (1 gpu slice)"


def with_machine(
    name: str, vcpus: int, ram_gib: int, accelerator: str, count: int, ssd_partitions: int = 0
) -> GcpCatalogue:
    made = small_catalogue()
    made.add_machine(ZONE, machine_item(name, vcpus, ram_gib, accelerator, count, ssd_partitions))
    return made


def test_a_machine_costs_its_vcpus_its_memory_and_its_gpus() -> None:
    rows = rows_of(small_catalogue())
    assert price(rows, "g2-standard-4") == 4 * 30_000 + 16 * 2_000 + 500_000
    assert price(rows, "g2-standard-24") == 24 * 30_000 + 96 * 2_000 + 2 * 500_000


def test_neighbours_of_a_sku_change_no_price() -> None:
    made = small_catalogue()
    made.skus[COMPUTE_ENGINE] = [*neighbours(REGION), *made.skus[COMPUTE_ENGINE], *neighbours(REGION)]
    assert rows_of(made).offers == rows_of(small_catalogue()).offers


def test_dws_skus_never_lower_the_on_demand_price() -> None:
    made = small_catalogue()
    add_parts(made, "flex_start", ("Nvidia L4 GPU", 100_000_000), ("G2 Core", 5_000_000), ("G2 Ram", 1_000_000))
    rows = rows_of(made)
    assert price(rows, "g2-standard-4") == 652_000
    assert price(rows, "g2-standard-4", "flex_start") == 4 * 5_000 + 16 * 1_000 + 100_000


def test_a_kind_without_one_of_the_parts_is_no_offer_and_is_told_once() -> None:
    made = small_catalogue()
    add_parts(made, "spot", ("Nvidia L4 GPU", 200_000_000), ("G2 Core", 10_000_000))
    rows = rows_of(made)
    assert kinds(rows, "g2-standard-4") == {"on_demand"}
    assert rows.notes.count("g2-standard: no spot price where the price list has none of its memory") == 1


def test_a_commitment_needs_core_memory_and_gpu_of_that_term() -> None:
    made = small_catalogue()
    add_parts(made, "committed_1y", ("Nvidia L4 GPU", 300_000_000), ("G2 Core", 20_000_000), ("G2 Ram", 1_500_000))
    add_parts(made, "committed_3y", ("G2 Core", 15_000_000), ("G2 Ram", 1_000_000))
    rows = rows_of(made)
    assert kinds(rows, "g2-standard-4") == {"on_demand", "committed_1y"}
    assert price(rows, "g2-standard-4", "committed_1y") == 4 * 20_000 + 16 * 1_500 + 300_000


def test_bundled_local_ssd_is_priced_on_top_per_month_of_730_hours() -> None:
    made = with_machine("a3-highgpu-8g", 208, 1872, "nvidia-h100-80gb", 8, ssd_partitions=16)
    add_parts(
        made, "on_demand", ("Nvidia H100 80GB GPU", 9_796_600_000), ("A3 Core", 29_000_000), ("A3 Ram", 2_500_000)
    )
    assert price(rows_of(made), "a3-highgpu-8g") is None, "without a price of its SSD"
    made.skus[COMPUTE_ENGINE].append(ssd_sku("on_demand", 80_000_000, [REGION]))
    without_ssd = 8 * 9_796_600 + 208 * 29_000 + 1872 * 2_500
    assert price(rows_of(made), "a3-highgpu-8g") == without_ssd + round(16 * 375 * 80_000 / 730)


def test_local_ssd_of_spot_commitments_and_flex_start_has_skus_of_its_own() -> None:
    made = with_machine("a2-ultragpu-1g", 12, 170, "nvidia-a100-80gb", 1, ssd_partitions=1)
    for kind, ssd in (("on_demand", 80), ("spot", 32), ("committed_1y", 50), ("flex_start", 40)):
        parts = (("Nvidia Tesla A100 80GB GPU", 3_000_000_000), ("A2 Core", 30_000_000), ("A2 Ram", 4_000_000))
        add_parts(made, kind, *parts)
        made.skus[COMPUTE_ENGINE].append(ssd_sku(kind, ssd * 1_000_000, [REGION]))
    rows = rows_of(made)
    host = 3_000_000 + 12 * 30_000 + 170 * 4_000
    assert {
        kind: price(rows, "a2-ultragpu-1g", kind) for kind in ("on_demand", "spot", "committed_1y", "flex_start")
    } == {
        "on_demand": host + round(375 * 80_000 / 730),
        "spot": host + round(375 * 32_000 / 730),
        "committed_1y": host + round(375 * 50_000 / 730),
        "flex_start": host + round(375 * 40_000 / 730),
    }


def test_a_variant_without_local_ssd_costs_none_and_keeps_the_links_of_its_sibling() -> None:
    made = with_machine("a3-ultragpu-8g-nolssd", 224, 2952, "nvidia-h200-141gb", 8)
    add_parts(
        made, "on_demand", ("H200 141GB GPU", 9_311_700_000), ("A3Ultra Core", 30_000_000), ("A3Ultra Ram", 3_000_000)
    )
    rows = rows_of(made)
    machine = next(
        instance_type for instance_type in rows.instance_types if instance_type.name == "a3-ultragpu-8g-nolssd"
    )
    assert price(rows, machine.name) == 8 * 9_311_700 + 224 * 30_000 + 2952 * 3_000
    assert (machine.local_disk_gb, machine.network_gbps, machine.sold_on_demand) == (None, 3200.0, False)


@pytest.mark.parametrize(
    "spelt", ["Nvidia H100 80GB Mega GPU", "Nvidia H100 Mega 80GB GPU", "Nvidia H100 80GB Plus GPU"]
)
def test_h100_plus_and_mega_are_the_gpu_of_a3_mega_and_never_of_a3_high(spelt: str) -> None:
    made = with_machine("a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8)
    made.add_machine(ZONE, machine_item("a3-highgpu-1g", 26, 234, "nvidia-h100-80gb", 1))
    add_parts(made, "on_demand", (spelt, 10_000_000_000), ("A3Plus Core", 30_000_000), ("A3Plus Ram", 3_000_000))
    add_parts(made, "on_demand", ("A3 Core", 1_000_000), ("A3 Ram", 1_000_000))
    rows = rows_of(made)
    assert price(rows, "a3-megagpu-8g") == 8 * 10_000_000 + 208 * 30_000 + 1872 * 3_000
    assert price(rows, "a3-highgpu-1g") is None


def test_the_a4_gpu_slice_holds_the_whole_machine() -> None:
    made = with_machine("a4-highgpu-8g", 224, 3968, "nvidia-b200", 8, ssd_partitions=32)
    made.skus[COMPUTE_ENGINE] += [
        sku(f"{SLICE} running in Americas", 16_110_000_000, [REGION]),
        sku(f"Spot Preemptible {SLICE} running in Americas", 4_954_200_000, [REGION]),
        sku(f"DWS Calendar Mode {SLICE} running in Americas", 11_277_000_000, [REGION]),
        sku(f"DWS Defined Duration {SLICE} running in Americas", 8_055_000_000, [REGION]),
        sku(f"Commitment v1: {SLICE} in Americas for 1 Year", 11_115_900_000, [REGION], usage="Commit1Yr"),
        sku(f"Commitment v1: {SLICE} in Americas for 3 Years", 7_088_400_000, [REGION], usage="Commit3Yr"),
    ]
    rows = rows_of(made)
    assert {kind: price(rows, "a4-highgpu-8g", kind) for kind in kinds(rows, "a4-highgpu-8g")} == {
        "on_demand": 128_880_000,
        "spot": 39_633_600,
        "calendar": 90_216_000,
        "flex_start": 64_440_000,
        "committed_1y": 88_927_200,
        "committed_3y": 56_707_200,
    }
    assert not next(
        instance_type for instance_type in rows.instance_types if instance_type.name == "a4-highgpu-8g"
    ).sold_on_demand


def test_a4x_without_a_sku_is_listed_without_a_price() -> None:
    rows = rows_of(with_machine("a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4, ssd_partitions=32))
    assert kinds(rows, "a4x-highgpu-4g") == set()
    assert "a4x-highgpu-4g" in {instance_type.name for instance_type in rows.instance_types}
    assert any(note.startswith("without a public price: a4x-highgpu") for note in rows.notes)


def test_a_fraction_of_a_g4_card_costs_that_fraction() -> None:
    made = with_machine("g4-standard-6", 6, 22, "nvidia-rtx-pro-6000", 1)
    add_parts(made, "on_demand", ("RTX 6000 96GB", 3_200_000_000), ("G4 Core", 20_000_000), ("G4 Ram", 2_000_000))
    assert price(rows_of(made), "g4-standard-6") == 3_200_000 // 8 + 6 * 20_000 + 22 * 2_000


def test_a_share_of_a_g4_card_is_priced_by_its_own_sku_that_holds_the_host() -> None:
    made = with_machine("g4-standard-24", 24, 90, "nvidia-rtx-pro-6000", 1)
    add_parts(made, "on_demand", ("RTX 6000 96GB", 1_095_650_000), ("G4 Core", 48_910_000), ("G4 Ram", 5_870_000))
    add_parts(made, "committed_1y", ("RTX 6000 96GB", 700_000_000), ("G4 Core", 30_000_000), ("G4 Ram", 3_000_000))
    made.skus[COMPUTE_ENGINE].append(sku("1/8 vGPU no lssd running in Iowa", 646_880_000, [REGION]))
    rows = rows_of(made)
    assert price(rows, "g4-standard-24") == 4 * 646_880
    assert kinds(rows, "g4-standard-24") == {"on_demand"}


def test_n1_machines_are_made_where_a_zone_has_the_gpu() -> None:
    made = small_catalogue()
    made.attachable[ZONE] += ["nvidia-tesla-t4", "nvidia-tesla-t4-vws", "nvidia-tesla-p4-vws", "nvidia-tesla-k80"]
    gpus = [(f"Nvidia Tesla {name} GPU", 350_000_000) for name in ("T4", "P4", "V100", "K80")]
    add_parts(made, "on_demand", *gpus, ("N1 Core", 31_611_000), ("N1 Ram", 4_237_000))
    rows = rows_of(made)
    assert price(rows, "n1-standard-8+1xT4") == 350_000 + 8 * 31_611 + 30 * 4_237
    assert {o.instance_type.partition("x")[2] for o in rows.offers if "+" in o.instance_type} == {"T4"}


def test_virtual_workstation_variants_are_no_gpus() -> None:
    made = small_catalogue()
    made.attachable[ZONE] += ["nvidia-tesla-t4-vws"]
    add_parts(made, "on_demand", ("Nvidia Tesla T4 GPU", 350_000_000), ("N1 Core", 31_611_000), ("N1 Ram", 4_237_000))
    assert not [instance_type for instance_type in rows_of(made).instance_types if instance_type.accelerator == "T4"]


def test_n1_hosts_are_priced_from_the_group_n1standard_and_commitments_that_name_no_family() -> None:
    made = small_catalogue()
    made.attachable[ZONE] += ["nvidia-tesla-v100"]
    made.skus[COMPUTE_ENGINE] += [
        sku("N1 Predefined Instance Core running in Americas", 31_611_000, [REGION], group="N1Standard"),
        sku("N1 Instance Ram running in Americas", 4_237_000, [REGION], group="N1Standard", unit="GiBy.h"),
        sku("Nvidia Tesla V100 GPU running in Americas", 2_480_000_000, [REGION]),
        sku("Commitment v1: Cpu in Americas for 1 Year", 19_915_000, [REGION], usage="Commit1Yr", group="CPU"),
        sku(
            "Commitment v1: Ram in Americas for 1 Year",
            2_669_000,
            [REGION],
            usage="Commit1Yr",
            group="RAM",
            unit="GiBy.h",
        ),
        sku(
            "Commitment v1: Nvidia Tesla V100 GPU running in Americas for 1 Year",
            1_562_000_000,
            [REGION],
            usage="Commit1Yr",
        ),
    ]
    rows = rows_of(made)
    assert price(rows, "n1-standard-8+1xV100") == 2_480_000 + 8 * 31_611 + 30 * 4_237
    assert price(rows, "n1-standard-8+1xV100", "committed_1y") == 1_562_000 + 8 * 19_915 + 30 * 2_669


def test_a_family_that_no_table_knows_is_priced_by_the_usual_spelling() -> None:
    made = with_machine("g7-standard-96", 96, 384, "nvidia-l40s-48gb", 2)
    add_parts(
        made, "on_demand", ("Nvidia L40S 48GB GPU", 1_000_000_000), ("G7 Core", 20_000_000), ("G7 Ram", 2_000_000)
    )
    rows = rows_of(made)
    machine = next(instance_type for instance_type in rows.instance_types if instance_type.name == "g7-standard-96")
    assert price(rows, "g7-standard-96") == 2_000_000 + 96 * 20_000 + 384 * 2_000
    assert (machine.accelerator, machine.devices, machine.network_gbps) == ("L40S", 2, None)


def test_a_family_that_no_table_knows_may_be_sold_by_the_slice() -> None:
    made = with_machine("a9-highgpu-8g", 224, 3968, "nvidia-b300", 8)
    made.skus[COMPUTE_ENGINE].append(sku("A9 Nvidia B300 (1 gpu slice) running in Americas", 20_000_000_000, [REGION]))
    assert price(rows_of(made), "a9-highgpu-8g") == 160_000_000


def test_an_accelerator_that_nobody_described_is_set_aside_by_name() -> None:
    rows = rows_of(with_machine("a9-highgpu-8g", 224, 3968, "nvidia-z900-999gb", 8))
    assert [(item.what, "nvidia-z900-999gb" in item.reason) for item in rows.quarantined] == [("a9-highgpu-8g", True)]
    assert price(rows, "g2-standard-4") == 652_000


def test_impossible_sizes_are_set_aside_with_the_reason() -> None:
    rows = rows_of(with_machine("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 9000))
    assert [item.what for item in rows.quarantined] == ["a2-highgpu-1g"]
    assert "accelerator_count" in rows.quarantined[0].reason


@pytest.mark.parametrize(
    ("state", "listed", "retired"),
    [("DEPRECATED", True, True), ("OBSOLETE", False, False), ("DELETED", False, False), ("ACTIVE", True, False)],
)
def test_deprecated_machines_are_retired_and_obsolete_ones_are_gone(state: str, listed: bool, retired: bool) -> None:
    made = small_catalogue()
    made.machines[ZONE][0]["deprecated"] = {"state": state}
    result = {instance_type.name: instance_type.retired for instance_type in rows_of(made).instance_types}
    assert ("g2-standard-4" in result) == listed
    assert result.get("g2-standard-4", False) == retired


def test_sizes_are_those_of_the_listing_and_links_those_of_the_table() -> None:
    made = with_machine("a2-highgpu-1g", 14, 100, "nvidia-tesla-a100", 1)
    machine = next(
        instance_type for instance_type in rows_of(made).instance_types if instance_type.name == "a2-highgpu-1g"
    )
    assert (machine.vcpus, machine.ram_gib, machine.network_gbps) == (14.0, 100.0, 24.0)
    assert machine.source.startswith("GCP Compute Engine machineTypes")


def test_spot_offers_say_that_their_interruption_rate_is_modelled() -> None:
    made = small_catalogue()
    add_parts(made, "spot", ("Nvidia L4 GPU", 200_000_000), ("G2 Core", 10_000_000), ("G2 Ram", 1_000_000))
    spot = [offer for offer in rows_of(made).offers if offer.price_kind == "spot"]
    assert spot
    assert all(o.modelled == ("interruption_rate",) and o.interruptions_per_hour for o in spot)


def test_a_known_machine_may_come_without_its_accelerators() -> None:
    made = with_machine("a2-highgpu-2g", 24, 170, "", 0)
    parts = (("Nvidia Tesla A100 GPU", 3_000_000_000), ("A2 Core", 30_000_000), ("A2 Ram", 4_000_000))
    add_parts(made, "on_demand", *parts)
    rows = rows_of(made)
    assert (
        next(instance_type for instance_type in rows.instance_types if instance_type.name == "a2-highgpu-2g").devices
        == 2
    )
    assert price(rows, "a2-highgpu-2g") == 2 * 3_000_000 + 24 * 30_000 + 170 * 4_000


@pytest.mark.parametrize("name", ["Nvidia L4 GPU", "G2 Ram"])
def test_a_kind_whose_sku_cannot_be_used_is_set_aside_by_machine_so_that_its_earlier_price_stays(name: str) -> None:
    made = small_catalogue()
    add_parts(made, "spot", ("Nvidia L4 GPU", 200_000_000), ("G2 Core", 10_000_000), ("G2 Ram", 1_000_000))
    for entry in made.skus[COMPUTE_ENGINE]:
        if (
            name.rpartition(" ")[0].split()[-1] in entry["description"]
            and entry["category"]["usageType"] == "Preemptible"
        ):
            rates = entry["pricingInfo"][0]["pricingExpression"]["tieredRates"]
            rates[0]["unitPrice"] = {"currencyCode": "USD"}
    rows = rows_of(made)
    assert kinds(rows, "g2-standard-4") == {"on_demand"}
    aside = {item.what: item.reason for item in rows.quarantined}
    assert "zero means unknown" in aside["g2-standard-4 spot"]
