"""The work of a run that was measured on other machines.

The time model predicts how fast those machines do the work of the model or of a known model of its class. As much of that
work as they do in the measured hours stands for the run, so hours elsewhere follow by the ratio of two predictions. What the
two have in common, such as the user's code and data, cancels out.
"""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator, find_accelerator
from gpuplan.catalog.parsing.accelerator_names import accelerators_and_count
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Explicit, Preset, Training, Workload
from gpuplan.planner.model.workloads import MEASURED_CLASSES, Measured
from gpuplan.planner.performance.accelerator_constants import PREFERENCE, peak_tflops
from gpuplan.planner.performance.cluster_rates import DOES_NOT_FIT
from gpuplan.planner.performance.estimator_request import REASONS, Machines, one_configuration
from gpuplan.planner.performance.fastest_layout import estimate
from gpuplan.planner.performance.goodput import modelled_goodput
from gpuplan.planner.workload import find_preset, work_of
from gpuplan.planner.workload.step_work import Work

#: Amount of training by which the speed of a model is found before the run's own is known.
_TOKENS, _SAMPLES = 1e11, 1e9
#: Memory of a run of which nothing is known: this share of the accelerators that it ran on.
_MEMORY_SHARE = 0.5
_ROOMY_MIB = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """The work that stands for a measured run, how it is trained, and sentences for the user."""

    workload: Workload
    training: Training
    notes: tuple[str, ...]


def equivalent_of(measured: Measured, training: Training) -> Equivalent:
    """The work that takes as long as `measured` on its machines.

    Raises `UnusableInput` at ("workload", field) for contradictions, and for a speed beyond the machines' dense peak.
    """
    count, name = accelerators_and_count(measured.on)
    chip = find_accelerator(name)
    faults = _faults(measured, count)
    if faults:
        raise UnusableInput(*faults)
    wall_hours = _hours(measured)
    hours = wall_hours * float(modelled_goodput(np.array([float(count)]))[0])
    model = MEASURED_CLASSES.get(measured.like, measured.like)
    if model is None:
        return _unknown(measured, training, chip, count, hours)
    if measured.like == "llm-lora" and training.method == "full":
        training = replace(training, method="lora")
    machines = _machines(chip, count, measured.nodes)
    row = find_preset(model)
    # A model that stands for a class has other ratios than the run's own.
    sized = Preset(model=row.name, amount_is_measured=measured.like not in MEASURED_CLASSES)
    sized = replace(sized, tokens=_TOKENS) if row.unit == "tokens" else replace(sized, samples=_SAMPLES)
    work = work_of(sized, training)
    _check_speed(measured, work, chip, count, hours)
    amount = _units_per_second(work, training, machines)[0] * hours * 3600
    # The batch of the run is that of a run of its size, so it is found once more.
    work = work_of(_of_amount(sized, max(amount, work.units_per_sample)), training)
    rate, fits = _units_per_second(work, training, machines)
    amount = rate * hours * 3600
    by_ratio = f"{measured.on} do {amount:.3g} {work.unit} in {wall_hours:g} h by the time model; hours elsewhere follow by ratio"
    notes: tuple[str, ...] = (by_ratio,)
    if measured.like != sized.model:
        notes += (
            f"a run of class {measured.like} is taken as {sized.model}, memory included; name the model to plan with its own",
        )
    if not fits:
        notes += (
            f"by the memory model this run does not fit on {measured.on}; its speed there is that as if it fitted",
        )
    workload = _of_amount(sized, max(amount, work.units_per_sample))
    return Equivalent(workload=workload, training=training, notes=notes)


def _of_amount(preset: Preset, units: float) -> Preset:
    return replace(preset, tokens=units) if preset.tokens is not None else replace(preset, samples=units)


def _hours(measured: Measured) -> float:
    """Wall hours of the run, failures included; a stated speed is without them."""
    if measured.hours is not None:
        return measured.hours
    seconds = (measured.tokens or measured.samples or 0.0) / (
        measured.tokens_per_second or measured.samples_per_second or 1.0
    )
    count, _ = accelerators_and_count(measured.on)
    return seconds / 3600 / float(modelled_goodput(np.array([float(count)]))[0])


def _faults(measured: Measured, count: int) -> list[Fault]:
    stated = [
        name for name in ("hours", "tokens_per_second", "samples_per_second") if getattr(measured, name) is not None
    ]
    faults = []
    if not stated:
        accepted = "hours, or tokens_per_second with tokens, or samples_per_second with samples"
        faults.append(Fault(("workload", "hours"), f"is missing; give {accepted}"))
    if len(stated) > 1:
        faults.append(Fault(("workload", stated[1]), f"contradicts {stated[0]}; give one of the two"))
    for speed, amount in (("tokens_per_second", "tokens"), ("samples_per_second", "samples")):
        if (getattr(measured, speed) is None) != (getattr(measured, amount) is None):
            missing = amount if getattr(measured, amount) is None else speed
            other = speed if missing == amount else amount
            faults.append(Fault(("workload", missing), f"is missing; {other} needs it"))
    if measured.nodes is not None and count % measured.nodes:
        faults.append(Fault(("workload", "nodes"), f"{measured.nodes} does not divide the {count} accelerators"))
    return faults


def _unknown(measured: Measured, training: Training, chip: Accelerator, count: int, hours: float) -> Equivalent:
    """Explicit FLOPs for a run of which only the machines and the hours are known."""
    memory_gib = _MEMORY_SHARE * count * chip.device_memory_mib / 1024
    probe = Explicit(total_flops=1e18, memory_gib=memory_gib)
    rate, _ = _units_per_second(work_of(probe, training), training, _machines(chip, count, measured.nodes))
    flops = rate * hours * 3600 * work_of(probe, training).flops_per_unit
    note = (
        f"a run of class {measured.like} is taken as {flops:.3g} FLOPs, what {measured.on} do in the measured hours by the "
        f"time model; its memory is assumed to be half of theirs, {memory_gib:.0f} GiB: name a model to plan with its own"
    )
    return Equivalent(workload=Explicit(total_flops=flops, memory_gib=memory_gib), training=training, notes=(note,))


def _check_speed(measured: Measured, work: Work, chip: Accelerator, count: int, hours: float) -> None:
    """Raise if the stated speed is beyond the dense peak of the accelerators."""
    units = measured.tokens if work.unit == "tokens" else measured.samples
    if units is None:
        return
    peak = max((peak_tflops(chip, name) or 0.0 for name in (*PREFERENCE, "fp8")), default=0.0) * 1e12 * count
    needed = units * work.flops_per_unit / (hours * 3600)
    if peak and needed > peak:
        field = "tokens_per_second" if work.unit == "tokens" else "samples_per_second"
        message = (
            f"{work.name} at this speed needs {needed / 1e12:,.0f} TFLOP/s, and {measured.on} have a peak of "
            f"{peak / 1e12:,.0f}; check the speed, the accelerators and the model"
        )
        raise UnusableInput.at("workload", field, message=message)


def _units_per_second(work: Work, training: Training, machines: Machines) -> tuple[float, bool]:
    """Speed of the machines, and whether the work fits into their memory; if not, the speed is that as if it fitted."""
    predicted, fits = estimate(work, training, machines, goodput=1.0), True
    if int(predicted.reason[0]) == DOES_NOT_FIT:
        roomy = replace(machines, device_memory_mib=np.full(1, _ROOMY_MIB))
        predicted, fits = estimate(work, training, roomy, goodput=1.0), False
    if predicted.reason[0]:
        why = REASONS[int(predicted.reason[0])]
        raise UnusableInput.at("workload", "on", message=f"no estimate of {work.name} on these accelerators: {why}")
    return float(predicted.units_per_second[0]), fits


def _machines(chip: Accelerator, count: int, nodes: int | None) -> Machines:
    """The machines of the run; of the usual size unless their number is stated."""
    if nodes is None:
        usual = max(1, chip.usual_per_node)
        nodes = count // usual if count % usual == 0 else 1
    return one_configuration(chip, devices=count // nodes, nodes=nodes)
