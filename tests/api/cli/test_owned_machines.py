"""`gpuplan local` and `gpuplan calibrate`, and what plans then say of the machine that was measured."""

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.providers.owned.calibration_file import sealed
from gpuplan.providers.owned.detected_devices import this_host
from tests.providers.fake_nvml import RTX, FakeNvml
from tests.providers.owned.test_calibration_file import ENTRY
from tests.providers.owned.test_measurement import FINDINGS

Run = Callable[..., Any]
Write = Callable[..., Path]
MACHINE: dict[str, Any] = {
    "name": "rig",
    "accelerator": "RTX 3090",
    "count": 2,
    "usd_per_hour": 0,
    "power_watts": 900,
    "electricity_usd_per_kwh": 0.3,
}


@pytest.fixture(autouse=True)
def nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tools, driver, settings or data of whoever runs the tests."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("GPUPLAN_CALIBRATION", "GPUPLAN_TORCH_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("gpuplan.providers.owned.nvidia_devices.DRIVER", tmp_path / "none")


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts cards into this machine."""

    def put(*given: dict[str, Any]) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*given))

    return put


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """A program in the place of Python that answers with what was measured elsewhere."""

    def make(measured: dict[str, Any] = FINDINGS, code: int = 0) -> Path:
        program = tmp_path / "recorded"
        answer = {"result": measured} if not code else {"error": "out of memory"}
        lines = [json.dumps({"progress": "memory bandwidth"}), json.dumps(answer)]
        program.write_text(
            f"#!{sys.executable}\nimport sys\nprint({lines[0]!r})\nprint({lines[1]!r})\nsys.exit({code})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    return make


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(json.dumps({"machines": [MACHINE]}))
    return path


def own_plan(run: Run, job_file: Write, job: dict[str, Any], inventory: Path) -> dict[str, Any]:
    mine = job | {"constraints": {"price_kinds": ["owned"]}, "deadline": "30d"}
    mine["training"] = job["training"] | {"software": "fused"}
    ended = run("plan", job_file(mine), "--json", "--inventory", inventory)
    assert ended.code == 0, ended.err + ended.out
    plan: dict[str, Any] = json.loads(ended.out)["plan"]
    return plan


def test_detect_lists_what_is_there_and_writes_an_inventory_to_fill_in(
    run: Run, cards: Callable[..., None], tmp_path: Path
) -> None:
    cards(RTX, RTX, {"name": "NVIDIA Mystery 9000"})
    path = tmp_path / "found.yaml"
    ended = run("local", "detect", "--write", path)
    assert ended.code == 0
    assert "RTX-3090" in ended.out
    assert "? NVIDIA Mystery 9000" in ended.out
    assert "fill in the 2 lines" in ended.err
    assert run("local", "list", "--inventory", path).code == 2
    assert run("local", "detect", "--write", path).code == 2


def test_detect_with_costs_writes_an_inventory_that_plans_can_use(
    run: Run, cards: Callable[..., None], tmp_path: Path
) -> None:
    cards(RTX, RTX)
    path = tmp_path / "found.yaml"
    ended = run("local", "detect", "--write", path, "--electricity", "0.3", "--usd-per-hour", "0", "--json")
    assert (ended.code, json.loads(ended.out)["accelerators"][0]["uuids"]) == (0, ["GPU-0", "GPU-1"])
    listed = json.loads(run("local", "list", "--inventory", path, "--json").out)["machines"]
    assert [(machine["accelerator"], machine["accelerators_per_machine"], machine["host"]) for machine in listed] == [
        ("RTX-3090", 2, this_host().id)
    ]


def test_contradictory_costs_and_unwritable_files_are_refused(
    run: Run, cards: Callable[..., None], tmp_path: Path
) -> None:
    cards(RTX)
    assert run("local", "detect", "--usd-per-hour", "1", "--purchase-usd", "100").code == 2
    ended = run("local", "detect", "--write", tmp_path / "none" / "x.yaml")
    assert (ended.code, ended.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("command", [("local", "detect"), ("calibrate",)])
def test_a_machine_without_an_accelerator_is_told_so_in_one_line(run: Run, command: tuple[str, ...]) -> None:
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert "no NVIDIA or AMD accelerator on this machine" in ended.err
    assert ended.err.count("\n") == 1


def test_a_driver_that_fails_is_a_failed_provider(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.providers.owned.nvidia_devices.DRIVER", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(RTX, broken="nvmlInit"))
    ended = run("local", "detect")
    assert (ended.code, ended.err.count("\n")) == (3, 1)


def test_listing_needs_an_inventory(run: Run) -> None:
    assert "gpuplan local detect --write FILE makes one" in run("local", "list").err


def test_the_inventory_is_listed_with_costs_and_free_hours(run: Run) -> None:
    ended = run("local", "list", "--inventory", "examples/inventory.yaml")
    for part in ("rig-3090", "0.1199", "mon tue wed thu fri 18:00-08:00", "always", "no"):
        assert part in ended.out


def test_a_measured_machine_is_planned_with_as_it_was_measured(
    run: Run,
    cards: Callable[..., None],
    recorded: Callable[..., Path],
    inventory: Path,
    job: dict[str, Any],
    job_file: Write,
) -> None:
    cards(RTX, RTX)
    before = own_plan(run, job_file, job, inventory)
    assert not any("measured on this machine" in assumption for assumption in before["assumptions"])
    slow = FINDINGS | {"matmul_tflops": {"bf16": {"8192": 40.0}}}
    ended = run("calibrate", "--inventory", inventory, "--python", recorded(slow))
    assert ended.code == 0, ended.err
    assert "RTX-3090: measuring memory bandwidth" in ended.err
    assert "matmul bf16 8192" in ended.out
    path = inventory.with_name("lab.calibration.json")
    assert str(path) in ended.out
    after = own_plan(run, job_file, job, inventory)
    assert after["hours"]["expected"] > 1.2 * before["hours"]["expected"]
    assumption_made = next(
        assumption for assumption in after["assumptions"] if "measured on this machine" in assumption
    )
    assert "bf16 matmul 40 TFLOP/s" in assumption_made
    assert any("compute time" in assumption for assumption in after["assumptions"])
    assert json.loads(run("local", "list", "--inventory", inventory, "--json").out)["machines"][0]["measured_at"]
    path.unlink()
    assert own_plan(run, job_file, job, inventory)["hours"] == before["hours"]


def test_without_an_inventory_the_users_own_file_is_written_and_used_for_that_host(
    run: Run, cards: Callable[..., None], recorded: Callable[..., Path], inventory: Path, tmp_path: Path
) -> None:
    cards(RTX, RTX)
    ended = run("calibrate", "--python", recorded(), "--json")
    answer = json.loads(ended.out)
    assert Path(answer["calibration"]).is_relative_to(tmp_path / "data")
    inventory.write_text(json.dumps({"machines": [MACHINE | {"host": answer["machines"][0]["host"]}]}))
    listed = json.loads(run("local", "list", "--inventory", inventory, "--json").out)["machines"]
    assert listed[0]["measured_at"]
    inventory.write_text(json.dumps({"machines": [MACHINE]}))
    listed = json.loads(run("local", "list", "--inventory", inventory, "--json").out)["machines"]
    assert listed[0]["measured_at"] is None


@pytest.mark.parametrize(
    ("measured", "code", "expected"),
    [(FINDINGS | {"memory_gbs": 5000.0}, 0, 2), (FINDINGS | {"host_gbs": -1.0}, 0, 2), (FINDINGS, 1, 3)],
)
def test_nothing_is_stored_of_a_measurement_that_fails_or_cannot_be_believed(
    run: Run,
    cards: Callable[..., None],
    recorded: Callable[..., Path],
    inventory: Path,
    measured: dict[str, Any],
    code: int,
    expected: int,
) -> None:
    cards(RTX, RTX)
    ended = run("calibrate", "--inventory", inventory, "--python", recorded(measured, code))
    assert ended.code == expected
    assert not inventory.with_name("lab.calibration.json").exists()


def test_measurements_of_other_machines_are_kept_and_a_broken_file_is_refused_before_measuring(
    run: Run, cards: Callable[..., None], recorded: Callable[..., Path], inventory: Path
) -> None:
    cards(RTX, RTX)
    other = sealed(ENTRY | {"host": "feedfeedfeedfeed", "machine": "other"})
    path = inventory.with_name("lab.calibration.json")
    path.write_text(json.dumps({"format": 1, "machines": [other]}))
    assert run("calibrate", "--inventory", inventory, "--python", recorded()).code == 0
    assert run("calibrate", "--inventory", inventory, "--python", recorded()).code == 0
    machines = json.loads(path.read_text())["machines"]
    assert [machine["host"] for machine in machines] == ["feedfeedfeedfeed", this_host().id]
    path.write_text(json.dumps({"format": 1, "machines": [other | {"memory_gbs": 1.0}]}))
    ended = run("calibrate", "--inventory", inventory, "--python", recorded())
    assert ended.code == 2
    assert "changed after it was measured" in ended.err
    assert "measuring" not in ended.err


@pytest.mark.parametrize("change", [{"count": 4}, {"host": "feedfeedfeedfeed"}, {"accelerator": "RTX 4090"}])
def test_a_machine_that_the_inventory_does_not_have_is_not_measured(
    run: Run, cards: Callable[..., None], inventory: Path, change: dict[str, Any]
) -> None:
    cards(RTX, RTX)
    inventory.write_text(json.dumps({"machines": [MACHINE | change]}))
    ended = run("calibrate", "--inventory", inventory)
    assert ended.code == 2
    assert "no machines with 2 x RTX-3090 that can be this one" in ended.err
    assert "measuring" not in ended.err


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (sealed(ENTRY) | {"memory_gbs": 900.0}, "calibration.machines[0].sha256"),
        (sealed(ENTRY | {"memory_gbs": 9000.0}), "calibration.machines[0].memory_gbs"),
        (sealed(ENTRY | {"machine": "elsewhere"}), "calibration.machines[0].host"),
        (sealed(ENTRY | {"accelerator": "RTX-3095"}), "calibration.machines[0].accelerator"),
    ],
)
def test_a_plan_refuses_a_calibration_that_was_changed_or_is_of_another_machine(
    run: Run, inventory: Path, job: dict[str, Any], job_file: Write, entry: dict[str, Any], field: str
) -> None:
    path = inventory.with_name("lab.calibration.json")
    path.write_text(json.dumps({"format": 1, "machines": [entry]}))
    ended = run("plan", job_file(job), "--inventory", inventory)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(f"gpuplan: {field}: ")


def test_a_calibration_file_that_is_named_must_be_there(
    run: Run, inventory: Path, job: dict[str, Any], job_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPLAN_CALIBRATION", "/nowhere/calibration.json")
    ended = run("plan", job_file(job), "--inventory", inventory)
    assert (ended.code, "calibration: cannot read" in ended.err) == (2, True)
