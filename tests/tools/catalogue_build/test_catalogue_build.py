"""The build on small made-up facts: what it refuses, and how it says so."""

import lzma
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from tools.catalogue_build.__main__ import main
from tools.catalogue_build.catalogue_assembly import Catalogue, catalogue_of
from tools.catalogue_build.catalogue_files import csv_bytes, write_catalogue

HEADINGS = {
    "listed_prices": "provider region zone instance_type listed_accelerator accelerator_count listed_price_kind "
    "usd_per_hour note as_of source",
    "gcp_unit_prices": "region component price_kind usd_per_unit unit as_of source",
    "aws_spot_savings": "region instance_type interruption_band saving_percent as_of source",
    "storage_prices": "provider region storage_kind sku price_kind usd_per_unit unit as_of source",
    "egress_prices": "provider region destination volume_tier usd_per_gb as_of source",
    "neocloud_prices": "provider region zone listed_instance_type accelerator accelerator_count vcpus ram_gib local_disk_gb "
    "network_gbps intranode_link listed_price_kind usd_per_hour currency amount billing_step_seconds note as_of source",
    "carbon_and_pue": "provider region metric value as_of source",
}
P5 = InstanceType(provider="aws", name="p5.48xlarge", accelerator="H100-80GB-SXM", accelerator_count=Fraction(8))
G5 = InstanceType(provider="aws", name="g5.xlarge", accelerator="A10G", accelerator_count=Fraction(1))
KNOWN = {"H100-80GB-SXM", "A10G", "T4", "P4", "P100-16GB-PCIe", "V100-16GB"}


def price(
    name: str = "p5.48xlarge",
    usd: str = "55.04",
    kind: str = "on_demand",
    count: str = "8",
    zone: str = "",
    region: str = "us-east-1",
    note: str = "",
    as_of: str = "2026-07-20",
) -> list[str]:
    return ["aws", region, zone, name, "H100", count, kind, usd, note, as_of, "a price list"]


def facts(tmp_path: Path, prices: Sequence[Sequence[str]], savings: Sequence[Sequence[str]] = ()) -> Path:
    dated = [[*saving, "2025-06", "an advisor"] for saving in savings]
    tables: dict[str, Sequence[Sequence[str]]] = {"listed_prices": prices, "aws_spot_savings": dated}
    for name, heading in HEADINGS.items():
        table = csv_bytes(heading.split(), tables.get(name, ()))
        (tmp_path / f"{name}.csv.xz").write_bytes(lzma.compress(table))
    return tmp_path


def built(
    tmp_path: Path,
    prices: Sequence[Sequence[str]],
    *,
    savings: Sequence[Sequence[str]] = (),
    left_out: dict[str, str] | None = None,
    accelerators: set[str] = KNOWN,
) -> Catalogue:
    folder = facts(tmp_path, prices, savings)
    return catalogue_of(folder, hardware=[P5, G5], left_out=left_out or {}, accelerators=accelerators)


def test_sound_facts_make_a_catalogue_without_problems(tmp_path: Path) -> None:
    made = built(tmp_path, [price(), price(kind="reserved_3y_standard_no_upfront", usd="24.7")])
    assert made.problems == []
    assert {(offer.price_kind, offer.usd_micros_per_hour) for offer in made.offers} == {
        ("on_demand", 55_040_000),
        ("reserved_3y", 24_700_000),
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([price(), price(usd="54")], "p5.48xlarge/on_demand: there 2 times"),
        ([price(usd="0")], "line 2: offer aws/us-east-1//p5.48xlarge/on_demand: a price of zero means unknown"),
        ([price(usd="-3")], "not a plausible price"),
        ([price(usd="free")], "line 2"),
        ([price(usd="nan")], "line 2"),
        ([price(usd="6000")], "not a plausible price"),
        (
            [price(), price(region="us-east-2", usd="0.55"), price(region="us-west-2")],
            "USD per accelerator-hour is outside",
        ),
        (
            [price(), price(region="us-east-2", usd="4900"), price(region="us-west-2")],
            "USD per accelerator-hour is outside",
        ),
        ([price(name="p9.48xlarge")], "aws/p9.48xlarge: no hardware is known (1 offers)"),
        ([price(count="4")], "the price table counts 4 accelerators, the hardware table 8"),
        ([price(region="mars-north-1")], "region aws/mars-north-1: not in places.csv"),
        ([price(kind="haggled")], "line 2: price kind 'haggled' is not in price_kinds.csv"),
        ([price(note="seen in a dream")], "line 2: note 'seen in a dream' is not in price_notes.csv"),
        ([price(as_of="yesterday")], "line 2"),
    ],
)
def test_facts_that_cannot_be_true_are_a_problem_by_name(tmp_path: Path, rows: list[list[str]], message: str) -> None:
    problems = built(tmp_path, rows).problems
    assert len(problems) == 1
    assert message in problems[0]


def test_the_command_refuses_unfit_facts_with_a_line_each_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = facts(tmp_path, [price(), price(usd="0", region="us-east-2"), price(region="nowhere-1")])
    assert main(["--facts", str(folder), "--out", str(tmp_path / "out")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1] == "refused: 2 problems"
    assert not (tmp_path / "out").exists()


def test_an_instance_type_with_an_unknown_accelerator_is_a_problem(tmp_path: Path) -> None:
    problems = built(tmp_path, [price()], accelerators=KNOWN - {"A10G"}).problems
    assert problems == ["instance type g5.xlarge: accelerator 'A10G' is not in accelerators.csv"]


def test_hardware_that_does_not_train_is_left_out_by_name(tmp_path: Path) -> None:
    made = built(tmp_path, [price(), price(name="f2.6xlarge")], left_out={"f2.6xlarge": "an FPGA"})
    assert [offer.instance_type for offer in made.offers] == ["p5.48xlarge"]
    assert [(row.instance_type, row.fate, row.reason) for row in made.set_aside] == [
        ("f2.6xlarge", "left out", "an FPGA")
    ]


def test_a_spot_price_is_modelled_from_on_demand_and_the_published_saving(tmp_path: Path) -> None:
    made = built(
        tmp_path, [price(name="g5.xlarge", count="1", usd="1.006")], savings=[["us-east-1", "g5.xlarge", "<5%", "60"]]
    )
    spot = next(offer for offer in made.offers if offer.price_kind == "spot")
    assert spot.usd_micros_per_hour == 402_400
    assert spot.modelled == ("spot_price",)
    assert spot.interruptions_per_hour == pytest.approx(1 / 103, rel=0.01)


def test_a_type_with_listed_spot_prices_gets_none_modelled(tmp_path: Path) -> None:
    listed = price(kind="spot", usd="19.2", zone="use1-az2")
    made = built(tmp_path, [price(), listed], savings=[["us-east-1", "p5.48xlarge", "<5%", "60"]])
    spot = [offer for offer in made.offers if offer.price_kind == "spot"]
    assert [(offer.zone, offer.modelled) for offer in spot] == [("use1-az2", ())]


@pytest.mark.parametrize("saving", ["0", "-62", "90"])
def test_a_saving_that_is_none_or_the_floor_models_no_price(tmp_path: Path, saving: str) -> None:
    on_demand = price(name="g5.xlarge", count="1", usd="1.006")
    made = built(tmp_path, [on_demand], savings=[["us-east-1", "g5.xlarge", "<5%", saving]])
    assert [offer.price_kind for offer in made.offers] == ["on_demand"]
    assert [row.fate for row in made.set_aside] == ["quarantined"]


def test_a_saving_is_never_applied_to_a_local_zone_or_another_region(tmp_path: Path) -> None:
    zone = price(name="g5.xlarge", count="1", usd="1.4", region="us-west-2-lax-1", zone="us-west-2-lax-1")
    made = built(tmp_path, [zone], savings=[["us-west-2", "g5.xlarge", "<5%", "60"]])
    assert [offer.price_kind for offer in made.offers] == ["on_demand"]
    assert [row.reason for row in made.set_aside] == ["no on-demand price in this region"]


def test_the_same_facts_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [price(), price(region="us-west-2"), price(name="g5.xlarge", count="1", usd="1.006")]
    written = []
    for name, order in (("one", rows), ("two", rows[::-1])):
        (tmp_path / name).mkdir()
        made = built(tmp_path / name, order)
        tables = {name: table for name, table in made.side_tables.items() if table}
        paths = write_catalogue(tmp_path / name, snapshot_of(made.instance_types, made.offers), tables, made.set_aside)
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
