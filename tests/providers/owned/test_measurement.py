"""Measuring own machines: the script's arithmetic under a torch for processors, and what becomes of its findings."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.owned import measurement as measure
from gpuplan.providers.owned import measuring_script
from gpuplan.providers.owned.detected_devices import Group, Host, groups
from gpuplan.providers.owned.measurement import as_entry, measured_entry, measurement, precisions_of
from gpuplan.providers.owned.nvidia_devices import devices_of
from tests.providers.fake_nvml import RTX, FakeNvml
from tests.providers.owned.test_calibration_file import ENTRY

HOST = Host(id=ENTRY["host"], name="rig", vcpus=8, ram_gib=64)
#: What the script prints on a machine with two RTX 3090, in its own words.
FINDINGS = {name: ENTRY[name] for name in ("matmul_tflops", "memory_gbs", "host_gbs", "peer_gbs", "notes", "torch")} | {
    step: {name: value for name, value in ENTRY[step].items() if name != "software"}
    for step in ("transformer", "convolution")
}
Interpreter = Callable[..., str]


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """A program in the place of Python that prints recorded lines and ends with a code."""

    def make(*lines: str, code: int = 0, complaint: str = "") -> str:
        program = tmp_path / "recorded"
        printed = "".join(f"print({line!r}, flush=True)\n" for line in lines)
        program.write_text(
            f"#!{sys.executable}\nimport sys\n{printed}sys.stderr.write({complaint!r})\nsys.exit({code})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return make


@pytest.fixture
def torch_python() -> str:
    """The interpreter with torch for processors that `make test` sets up."""
    python = os.environ.get("GPUPLAN_TORCH_PYTHON")
    if not python:
        pytest.skip("needs GPUPLAN_TORCH_PYTHON, which make test sets")
    return python


def group(*cards: dict[str, Any]) -> Group:
    return groups(devices_of(FakeNvml(*cards)))[0]


def run(python: str, heard: list[str] | None = None, *, seconds: float = 5.0) -> dict[str, Any]:
    tell = (heard if heard is not None else []).append
    return measurement(python, ("--seconds", "1"), seconds=seconds, environment={}, tell=tell)


def entry_of(python: str, *cards: dict[str, Any]) -> dict[str, Any]:
    return measured_entry(
        group(*(cards or (RTX, RTX))), HOST, machine="rig", python=python, seconds=5.0, tell=lambda _: None
    )


def test_a_product_of_two_matrices_is_two_operations_per_multiplication() -> None:
    assert measuring_script.matmul_tflops(10_000, 2.0) == pytest.approx(1.0)


def test_shares_of_the_time_make_the_whole_time() -> None:
    assert sum(measuring_script.SHARES.values()) == pytest.approx(1.0)


def test_every_device_has_a_step_that_fits_it() -> None:
    assert measuring_script.TRANSFORMERS[-1][0] == measuring_script.IMAGES[-1][0] == 0
    assert list(measuring_script.IMAGES) == sorted(measuring_script.IMAGES, reverse=True)


def test_progress_is_told_and_other_lines_are_ignored(interpreter: Interpreter) -> None:
    heard: list[str] = []
    program = interpreter('{"progress": "a"}', "a library's warning", "[1]", json.dumps({"result": FINDINGS}))
    assert run(program, heard) == FINDINGS
    assert heard == ["a"]


def test_findings_become_a_sealed_entry_with_who_measured_what(interpreter: Interpreter) -> None:
    entry = entry_of(interpreter(json.dumps({"result": FINDINGS})))
    assert (entry["machine"], entry["host"], entry["accelerator"], entry["count"]) == ("rig", HOST.id, "RTX-3090", 2)
    assert (entry["gpu_uuids"], entry["driver"]) == (["GPU-0", "GPU-1"], "570.86.15")
    assert entry["transformer"]["software"] == "fused"
    assert entry["sha256"]


def test_what_there_was_nothing_to_measure_of_is_left_out() -> None:
    entry = as_entry(FINDINGS | {"peer_gbs": None, "convolution": None})
    assert "peer_gbs" not in entry
    assert "convolution" not in entry


@pytest.mark.parametrize("rate", [-1.0, 0.0, 5000.0])
def test_absurd_findings_are_refused(interpreter: Interpreter, rate: float) -> None:
    with pytest.raises(UnusableInput, match=r"memory_gbs"):
        entry_of(interpreter(json.dumps({"result": FINDINGS | {"memory_gbs": rate}})))


@pytest.mark.parametrize("findings", [{}, {"matmul_tflops": {}}, {"matmul_tflops": {"bf16": {"big": 1}}}])
def test_findings_that_say_nothing_are_refused(interpreter: Interpreter, findings: dict[str, Any]) -> None:
    with pytest.raises(UnusableInput):
        entry_of(interpreter(json.dumps({"result": findings})))


def test_a_python_without_torch_is_an_unusable_choice(interpreter: Interpreter) -> None:
    with pytest.raises(UnusableInput, match="--python") as refused:
        run(interpreter(json.dumps({"error": "No module named 'torch'"}), code=1))
    assert refused.value.faults[0].field == "python"


def test_this_python_answers_for_itself_whether_it_has_torch() -> None:
    """The script itself, in an interpreter that has no torch: gpuplan does not depend on it."""
    with pytest.raises(UnusableInput, match=r"torch"):
        measurement(
            sys.executable,
            ("--device", "cuda", "--precisions", "bf16"),
            seconds=5.0,
            environment={},
            tell=lambda _: None,
        )


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(UnusableInput, match="is no program"):
        run("/nowhere/python")


@pytest.mark.parametrize(("lines", "code"), [(('{"error": "out of memory"}',), 1), ((), 3), ((), 0), (("{}",), 0)])
def test_a_measurement_that_fails_is_a_failure_in_one_line(
    interpreter: Interpreter, lines: tuple[str, ...], code: int
) -> None:
    with pytest.raises(ProviderFailure, match="the measurement ended with exit code") as failure:
        run(interpreter(*lines, code=code, complaint="first\nlast words\n"))
    assert "\n" not in str(failure.value)
    assert ("out of memory" in str(failure.value)) == bool(lines and code)


def test_a_measurement_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "START_SECONDS", 0.1)
    program = tmp_path / "sleeps"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    program.chmod(0o755)
    with pytest.raises(ProviderFailure, match="ended by signal 9"):
        run(str(program), seconds=0.1)


def test_only_precisions_that_the_device_has_are_measured() -> None:
    def names(name: str, mib: int) -> list[str]:
        chip = group({"name": name, "mib": mib}).accelerator
        return precisions_of(chip) if chip else []

    assert names("NVIDIA GeForce RTX 3090", 24576) == ["bf16", "fp16", "tf32", "fp32"]
    assert names("Tesla V100-SXM2-16GB", 16384) == ["fp16", "fp32"]
    assert names("NVIDIA GeForce GTX 1080 Ti", 11264) == ["fp32"]
    assert "fp8" in names("NVIDIA H100 80GB HBM3", 81559)


def test_a_card_cut_into_slices_or_unknown_is_not_measured(interpreter: Interpreter) -> None:
    with pytest.raises(UnusableInput, match="MIG"):
        entry_of(interpreter(), {"name": "NVIDIA A100-SXM4-80GB", "mib": 81920, "mig": 1})
    with pytest.raises(UnusableInput, match="nearest"):
        entry_of(interpreter(), {"name": "NVIDIA Mystery 9000"})


@pytest.mark.slow(reason="needs torch")
def test_the_script_measures_everything_with_a_real_torch(torch_python: str) -> None:
    heard: list[str] = []
    options = ("--device", "cpu", "--precisions", "bf16,fp32", "--seconds", "0.5")
    result = measurement(torch_python, options, seconds=30.0, environment={"OMP_NUM_THREADS": "1"}, tell=heard.append)
    assert set(result["matmul_tflops"]) == {"bf16", "fp32"}
    assert set(result["matmul_tflops"]["fp32"]) == {"64", "128"}
    assert 0 < result["matmul_tflops"]["fp32"]["128"] < 10
    assert result["memory_gbs"] > 0
    assert result["host_gbs"] is None
    assert result["transformer"]["hidden_size"] == 64
    assert result["convolution"]["image_size"] == 32
    assert result["transformer"]["seconds"] > 0 < result["convolution"]["seconds"]
    assert result["transformer"]["parameters"] == 128 * 64 + 2 * (12 * 64**2 + 2 * 64)
    assert result["convolution"]["parameters"] == 25_557_032
    assert result["notes"] == []
    assert "a training step of a transformer in bf16" in heard
