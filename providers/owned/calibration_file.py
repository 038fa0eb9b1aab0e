"""The calibration file: rates measured on owned machines, validated and assigned to their machines.

One JSON document holds one entry per host and accelerator. Each carries a digest of itself, so that a manually changed
figure is rejected instead of used.

Check whether measured rates are possible for the stated accelerator.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gpuplan.catalog.model.accelerators import Accelerator, find_accelerator
from gpuplan.catalog.model.measured_rates import (
    PEER_COPY_SHARE,
    ConvolutionStep,
    MatmulRate,
    MeasuredRates,
    TransformerStep,
)
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.parsing.document_fields import Document, Label, Reads, read_as
from gpuplan.catalog.parsing.quantities import moment
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: The largest ratio of a measured rate to the data sheet: cards boost above the data sheet's clock by up to a tenth (RTX
#: 4090: 2.75 GHz for 2.52). Beyond that it is another device, or the clock of the measurement is wrong.
MOST_OF_DATA_SHEET = 1.2
#: Below this share of the data sheet, another process used the device, or the device was not used at all.
LEAST_OF_DATA_SHEET = 0.02
#: PCIe 6.0 x16, one direction (PCI-SIG): the maximum where the table lacks a card's bandwidth.
PCIE_GBS_MOST = 121.0


def rate_faults(rates: MeasuredRates, chip: Accelerator) -> list[Fault]:
    """Every rate that is impossible for `chip`."""
    link = max((chip.link_gbs or 0.0) / 2, chip.pcie_gbs or PCIE_GBS_MOST)
    checks = [*_matmuls(rates, chip)]
    checks.append((("memory_gbs",), rates.memory_gbs, chip.memory_gbs, LEAST_OF_DATA_SHEET, "GB/s"))
    if rates.host_gbs is not None:
        checks.append((("host_gbs",), rates.host_gbs, chip.pcie_gbs or PCIE_GBS_MOST, 0.0, "GB/s"))
    if rates.peer_gbs is not None:
        checks.append((("peer_gbs",), rates.peer_gbs, link, 0.0, "GB/s"))
    faults = [
        Fault(path, _why(value, nominal, unit, chip))
        for path, value, nominal, least, unit in checks
        if not least * nominal <= value <= MOST_OF_DATA_SHEET * nominal
    ]
    return faults + _step_faults(rates, chip)


Check = tuple[tuple[str, ...], float, float, float, str]


def _matmuls(rates: MeasuredRates, chip: Accelerator) -> Iterator[Check]:
    """Only the best size must approach the data sheet; small ones never do."""
    for matmul in rates.matmuls:
        peak: float = getattr(chip, f"{matmul.precision}_tflops") or 0.0
        best = matmul.tflops == rates.best_tflops(matmul.precision)
        path = ("matmul_tflops", matmul.precision, str(matmul.size))
        yield path, matmul.tflops, peak, LEAST_OF_DATA_SHEET if best else 0.0, "TFLOP/s"


def _step_faults(rates: MeasuredRates, chip: Accelerator) -> list[Fault]:
    """A transformer step faster than its matrix products alone at the device's peak."""
    step = rates.transformer
    peak = getattr(chip, f"{step.precision}_tflops") if step is not None else None
    if step is None or not peak:
        return []
    weights = step.layers * (4 * step.hidden_size**2 + 2 * step.hidden_size * step.ffn_size)
    tokens = step.batch * step.sequence_length
    least = 6.0 * weights * tokens / (peak * 1e12 * MOST_OF_DATA_SHEET)
    if step.seconds >= least:
        return []
    message = f"{step.seconds:g} s is less than the {least:.3g} s that its products take {chip.name} at its very best"
    return [Fault(("transformer", "seconds"), message)]


def _why(value: float, nominal: float, unit: str, chip: Accelerator) -> str:
    if nominal <= 0:
        return f"{value:g} {unit} cannot be: {chip.name} has no such precision"
    accepted = f"accepted: {LEAST_OF_DATA_SHEET:.0%} to {MOST_OF_DATA_SHEET:.0%} of its data sheet's {nominal:g}"
    return f"{value:g} {unit} is not plausible for {chip.name}; {accepted}"


FORMAT = 1
#: Derived from the dimensions; stored for readers of the file.
_UNUSED = {"parameters"}
Rate = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1, le=1_000_000)]
Size = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}$")]
Text = Annotated[str, Field(max_length=200)]
Moment = Annotated[datetime, Reads(moment, {"type": "string", "format": "date-time"})]


class StepDocument(Document):
    """A training step and its duration."""

    precision: Literal["bf16", "fp16", "tf32", "fp32"]
    software: Literal["fused", "plain"]
    seconds: Rate
    batch: Whole
    parameters: Annotated[int, Field(ge=1, le=10**12)]


class TransformerDocument(StepDocument):
    """The step of a small causal language model."""

    layers: Whole
    hidden_size: Whole
    ffn_size: Whole
    attention_heads: Whole
    vocabulary_size: Whole
    sequence_length: Whole


class ConvolutionDocument(StepDocument):
    """The step of ResNet-50."""

    image_size: Whole


class EntryDocument(Document):
    """Rates measured on one machine; `machine` is its inventory name, if known."""

    machine: Annotated[str, Label] | None = None
    host: Annotated[str, Label]
    accelerator: Annotated[str, Label]
    count: Whole
    gpu_uuids: Annotated[tuple[Text, ...], Field(min_length=1, max_length=64)]
    driver: Text
    torch: Text
    measured_at: Moment
    matmul_tflops: Annotated[
        dict[Literal["bf16", "fp16", "tf32", "fp32", "fp8"], dict[Size, Rate]], Field(min_length=1)
    ]
    memory_gbs: Rate
    host_gbs: Rate | None = None
    peer_gbs: Rate | None = None
    transformer: TransformerDocument | None = None
    convolution: ConvolutionDocument | None = None
    notes: tuple[Text, ...] = ()
    sha256: Text


class CalibrationDocument(Document):
    """The file."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    machines: tuple[EntryDocument, ...]


def digest(entry: dict[str, Any]) -> str:
    """SHA-256 of an entry's contents in canonical form."""
    content = {key: value for key, value in entry.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with its digest."""
    return entry | {"sha256": digest(entry)}


def read_calibration(text: bytes | str, *, name: str) -> tuple[EntryDocument, ...]:
    """The entries of a calibration file.

    Raises `UnusableInput` with all faults: another format, a change after measurement, an unknown accelerator, or rates
    that the accelerator cannot reach.
    """
    document = read_document(text, name=name)
    entries = read_as(CalibrationDocument, document).machines
    faults: list[Fault] = []
    for i, (entry, given) in enumerate(zip(entries, document["machines"], strict=True)):
        faults += [Fault(("machines", i, *fault.path), fault.message) for fault in entry_faults(entry, given)]
    if faults:
        raise UnusableInput(*faults)
    return entries


def entry_faults(entry: EntryDocument, given: dict[str, Any]) -> list[Fault]:
    """Faults of an entry, whose text is `given`, beyond its single fields."""
    if digest(given) != entry.sha256:
        message = "does not match the entry, which was changed after it was measured; run gpuplan calibrate again"
        return [Fault(("sha256",), message)]
    try:
        chip = find_accelerator(entry.accelerator)
    except UnusableInput as error:
        return list(error.faults)
    return rate_faults(rates_of(entry), chip)


def rates_of(entry: EntryDocument) -> MeasuredRates:
    """An entry in the planner's form."""
    matmuls = [
        MatmulRate(precision=precision, size=int(size), tflops=tflops)
        for precision, sizes in entry.matmul_tflops.items()
        for size, tflops in sizes.items()
    ]
    transformer, convolution = entry.transformer, entry.convolution
    return MeasuredRates(
        measured_at=entry.measured_at,
        matmuls=tuple(matmuls),
        memory_gbs=entry.memory_gbs,
        host_gbs=entry.host_gbs,
        peer_gbs=entry.peer_gbs,
        transformer=None if transformer is None else TransformerStep(**transformer.model_dump(exclude=_UNUSED)),
        convolution=None if convolution is None else ConvolutionStep(**convolution.model_dump(exclude=_UNUSED)),
    )


def written(path: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write the file atomically. Raises `UnusableInput` at calibration if it cannot be written."""
    text = json.dumps({"format": FORMAT, "machines": list(entries)}, indent=1, allow_nan=False) + "\n"
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        message = f"cannot write {str(path)!r}: {error.strerror or type(error).__name__}"
        raise UnusableInput.at("calibration", message=message) from error


def merged(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Old and new entries: a later measurement of the same host and accelerator replaces the earlier one."""
    again = {(entry["host"], entry["accelerator"], entry.get("machine")) for entry in new}
    return [*(entry for entry in old if (entry["host"], entry["accelerator"], entry.get("machine")) not in again), *new]


def calibrated(
    machines: tuple[OwnedMachine, ...], entries: Sequence[EntryDocument], *, others_allowed: bool = False
) -> tuple[OwnedMachine, ...]:
    """The machines of an inventory with their measured rates.

    An entry belongs to the machine with its `host` and accelerator or, if the inventory names no host, to the machine name
    in the entry. Raises `UnusableInput` for an entry without a machine in the inventory, unless `others_allowed`.
    """
    faults = []
    calibrated_machines = list(machines)
    for i, entry in enumerate(entries):
        places = _places(entry, machines)
        if not places and not others_allowed:
            faults.append(Fault(("calibration", "machines", i, "host"), _of_no_machine(entry, machines)))
        for place in places:
            calibrated_machines[place] = _measured(machines[place], entry)
    if faults:
        raise UnusableInput(*faults)
    return tuple(calibrated_machines)


def _places(entry: EntryDocument, machines: tuple[OwnedMachine, ...]) -> list[int]:
    """The machines that an entry belongs to."""
    name = find_accelerator(entry.accelerator).name
    fitting = [i for i, machine in enumerate(machines) if machine.instance_type.accelerator == name]
    by_host = [i for i in fitting if machines[i].host == entry.host]
    by_name = [i for i in fitting if not machines[i].host and machines[i].instance_type.name == entry.machine]
    exact = [i for i in by_host if machines[i].instance_type.name == entry.machine]
    return exact or by_host or by_name


def _of_no_machine(entry: EntryDocument, machines: tuple[OwnedMachine, ...]) -> str:
    known = ", ".join(f"{machine.instance_type.name} ({machine.host or 'no host'})" for machine in machines)
    return (
        f"measured on another machine: {entry.host} with {entry.accelerator}; the inventory has {known}. Run gpuplan "
        f"calibrate there, or write host: {entry.host!r} at the machine that it is of"
    )


def _measured(machine: OwnedMachine, entry: EntryDocument) -> OwnedMachine:
    rates = rates_of(entry)
    kind = machine.instance_type
    if rates.peer_gbs is not None and kind.devices > 1:
        kind = replace(kind, intranode_gbs=rates.peer_gbs / PEER_COPY_SHARE)
    sentence = f"{kind.name}: {_sentence(rates, find_accelerator(entry.accelerator))}"
    if machine.machines > 1:
        sentence += f"; one of the {machine.machines} machines represents all of them"
    return replace(machine, instance_type=kind, measured=rates, assumptions=(sentence, *machine.assumptions))


def _sentence(rates: MeasuredRates, chip: Accelerator) -> str:
    """The measured rates as a sentence, compared with the data sheet."""
    parts = []
    for precision in dict.fromkeys(matmul.precision for matmul in rates.matmuls):
        best, peak = rates.best_tflops(precision) or 0.0, getattr(chip, f"{precision}_tflops")
        parts.append(f"{precision} matmul {best:.3g} TFLOP/s" + (f" ({best / peak:.0%} of peak)" if peak else ""))
    parts.append(f"memory {rates.memory_gbs:.0f} GB/s ({rates.memory_gbs / chip.memory_gbs:.0%} of the data sheet)")
    parts += [f"host link {rates.host_gbs:.3g} GB/s"] if rates.host_gbs is not None else []
    parts += [f"device to device {rates.peer_gbs:.3g} GB/s"] if rates.peer_gbs is not None else []
    steps = {"transformer": rates.transformer, "convolutional": rates.convolution}
    parts += [f"{name} step {step.seconds * 1e3:.3g} ms" for name, step in steps.items() if step is not None]
    day = rates.measured_at.astimezone(UTC).date().isoformat()
    return f"measured on this machine on {day}: {', '.join(parts)}"
