"""The table of accelerators is complete, sourced and plausible, and is found under the spellings people use."""

import csv
from dataclasses import fields
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.accelerators import Accelerator, accelerators, find_accelerator, possible_accelerators
from gpuplan.catalog.runtime.errors import UnusableInput
from tools.catalogue_build.fact_tables import fact_table
from tools.fitting.import_runs import MEMORY, RUNS
from tools.fitting.measured_runs import rows

ROWS = list(accelerators().values())
RATES = ("fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops", "fp4_tflops")
BOARDS_SPLIT_TO_DEVICES = {"K80": 2, "M60": 2, "A16": 4, "MI250": 2, "MI250X": 2}
#: Cells of the given table that its own notes call doubtful, and that a data sheet settled otherwise.
SETTLED_MEMORY_RATES = {"P40": 346, "TPU-v4": 1228}


def rows_of(name: str) -> list[dict[str, str]]:
    with (files("gpuplan.catalog") / "data" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_columns_stand_in_the_order_of_the_fields() -> None:
    assert list(rows_of("accelerators.csv")[0]) == [field.name for field in fields(Accelerator)]


def test_no_name_stands_twice() -> None:
    names = [row["name"] for row in rows_of("accelerators.csv")]
    assert len(names) == len(set(names))


def test_every_row_names_its_source_and_date() -> None:
    for row in ROWS:
        assert "https://" in row.source, row.name
        assert "memory" in row.source or "GiB" in row.source, row.name
        assert row.as_of.startswith("20"), row.name


def test_every_row_is_within_what_chips_can_be() -> None:
    for row in ROWS:
        assert 2005 < row.year < 2030, row.name
        assert 40 < row.memory_gbs < 10_000, row.name
        assert row.tdp_watts is None or 20 < row.tdp_watts < 2_000, row.name
        assert 1 <= row.usual_per_node <= 16, row.name
        assert 10 <= row.usual_internode_gbps <= 6_400, row.name


def test_reported_memory_is_near_the_marketed_one() -> None:
    shares = {row.name: row.device_memory_mib / 1024 / row.memory_gb for row in ROWS}
    assert {name: share for name, share in shares.items() if not 0.85 < share < 1.04} == {}


def test_no_rate_is_zero_and_narrower_formats_are_never_slower() -> None:
    for row in ROWS:
        rates = [getattr(row, name) for name in RATES]
        assert all(rate is None or 0 < rate < 20_000 for rate in rates), row.name
        ladder = [rate for rate in (row.bf16_tflops, row.fp8_tflops, row.fp4_tflops) if rate is not None]
        assert ladder == sorted(ladder), row.name


def test_what_does_not_train_well_says_why() -> None:
    assert [row.name for row in ROWS if (row.trains == "yes") != (row.trains_reason == "")] == []


def test_a_link_joins_at_least_two_devices_unless_it_leads_nowhere() -> None:
    for row in ROWS:
        if row.link == "pcie":
            assert (row.link_gbs, row.link_domain) == (None, 1), row.name
        elif row.link_gbs is not None and row.form_factor != "superchip":
            assert row.link_domain >= 2, row.name


def test_chips_without_tensor_cores_have_no_tensor_rate_and_no_bf16() -> None:
    old = [row for row in ROWS if row.architecture in {"Kepler", "Maxwell", "Pascal", "RDNA1", "RDNA2"}]
    assert len(old) >= 12
    assert not any(row.fp16_is_tensor or row.bf16_tflops or row.fp8_tflops for row in old)


def test_volta_and_turing_have_tensor_fp16_but_no_bf16() -> None:
    chips = [row for row in ROWS if row.architecture in {"Volta", "Turing"}]
    assert len(chips) >= 12
    assert all(row.fp16_is_tensor and row.bf16_tflops is None for row in chips)


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("A100-40GB-SXM", 40960),
        ("A100-80GB-SXM", 81920),
        ("H100-80GB-SXM", 81920),
        ("L4", 22888),
        ("A10G", 22888),
        ("B300-SXM", 275040),
        ("TPU-v5e", 16128),
        ("Trainium2", 98304),
    ],
)
def test_capacity_is_what_the_device_reports(name: str, mib: int) -> None:
    assert accelerators()[name].device_memory_mib == mib


@pytest.mark.parametrize(
    ("name", "bf16"),
    [
        ("A10G", 70),
        ("RTX-5090", 209.5),
        ("RTX-PRO-6000-Blackwell", 503.8),
        ("RTX-PRO-6000-Blackwell-Server", 467.8),
        ("B300-SXM", 2250),
        ("GB300", 2500),
        ("MI355X", 2516.6),
        ("Trainium3", 671),
        ("RTX-3090", 71),
        ("RTX-4090", 165.2),
    ],
)
def test_rates_often_misquoted_are_the_dense_ones_with_fp32_accumulate(name: str, bf16: float) -> None:
    assert accelerators()[name].bf16_tflops == bf16


@pytest.mark.parametrize(
    ("name", "gbs"), [("Radeon-VII", 15.75), ("MI25", 15.75), ("MI50", 31.5), ("RX-6800-XT", 31.5)]
)
def test_the_host_link_is_that_of_the_card_and_not_of_its_chip(name: str, gbs: float) -> None:
    """The Radeon VII has PCIe 3.0 where the other cards with its chip have 4.0."""
    assert accelerators()[name].pcie_gbs == gbs


@pytest.mark.parametrize("name", ["Inferentia1", "Inferentia2", "AI100", "K520"])
def test_inference_and_video_chips_do_not_train(name: str) -> None:
    assert accelerators()[name].trains == "no"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H100", "H100-80GB-SXM"),
        ("A100 80GB", "A100-80GB-SXM"),
        ("nvidia-l4", "L4"),
        ("RTX 3090", "RTX-3090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("A100-SXM4-80GB", "A100-80GB-SXM"),
        ("h100-mega", "H100-80GB-SXM"),
        ("nvidia-h100-mega-80gb", "H100-80GB-SXM"),
        ("NVIDIA A10G", "A10G"),
        ("tpu-v5e", "TPU-v5e"),
        ("v5litepod", "TPU-v5e"),
        ("MI300X", "MI300X"),
        ("AMD Instinct MI300X", "MI300X"),
        ("GH200", "GH200-96GB"),
        ("trainium", "Trainium1"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100-16GB"),
        ("AMD Radeon VII", "Radeon-VII"),
        ("Radeon RX 6800 XT", "RX-6800-XT"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Blackwell-Server"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("Titan V", "Titan-V"),
    ],
)
def test_usual_spellings_are_understood(spelling: str, name: str) -> None:
    assert find_accelerator(spelling).name == name


@given(st.sampled_from(ROWS), st.sampled_from([str.lower, str.upper, lambda name: name.replace("-", " ")]))
def test_case_and_hyphens_do_not_matter(row: Accelerator, spell: object) -> None:
    assert callable(spell)
    assert find_accelerator(spell(row.name)) is row


def test_every_alias_leads_to_its_row_and_none_stands_for_two() -> None:
    for row in rows_of("accelerator_aliases.csv"):
        assert find_accelerator(row["alias"]).name == row["name"], row


def test_every_meaning_of_an_ambiguous_name_is_an_accelerator_and_no_name_or_alias_is_ambiguous() -> None:
    for row in rows_of("ambiguous_accelerators.csv"):
        meanings = {meaning.name for meaning in possible_accelerators(row["name"])}
        assert row["accelerator"] in meanings, row
        assert len(meanings) > 1, row


def test_new_cards_follow_the_rates_of_their_chip() -> None:
    """fp32 is 2 FLOP x cores x clock; tensor fp16 of GeForce cards, with fp32 accumulation, is 4 x (Turing) or 2 x that."""
    cores_and_ghz = {
        "RTX-2060": (1920, 1.68, 4),
        "RTX-3050": (2560, 1.777, 2),
        "RTX-3060Ti": (4864, 1.665, 2),
        "RTX-4060": (3072, 2.46, 2),
        "RTX-4060Ti-8GB": (4352, 2.535, 2),
        "RTX-5060": (3840, 2.497, 2),
        "RTX-5060Ti-8GB": (4608, 2.572, 2),
        "RTX-5060Ti-16GB": (4608, 2.572, 2),
    }
    for name, (cores, ghz, factor) in cores_and_ghz.items():
        row, fp32 = accelerators()[name], 2 * cores * ghz / 1000
        assert row.fp32_tflops == pytest.approx(fp32, rel=2e-3), name
        assert row.fp16_tflops == pytest.approx(factor * fp32, rel=4e-3), name


def test_an_unknown_accelerator_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnusableInput, match=r"on\.accelerator: unknown accelerator 'H1000'; nearest: .*H100"):
        find_accelerator("H1000", path=("on", "accelerator"))


def test_memory_is_that_of_a_second_source_with_boards_split_to_devices() -> None:
    given_rows = fact_table("accelerator_memory")
    assert given_rows
    for row in given_rows:
        ours = accelerators()[row["name"]]
        devices = BOARDS_SPLIT_TO_DEVICES.get(ours.name, 1)
        assert ours.memory_gb == float(row["memory_gb"]) / devices, ours.name
        expected = SETTLED_MEMORY_RATES.get(ours.name, float(row["memory_gbs"]) / devices)
        assert ours.memory_gbs == pytest.approx(expected, rel=1e-3), ours.name


def test_every_accelerator_of_the_measured_runs_is_understood() -> None:
    #: Chips that nobody sells or rents here, so that no price or machine names them.
    foreign = {"Ascend910", "Graphcore IPU GC200", ""}
    for name in (RUNS, MEMORY):
        spellings = {row["gpu"] for row in rows(name)} - foreign
        assert spellings
        assert all(find_accelerator(spelling) for spelling in spellings)


def test_fp8_is_no_faster_than_bf16_on_tpus_before_the_seventh_generation() -> None:
    rates = {row.name: row.fp8_tflops / row.bf16_tflops for row in ROWS if row.fp8_tflops and row.bf16_tflops}
    assert {name: rate for name, rate in rates.items() if name.startswith("TPU")} == {"TPU-v6e": 1.0, "TPU-v7": 2.0}
