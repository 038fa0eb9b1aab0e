"""Measure owned machines: run the measuring script where torch is installed, and make a calibration entry."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.runtime.errors import Fault, ProviderFailure, UnusableInput
from gpuplan.providers.owned.calibration_file import EntryDocument, entry_faults, sealed
from gpuplan.providers.owned.detected_devices import Group, Host

SCRIPT = "measuring_script.py"
#: Precisions for matrix products; fp16 only where it runs on tensor units.
PRECISIONS = ("bf16", "fp16", "tf32", "fp32", "fp8")
#: Time to load torch and its kernels, in addition to twice the requested time (first calls are slow).
START_SECONDS = 180.0
#: The software class of the timed steps: fused attention and optimizer.
SOFTWARE = "fused"
Tell = Callable[[str], None]


def precisions_of(chip: Accelerator) -> list[str]:
    """Precisions to measure on `chip`: those with a rate in its table row."""
    known = [name for name in PRECISIONS if getattr(chip, f"{name}_tflops")]
    return [name for name in known if name != "fp16" or chip.fp16_is_tensor]


def measured_entry(
    group: Group, host: Host, *, machine: str | None, python: str | None, seconds: float, tell: Tell
) -> dict[str, Any]:
    """A calibration entry of one device of `group`, measured for about `seconds`, checked and sealed.

    Raises `UnusableInput` for devices that cannot be measured and for impossible rates, and `ProviderFailure` if the
    measurement fails.
    """
    chip = group.accelerator
    if chip is None:
        raise UnusableInput.at("accelerator", message=group.problem)
    if group.first.split:
        message = f"{group.first.name} is cut into slices (MIG); switch MIG off to measure the whole card"
        raise UnusableInput.at("accelerator", message=message)
    if not precisions_of(chip):
        raise UnusableInput.at("accelerator", message=f"{chip.name} has no known rate to measure")
    options = ("--device", "cuda", "--precisions", ",".join(precisions_of(chip)), "--seconds", f"{seconds:g}")
    result = measurement(python or sys.executable, options, seconds=seconds, environment=_visible(group), tell=tell)
    entry: dict[str, Any] = {} if machine is None else {"machine": machine}
    entry |= {"host": host.id, "accelerator": chip.name, "count": len(group.devices)}
    entry |= {"gpu_uuids": [device.uuid for device in group.devices], "driver": group.first.driver}
    return checked(sealed(entry | {"measured_at": datetime.now(UTC).isoformat(timespec="seconds")} | as_entry(result)))


def as_entry(result: dict[str, Any]) -> dict[str, Any]:
    """The script's results as fields of an entry; omits precisions that could not be measured."""
    steps = {name: result[name] | {"software": SOFTWARE} for name in ("transformer", "convolution") if result.get(name)}
    plain = {name: value for name, value in result.items() if name not in {"transformer", "convolution"}}
    return {name: value for name, value in (plain | steps).items() if value is not None}


def checked(entry: dict[str, Any]) -> dict[str, Any]:
    """`entry` if it is plausible; raises `UnusableInput` with every implausible rate, so that nothing is stored."""
    faults = entry_faults(read_as(EntryDocument, entry), entry)
    if faults:
        raise UnusableInput(*(Fault(("measured", *fault.path), fault.message) for fault in faults))
    return entry


def measurement(
    python: str, options: tuple[str, ...], *, seconds: float, environment: dict[str, str], tell: Tell
) -> dict[str, Any]:
    """The script's result when `python` runs it with `options`; `tell` receives its progress.

    Raises `UnusableInput` at python if that is not an interpreter with torch, `ProviderFailure` if the script fails or
    exceeds its time.
    """
    path = shutil.which(python)
    if path is None:
        raise UnusableInput.at("python", message=f"{python[:200]!r} is no program; give a Python that imports torch")
    with tempfile.TemporaryDirectory(prefix="gpuplan-") as folder, tempfile.TemporaryFile("w+") as complaints:
        # In an empty folder, so that no neighbouring file shadows a library of torch's.
        script = Path(folder) / SCRIPT
        script.write_bytes((files("gpuplan.providers.owned") / SCRIPT).read_bytes())
        child = subprocess.Popen(
            (path, str(script), *options),
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            cwd=folder,
            env=os.environ | environment,
        )
        answer = _heard(child, 2 * seconds + START_SECONDS, tell)
        complaints.seek(0)
        error_lines = complaints.read()[-2000:].strip().splitlines()
    return _result(answer, child.returncode, error_lines[-1][:200] if error_lines else "", path)


def _heard(child: subprocess.Popen[str], limit_seconds: float, tell: Tell) -> dict[str, Any]:
    """The last line that is an answer; forwards progress. Kills the child at its time limit."""
    answer: dict[str, Any] = {}
    late = threading.Timer(limit_seconds, child.kill)
    late.start()
    try:
        for line in _lines(child.stdout):
            if "progress" in line:
                tell(str(line["progress"]))
            else:
                answer = line
        child.wait()
    finally:
        late.cancel()
        if child.poll() is None:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
    return answer


def _lines(stream: IO[str] | None) -> Iterator[dict[str, Any]]:
    """JSON objects as they arrive; skips lines that libraries print in between."""
    for line in stream or ():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _result(answer: dict[str, Any], code: int, complaint: str, path: str) -> dict[str, Any]:
    if code == 0 and isinstance(answer.get("result"), dict):
        result: dict[str, Any] = answer["result"]
        return result
    error = str(answer.get("error", ""))
    if "torch" in error:
        message = f"{path} cannot measure: {error}; give --python an interpreter whose torch sees the GPU"
        raise UnusableInput.at("python", message=message)
    ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    raise ProviderFailure(f"the measurement {ending}: {error or complaint or 'it says nothing'}")


def _visible(group: Group) -> dict[str, str]:
    """Make two devices of the group visible to the script: one to measure, and a neighbour for transfers."""
    if group.first.vendor != "NVIDIA":
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(device.uuid for device in group.devices[:2])}
