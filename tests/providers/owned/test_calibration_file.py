"""The calibration file: what it takes, what it refuses, and whose machines it is of."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.providers.owned.calibration_file import calibrated, merged, rates_of, read_calibration, sealed, written
from gpuplan.providers.owned.owned_machines import read_inventory

ENTRY: dict[str, Any] = {
    "machine": "rig",
    "host": "0123456789abcdef",
    "accelerator": "RTX-3090",
    "count": 2,
    "gpu_uuids": ["GPU-0", "GPU-1"],
    "driver": "570.86.15",
    "torch": "2.9.1+cu128",
    "measured_at": "2026-11-20T18:00:00+00:00",
    "matmul_tflops": {"bf16": {"1024": 31.0, "8192": 67.2}, "fp32": {"8192": 26.4}},
    "memory_gbs": 842.0,
    "host_gbs": 12.9,
    "peer_gbs": 46.5,
    "transformer": {
        "precision": "bf16",
        "software": "fused",
        "seconds": 0.32,
        "batch": 8,
        "layers": 4,
        "hidden_size": 2048,
        "ffn_size": 8192,
        "attention_heads": 16,
        "vocabulary_size": 32768,
        "sequence_length": 1024,
        "parameters": 268_468_224,
    },
    "convolution": {
        "precision": "bf16",
        "software": "fused",
        "seconds": 0.16,
        "batch": 128,
        "image_size": 224,
        "parameters": 25_557_032,
    },
    "notes": ["fp8 was not measured: no kernel"],
}


def entry(**changes: Any) -> dict[str, Any]:
    """An entry as `gpuplan calibrate` writes it; a change to ... leaves the field out."""
    return sealed({name: value for name, value in (ENTRY | changes).items() if value is not ...})


def text(*entries: dict[str, Any], **top: Any) -> str:
    return json.dumps({"format": 1, "machines": list(entries)} | top)


def faults(document: str) -> dict[str, str]:
    with pytest.raises(UnusableInput) as refused:
        read_calibration(document, name="calibration.json")
    return {fault.field: fault.message for fault in refused.value.faults}


def machines(**changes: Any) -> tuple[OwnedMachine, ...]:
    rig = {"name": "rig", "accelerator": "RTX 3090", "count": 2, "usd_per_hour": 0, "power_watts": 900} | changes
    other = rig | {"name": "other", "accelerator": "RTX 4090", "host": "feedfeedfeedfeed"}
    return read_inventory({"electricity_usd_per_kwh": 0.3, "machines": [rig, other]})


def test_an_entry_is_read_as_rates() -> None:
    (read,) = read_calibration(text(entry()), name="calibration.json")
    rates = rates_of(read)
    assert (rates.best_tflops("bf16"), rates.best_tflops("fp32"), rates.best_tflops("fp8")) == (67.2, 26.4, None)
    assert (rates.memory_gbs, rates.host_gbs, rates.peer_gbs) == (842.0, 12.9, 46.5)
    assert rates.transformer is not None
    assert rates.convolution is not None
    assert (rates.transformer.hidden_size, rates.convolution.image_size) == (2048, 224)


def test_what_could_not_be_measured_may_be_missing() -> None:
    (read,) = read_calibration(
        text(entry(host_gbs=..., peer_gbs=..., transformer=..., convolution=...)), name="calibration.json"
    )
    assert (rates_of(read).peer_gbs, rates_of(read).transformer) == (None, None)


@pytest.mark.parametrize(
    "change", [{"memory_gbs": 843.0}, {"host": "another"}, {"matmul_tflops": {"bf16": {"8192": 70}}}]
)
def test_an_entry_that_was_changed_after_it_was_measured_is_refused(change: dict[str, Any]) -> None:
    assert "changed after it was measured" in faults(text(entry() | change))["machines[0].sha256"]


def test_an_unknown_accelerator_is_refused_with_the_nearest() -> None:
    assert "nearest: RTX-3090" in faults(text(entry(accelerator="RTX-3095")))["machines[0].accelerator"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"matmul_tflops": {"bf16": {"8192": 90.0}}}, "matmul_tflops.bf16.8192"),
        ({"matmul_tflops": {"bf16": {"8192": 1.0}}}, "matmul_tflops.bf16.8192"),
        ({"matmul_tflops": {"fp8": {"8192": 10.0}}}, "matmul_tflops.fp8.8192"),
        ({"memory_gbs": 1200.0}, "memory_gbs"),
        ({"memory_gbs": 3.0}, "memory_gbs"),
        ({"host_gbs": 60.0}, "host_gbs"),
        ({"peer_gbs": 100.0}, "peer_gbs"),
        ({"transformer": ENTRY["transformer"] | {"seconds": 0.001}}, "transformer.seconds"),
    ],
)
def test_rates_that_no_such_device_has_are_refused_even_when_sealed(change: dict[str, Any], field: str) -> None:
    assert list(faults(text(entry(**change)))) == [f"machines[0].{field}"]


@pytest.mark.parametrize("value", [-842.0, 0, "much", None, float("nan"), float("inf"), True])
def test_a_rate_that_is_no_positive_number_is_refused(value: Any) -> None:
    assert any(field.startswith("machines[0]") or not field for field in faults(text(entry(memory_gbs=value))))


@pytest.mark.parametrize(
    "document",
    ["", "[]", "not a calibration", '{"format": 2, "machines": []}', '{"machines": []}', '{"format": 1}', "\x00"],
)
def test_what_is_no_calibration_file_is_refused(document: str) -> None:
    assert faults(document)


def test_keys_that_nobody_knows_are_refused() -> None:
    assert "unknown key" in faults(text(entry(speed=3)))["machines[0].speed"]


def test_a_small_matmul_may_be_slow_but_the_best_may_not() -> None:
    slow_when_small = {"bf16": {"1024": 0.5, "8192": 67.0}}
    assert read_calibration(text(entry(matmul_tflops=slow_when_small)), name="calibration.json")


def test_a_machine_is_calibrated_by_its_name_where_the_inventory_names_no_host() -> None:
    rig, other = calibrated(machines(), read_calibration(text(entry()), name="calibration.json"))
    assert rig.measured is not None
    assert other.measured is None
    assert rig.assumptions[0].startswith("rig: measured on this machine on 2026-11-20: bf16 matmul 67.2 TFLOP/s (95%")
    assert "transformer step 320 ms" in rig.assumptions[0]
    assert rig.instance_type.intranode_gbs == pytest.approx(46.5 / 0.85)


def test_a_machine_is_calibrated_by_its_host_whatever_it_was_called() -> None:
    owned = machines(host=ENTRY["host"])
    rig, _ = calibrated(owned, read_calibration(text(entry(machine=...)), name="calibration.json"))
    assert rig.measured is not None


@pytest.mark.parametrize(
    ("changes", "of_entry"),
    [({"host": "another"}, {}), ({}, {"machine": "elsewhere"}), ({}, {"machine": ...}), ({"accelerator": "L4"}, {})],
)
def test_a_calibration_from_another_machine_is_refused(changes: dict[str, Any], of_entry: dict[str, Any]) -> None:
    entries = read_calibration(text(entry(**of_entry)), name="calibration.json")
    owned = machines(**changes)
    with pytest.raises(UnusableInput, match="measured on another machine: 0123456789abcdef with RTX-3090") as refused:
        calibrated(owned, entries)
    assert refused.value.faults[0].field == "calibration.machines[0].host"
    assert calibrated(owned, entries, others_allowed=True) == owned


def test_one_of_several_machines_stands_for_all_and_that_is_said() -> None:
    owned = machines(machines=3, network_gbps=10)
    rig, _ = calibrated(owned, read_calibration(text(entry()), name="calibration.json"))
    assert "one of the 3 machines represents all of them" in rig.assumptions[0]


def test_a_later_measurement_of_a_machine_replaces_the_earlier_and_keeps_the_others() -> None:
    remaining = [entry(), entry(host="feed", machine="other")]
    again = entry(memory_gbs=800.0)
    assert merged(remaining, [again]) == [remaining[1], again]


def test_a_file_is_written_whole_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "calibration.json"
    written(path, [entry()])
    assert len(read_calibration(path.read_bytes(), name=str(path))) == 1
    assert [item.name for item in path.parent.iterdir()] == ["calibration.json"]


def test_a_file_that_cannot_be_written_is_a_clear_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="cannot write"):
        written(tmp_path / "file" / "calibration.json", [entry()])
