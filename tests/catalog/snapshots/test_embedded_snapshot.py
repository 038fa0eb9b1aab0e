"""The embedded catalogue: known prices, and every trap of the price facts."""

import csv
import lzma
from collections import Counter, defaultdict
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.regions import regions
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots import embedded_snapshot as embedded
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.catalog.snapshots.offer_columns import columns_of

DATA = Path(embedded.__file__).parents[1] / "data"


def offers(name: str, kind: str = "on_demand", region: str | None = None) -> list[Offer]:
    return [
        offer
        for offer in embedded_snapshot().offers
        if offer.instance_type == name and offer.price_kind == kind and region in {None, offer.region}
    ]


def usd(name: str, region: str, kind: str = "on_demand") -> list[float]:
    return [offer.usd_micros_per_hour / 1e6 for offer in offers(name, kind, region)]


def machine(name: str) -> InstanceType:
    return next(instance_type for instance_type in embedded_snapshot().instance_types if instance_type.name == name)


def quarantine() -> list[dict[str, str]]:
    with (DATA / "quarantine.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "region", "kind", "expected"),
    [
        ("p5.48xlarge", "us-east-1", "on_demand", 55.04),
        ("p4d.24xlarge", "us-east-1", "on_demand", 21.957642),
        ("g5.xlarge", "us-east-1", "on_demand", 1.006),
        ("g4dn.xlarge", "us-east-1", "on_demand", 0.526),
        ("a3-highgpu-8g", "us-central1", "on_demand", 88.490002),
        ("g2-standard-4", "us-central1", "on_demand", 0.706832),
        ("Standard_ND96isr_H100_v5", "eastus", "on_demand", 98.32),
        ("tpu-v4-8", "us-central2", "on_demand", 12.88),
    ],
)
def test_a_well_known_price_is_what_people_pay(name: str, region: str, kind: str, expected: float) -> None:
    assert usd(name, region, kind) == pytest.approx([expected], abs=1e-4)


def test_no_offer_is_there_twice_and_each_names_a_known_machine_kind_and_place() -> None:
    snapshot = embedded_snapshot()
    assert max(Counter(offer.key for offer in snapshot.offers).values()) == 1
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    assert len(columns) == len(snapshot.offers) == 10987
    assert {(offer.provider, offer.region) for offer in snapshot.offers} <= set(regions())


def test_rows_and_offers_stand_sorted_so_that_no_order_is_lost() -> None:
    snapshot = embedded_snapshot()
    assert [offer.key for offer in snapshot.offers] == sorted(offer.key for offer in snapshot.offers)
    assert snapshot.observed_at == max(offer.observed_at for offer in snapshot.offers)


def test_every_offer_has_a_source_and_a_day() -> None:
    for offer in embedded_snapshot().offers:
        assert offer.source
        assert datetime(2023, 1, 1, tzinfo=UTC) <= offer.observed_at <= datetime(2026, 12, 31, tzinfo=UTC)


def test_every_machine_has_an_accelerator_of_the_table() -> None:
    assert {instance_type.accelerator for instance_type in embedded_snapshot().instance_types} <= set(accelerators())


def test_the_price_cut_of_june_2025_stands_and_no_older_reservation_of_those_families() -> None:
    assert max(usd("p5.48xlarge", "us-east-1")) < 60
    assert not [offer for kind in ("reserved_1y", "reserved_3y") for offer in offers("p5.48xlarge", kind)]


def test_p5e_is_not_sold_on_demand() -> None:
    assert not offers("p5e.48xlarge")


def test_reserved_and_committed_prices_carry_the_names_of_the_price_kinds() -> None:
    kinds = Counter(offer.price_kind for offer in embedded_snapshot().offers)
    assert set(kinds) <= set(price_kinds())
    assert kinds["reserved_1y"] == kinds["reserved_3y_convertible"] == 767
    assert (kinds["committed_1y"], kinds["committed_3y"]) == (405, 412)


def test_a_spot_price_equal_to_on_demand_is_kept_as_real() -> None:
    name, region = "Standard_ND96isr_H100_v5", "eastus"
    assert usd(name, region, "spot") == usd(name, region)
    assert offers(name, "spot", region)[0].modelled == ("interruption_rate",)


def test_a_spot_price_at_a_tenth_of_on_demand_is_quarantined() -> None:
    stored = [row for row in quarantine() if row["reason"].startswith("a saving of 90 %")]
    assert len(stored) == 11
    assert {row["fate"] for row in stored} == {"quarantined"}
    assert not [offer for row in stored for offer in offers(row["instance_type"], "spot", row["region"])]


def test_no_spot_price_is_at_or_below_a_tenth_of_on_demand_where_both_are_listed() -> None:
    on_demand = {
        (o.provider, o.region, o.instance_type): o for o in embedded_snapshot().offers if o.price_kind == "on_demand"
    }
    for spot in embedded_snapshot().offers:
        base = on_demand.get((spot.provider, spot.region, spot.instance_type))
        if base and spot.provider == "aws" and price_kinds()[spot.price_kind].interruptible:
            assert spot.usd_micros_per_hour > 0.1001 * base.usd_micros_per_hour, spot.key


def test_the_doubtful_tpu_v6e_spot_price_is_quarantined_for_every_slice() -> None:
    assert not [offer for n in (1, 4, 8, 16) for offer in offers(f"tpu-v6e-{n}", "spot", "asia-southeast1")]
    assert offers("tpu-v6e-8", "on_demand", "asia-southeast1")
    assert [row["usd_per_hour"] for row in quarantine() if row["instance_type"] == "tpu-v6e-1"] == ["0.2673"]


def test_fpgas_and_video_cards_are_left_out_by_name() -> None:
    names = {row["instance_type"] for row in quarantine() if row["fate"] == "left out"}
    assert {"f1.2xlarge", "f2.48xlarge", "vt1.24xlarge", "Standard_NP10s"} <= names
    assert not names & {offer.instance_type for offer in embedded_snapshot().offers}


def test_unverified_availability_is_marked_on_the_offer() -> None:
    unverified = [offer for offer in embedded_snapshot().offers if not offer.available]
    of_clouds = [offer for offer in unverified if offer.provider in {"aws", "gcp", "azure"}]
    assert len(of_clouds) == 553
    assert {offer.instance_type.rsplit("-", 1)[0] for offer in of_clouds} == {"g4-standard"}
    assert {offer.provider for offer in unverified} == {"gcp", "nebius", "digitalocean", "hyperstack"}


def test_a_local_zone_is_a_place_of_its_own_with_its_parent_named() -> None:
    prices = {offer.region: offer for offer in offers("g4dn.2xlarge")}
    assert prices["us-west-2-lax-1"].zone == "us-west-2-lax-1"
    assert prices["us-west-2-lax-1"].usd_micros_per_hour > prices["us-west-2"].usd_micros_per_hour
    assert regions()["aws", "us-west-2-lax-1"].parent_region == "us-west-2"


def test_aws_spot_prices_stand_per_zone_id_and_other_prices_per_region() -> None:
    for offer in offers("p5.48xlarge", "spot"):
        assert "-az" in offer.zone
    assert {offer.zone for offer in offers("p5.48xlarge")} == {""}


def test_a_gpu_share_is_a_fraction_of_a_card_in_its_machine() -> None:
    assert machine("g6f.large").accelerator_count == Fraction(1, 8)
    assert usd("g6f.large", "us-east-1")


def test_a_price_dated_by_a_range_is_the_earliest_day_and_approximate() -> None:
    listed = offers("n1-standard-8+1xT4", region="us-central1")[0]
    assert listed.observed_at == datetime(2026, 7, 9, tzinfo=UTC)
    assert listed.observed_approximately


def test_every_modelled_spot_price_is_below_on_demand_and_says_what_it_rests_on() -> None:
    on_demand = {
        (o.region, o.instance_type): o for o in embedded_snapshot().offers if o.price_kind == "on_demand" and not o.zone
    }
    modelled = [offer for offer in embedded_snapshot().offers if "spot_price" in offer.modelled]
    assert len(modelled) == 271
    for offer in modelled:
        assert offer.usd_micros_per_hour < on_demand[offer.region, offer.instance_type].usd_micros_per_hour
        assert "saving over on-demand" in offer.source


def test_every_interruptible_offer_has_a_rate_and_no_other_has_one() -> None:
    for offer in embedded_snapshot().offers:
        assert (offer.interruptions_per_hour is not None) == price_kinds()[offer.price_kind].interruptible
    gcp = {o.modelled for o in embedded_snapshot().offers if o.provider == "gcp" and o.price_kind == "spot"}
    assert gcp == {("interruption_rate",)}


def test_a_listed_total_wins_over_the_sum_of_its_parts() -> None:
    assert "sum of parts" not in offers("n1-standard-8+1xT4", region="us-central1")[0].source
    assert "sum of parts" in offers("n1-standard-16+1xT4", region="us-central1")[0].source


def test_the_sum_of_n1_parts_agrees_with_the_listed_total() -> None:
    four, eight, sixteen = (usd(f"n1-standard-{v}+1xT4", "us-central1")[0] for v in (4, 8, 16))
    assert eight - four == pytest.approx((sixteen - four) / 3, rel=0.002)


def test_an_n1_host_costs_what_the_newest_listed_total_leaves_after_its_gpus() -> None:
    """Spot in Iowa: n1-standard-8 with a T4 is listed at 0.32552, of which the T4 is 0.1915; a V100 is 1.2338."""
    host_vcpu = (0.32552 - 0.1915) / 8
    assert usd("n1-standard-96+8xV100", "us-central1", "spot") == [pytest.approx(8 * 1.2338 + 96 * host_vcpu)]
    assert usd("n1-standard-64+4xT4", "us-central1", "spot") == [pytest.approx(4 * 0.1915 + 64 * host_vcpu)]


def test_n1_machines_are_sold_where_only_a_total_tells_the_price_of_the_host() -> None:
    for region in ("us-west1", "us-east1"):
        assert usd("n1-standard-96+8xV100", region) == [pytest.approx(8 * 2.48 + 12 * (0.729998 - 0.35))]


def test_n1_machines_never_have_more_vcpus_than_their_gpus_allow() -> None:
    most = {("V100", 1): 12, ("V100", 8): 96, ("P4", 1): 24, ("P100", 4): 64, ("T4", 4): 96}
    for instance_type in embedded_snapshot().instance_types:
        if instance_type.name.startswith("n1-standard-"):
            count, gpu = instance_type.name.split("+")[1].split("x")
            assert instance_type.vcpus is not None
            assert instance_type.vcpus <= most.get((gpu, int(count)), 96)
            assert instance_type.accelerator_count == int(count)
            assert instance_type.ram_gib == instance_type.vcpus * 3.75


def test_families_priced_in_part_say_what_is_missing_and_are_not_plannable() -> None:
    partial = {o.instance_type: o.partial for o in embedded_snapshot().offers if o.partial and "term" not in o.partial}
    assert partial == {
        "a4-highgpu-8g": ("vcpu", "ram", "local_disk"),
        "a3-ultragpu-8g": ("vcpu", "ram", "local_disk"),
    }
    snapshot = embedded_snapshot()
    columns = columns_of(snapshot.id, snapshot.observed_at, snapshot.instance_types, snapshot.offers)
    assert (~columns.plannable).sum() == 26 + 12


def test_a3_edge_is_the_sum_of_host_gpus_and_disks_as_a3_high_is() -> None:
    edge_usd, high = usd("a3-edgegpu-8g", "us-central1"), usd("a3-highgpu-8g", "us-central1")
    assert edge_usd == pytest.approx(high, rel=1e-4)
    assert not offers("a3-edgegpu-8g", "spot")


def test_what_no_source_prices_is_absent() -> None:
    names = {offer.instance_type for offer in embedded_snapshot().offers if offer.provider in {"aws", "gcp", "azure"}}
    assert not [name for name in names if "a4x" in name or "GB300" in name or "tpu7" in name]


def test_a_tpu_slice_costs_its_chips_whatever_the_listed_slice() -> None:
    chip = 25804.8 / 6144
    for name, chips in (("tpu-v5p-8", 4), ("tpu-v5p-128", 64), ("tpu-v5p-512", 256)):
        item = machine(name)
        whole = usd(name, "us-east5")[0] * (item.fixed_nodes or 0)
        assert whole == pytest.approx(chips * chip, rel=1e-6)


def test_a_tpu_slice_is_rented_whole_and_its_chips_share_one_link() -> None:
    slices = [
        instance_type for instance_type in embedded_snapshot().instance_types if instance_type.name.startswith("tpu-")
    ]
    assert len(slices) == 40
    for tpu_slice in slices:
        assert tpu_slice.fixed_nodes is not None
        chips = tpu_slice.accelerator_count * tpu_slice.fixed_nodes
        assert tpu_slice.scaleup_domain == chips <= 256
        assert tpu_slice.clusters == (tpu_slice.fixed_nodes > 1)
        suffix = int(tpu_slice.name.rsplit("-", 1)[1])
        assert suffix in {chips, 2 * chips}
        assert tpu_slice.intranode_link == "ici"


def test_tpu_pods_of_v2_and_v3_have_the_price_per_chip_of_pods() -> None:
    assert usd("tpu-v2-8", "us-central1") == [4.5, 4.5, 4.5]
    assert usd("tpu-v2-128", "us-central1") == [6.0]
    assert {offer.zone for offer in offers("tpu-v3-64")} == set()
    assert {offer.zone for offer in offers("tpu-v3-128")} == {"europe-west4-a", "us-east1-d"}


def test_the_order_of_slices_by_size_is_the_order_of_their_cost() -> None:
    by_family: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for name in ("tpu-v5litepod", "tpu-v6e"):
        for size in (1, 4, 8, 16, 32, 64, 128, 256):
            nodes = machine(f"{name}-{size}").fixed_nodes or 0
            by_family[name].append((size, usd(f"{name}-{size}", "us-south1")[0] * nodes))
    for costs in by_family.values():
        assert len({round(cost / size, 5) for size, cost in costs}) == 1


def test_a_damaged_file_is_a_store_failure_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: bytes) -> bytes:
        raise lzma.LZMAError("Compressed data ended before the end-of-stream marker was reached")

    monkeypatch.setattr(lzma, "decompress", damaged)
    with pytest.raises(StoreFailure, match="reinstall"):
        embedded.embedded_snapshot.__wrapped__()


def test_a_file_with_missing_rows_is_a_store_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lzma.decompress((DATA / "offers.csv.xz").read_bytes())
    monkeypatch.setattr(lzma, "decompress", lambda _: whole[: whole.rindex(b"\n", 0, -1) + 1])
    with pytest.raises(StoreFailure, match="missing"):
        embedded.embedded_snapshot.__wrapped__()
