"""Measuring own machines: runs the measuring script where torch is, and makes its findings a calibration entry."""

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

from catalog.accelerators import Accelerator
from catalog.document_fields import read_as
from catalog.errors import Fault, ProviderFailure, UnusableInput
from providers.calibration import EntryDocument, entry_faults, sealed
from providers.detected import Group, Host

SCRIPT = "measure_rates.py"
#: What may be multiplied in; fp16 only where it runs on tensor units.
PRECISIONS = ("bf16", "fp16", "tf32", "fp32", "fp8")
#: Loading torch and its kernels, beside the time that was asked for and as much again for slow first calls.
START_SECONDS = 180.0
#: The class of software that the timed steps stand for: fused attention and optimizer.
SOFTWARE = "fused"
Tell = Callable[[str], None]


def precisions_of(chip: Accelerator) -> list[str]:
    """Precisions worth measuring on `chip`: those that its row of the table has a rate for."""
    known = [name for name in PRECISIONS if getattr(chip, f"{name}_tflops")]
    return [name for name in known if name != "fp16" or chip.fp16_is_tensor]


def measured_entry(
    group: Group, host: Host, *, machine: str | None, python: str | None, seconds: float, tell: Tell
) -> dict[str, Any]:
    """A calibration entry of one device of `group`, measured for about `seconds`, checked and sealed.

    Raises `UnusableInput` for devices that cannot be measured and for rates that cannot be theirs, and
    `ProviderFailure` where the measurement itself fails.
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
    found = measurement(python or sys.executable, options, seconds=seconds, environment=_visible(group), tell=tell)
    entry: dict[str, Any] = {} if machine is None else {"machine": machine}
    entry |= {"host": host.id, "accelerator": chip.name, "count": len(group.devices)}
    entry |= {"gpu_uuids": [device.uuid for device in group.devices], "driver": group.first.driver}
    return checked(sealed(entry | {"measured_at": datetime.now(UTC).isoformat(timespec="seconds")} | as_entry(found)))


def as_entry(found: dict[str, Any]) -> dict[str, Any]:
    """The script's findings as fields of an entry; a precision that could not be measured is left out."""
    steps = {name: found[name] | {"software": SOFTWARE} for name in ("transformer", "convolution") if found.get(name)}
    plain = {name: value for name, value in found.items() if name not in {"transformer", "convolution"}}
    return {name: value for name, value in (plain | steps).items() if value is not None}


def checked(entry: dict[str, Any]) -> dict[str, Any]:
    """`entry` if it can be believed; raises `UnusableInput` naming every rate that cannot, so that nothing is stored."""
    faults = entry_faults(read_as(EntryDocument, entry), entry)
    if faults:
        raise UnusableInput(*(Fault(("measured", *fault.path), fault.message) for fault in faults))
    return entry


def measurement(
    python: str, options: tuple[str, ...], *, seconds: float, environment: dict[str, str], tell: Tell
) -> dict[str, Any]:
    """What the script finds when `python` runs it with `options`; `tell` hears of its progress.

    Raises `UnusableInput` at python where that is no interpreter with torch, `ProviderFailure` where the script
    fails or does not end in time.
    """
    path = shutil.which(python)
    if path is None:
        raise UnusableInput.at("python", message=f"{python[:200]!r} is no program; give a Python that imports torch")
    with tempfile.TemporaryDirectory(prefix="gpuplan-") as folder, tempfile.TemporaryFile("w+") as complaints:
        # Alone in its folder, so that nothing beside it can be taken for a library of torch's.
        script = Path(folder) / SCRIPT
        script.write_bytes((files("providers") / SCRIPT).read_bytes())
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
        said = complaints.read()[-2000:].strip().splitlines()
    return _result(answer, child.returncode, said[-1][:200] if said else "", path)


def _heard(child: subprocess.Popen[str], limit_seconds: float, tell: Tell) -> dict[str, Any]:
    """The last line that is an answer; progress is passed on. The child is killed when its time is over."""
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
    """JSON objects as they come; libraries may print lines of their own between them."""
    for line in stream or ():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _result(answer: dict[str, Any], code: int, complaint: str, path: str) -> dict[str, Any]:
    if code == 0 and isinstance(answer.get("result"), dict):
        found: dict[str, Any] = answer["result"]
        return found
    error = str(answer.get("error", ""))
    if "torch" in error:
        message = f"{path} cannot measure: {error}; give --python an interpreter whose torch sees the GPU"
        raise UnusableInput.at("python", message=message)
    ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    raise ProviderFailure(f"the measurement {ending}: {error or complaint or 'it says nothing'}")


def _visible(group: Group) -> dict[str, str]:
    """Lets the script see two devices of the group: one to measure, and a neighbour to send to."""
    if group.first.vendor != "NVIDIA":
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(device.uuid for device in group.devices[:2])}
