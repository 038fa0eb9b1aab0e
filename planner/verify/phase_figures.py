"""Consistency of the figures of one phase with each other, the work and the estimator.

Lower bound on the bytes of training state that all accelerators of a plan hold together, under any layout.

Every weight lies on some accelerator at its precision, frozen ones too, and so do gradients and optimizer states of
trained weights, except those that `offload` moves to host memory. This is a sum over parameters, independent of
parallelism, sharding and experts.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.planner.model.job import Training
from gpuplan.planner.verify.estimator_port import Row, Work
from gpuplan.planner.verify.field_coverage import FieldCoverage, Path, closely
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.offer_groups import Machine
from gpuplan.planner.verify.place_check import MOMENT_BYTES

GIB = float(1 << 30)
#: Bytes of a frozen weight: 16 bit, or the requested training precision. NF4 takes 4 bit and 0.127 bit of constants
#: (Dettmers 2023, QLoRA, section 3), the least of all quantisations.
_FULL, _HALF, _NF4 = 4.0, 2.0, 4.127 / 8
_FULL_PRECISIONS = ("fp32", "tf32")
#: Bytes of moments per trained parameter: two of fp32 (Kingma 2015; You 2020), one (Chen 2023; momentum; Adagrad),
#: one byte each of 8-bit optimizers (Dettmers 2022), one value per row and column (Shazeer 2018).
_MOMENTS = (
    (8.0, ("adamw", "adam", "lamb")),
    (4.0, ("lion", "lars", "sgd", "momentum", "rmsprop", "adagrad", "muon")),
    (2.0, ("adamw_8bit", "adam_8bit")),
    (1.0, ("lion_8bit",)),
    (0.1, ("adafactor",)),
)


class StatesFloor(NamedTuple):
    """Bytes in the memory of all accelerators together, and in that of all hosts together."""

    devices: float
    hosts: float


def states_floor(work: Work, training: Training, precision: str) -> StatesFloor:
    """The least bytes of state of a run that trains `work` at this precision."""
    if work.fixed_state_gib is not None:
        return StatesFloor(work.fixed_state_gib * GIB, 0.0)
    element = _FULL if precision in _FULL_PRECISIONS else _HALF
    trained = work.trainable_parameters
    weights = trained * element + _frozen(work, training)
    gradients, optimizer = trained * element, trained * _optimizer_bytes(training, element)
    # Embedding tables are fp32 and stay on the devices under every offload (reference implementation of DLRM).
    tables = _FULL * work.table_parameters
    if training.offload == "parameters":
        return StatesFloor(tables, weights + optimizer)
    if training.offload == "optimizer":
        return StatesFloor(tables + weights, optimizer)
    return StatesFloor(tables + weights + gradients + optimizer, 0.0)


def offloaded_gib(work: Work, training: Training) -> float:
    """GiB that all hosts hold together, at 16 bit where the accelerator chooses the precision."""
    return states_floor(work, training, "bf16" if training.precision == "auto" else training.precision).hosts / GIB


def _frozen(work: Work, training: Training) -> float:
    if training.method == "full":
        return 0.0
    element = _FULL if training.precision in _FULL_PRECISIONS else _HALF
    base = max(0.0, work.parameters - work.trainable_parameters - work.table_parameters)
    return base * (_NF4 if training.method == "qlora" else element)


def _optimizer_bytes(training: Training, element: float) -> float:
    """Bytes per trained parameter of moments and of the fp32 master copy of mixed precision."""
    moments = next(size for size, names in _MOMENTS if training.optimizer in names)
    if training.states == "pure_bf16":
        return moments if element > _HALF else moments / 2
    return moments if element > _HALF else moments + 4.0


SPLITS = ("data", "tensor", "pipeline", "context")
LAYOUT = (*SPLITS, "expert", "interleave", "zero_stage", "micro_batch")
#: Share of a device's memory that a predicted peak must leave free; none of memory that the user states.
MARGIN = 0.04
_NUMBERS = (
    ("training_hours", "training_hours"),
    ("hours_with_goodput", "hours_with_goodput"),
    ("log_sigma", "log_sigma"),
    ("mfu", "mfu"),
    ("memory_gib_per_accelerator", "peak_gib"),
    ("capacity_gib_per_accelerator", "capacity_gib"),
)
_OF_THE_SHARE = ("training_hours", "hours_with_goodput")
#: Relative tolerance of a quotient of two figures that are rounded to nine digits.
ROUNDED = 5e-8


def stated_row(field_coverage: FieldCoverage, path: Path) -> Row:
    """The phase's own figures as an estimate."""
    layout = {name: field_coverage.whole(*path, "layout", name) for name in LAYOUT}
    return Row(
        reason="",
        precision=field_coverage.text(*path, "precision"),
        substituted=False,
        training_hours=_positive(field_coverage, (*path, "training_hours")),
        hours_with_goodput=_positive(field_coverage, (*path, "hours_with_goodput")),
        log_sigma=_positive(field_coverage, (*path, "log_sigma")),
        units_per_second=_positive(field_coverage, (*path, "throughput", "value")),
        mfu=field_coverage.number(*path, "mfu"),
        peak_gib=field_coverage.number(*path, "memory_gib_per_accelerator"),
        capacity_gib=field_coverage.number(*path, "capacity_gib_per_accelerator"),
        layout=(*layout.items(), ("checkpointing", field_coverage.text(*path, "layout", "checkpointing"))),
    )


def _positive(field_coverage: FieldCoverage, path: Path) -> float:
    value = field_coverage.number(*path)
    if not 0 < value < 1e30:
        raise field_coverage.unusable(path, f"{value:g} is not accepted; it is above 0 in a plan")
    return value


def repeats_the_estimator(field_coverage: FieldCoverage, path: Path, row: Row, unit: str, *, share: float) -> None:
    """Check every figure of the estimator; hours are those of a share of the work."""
    check, why = "estimates", "not the estimate of this release for this machine"
    if row.reason:
        field_coverage.is_true(check, (*path, "nodes"), False, None, f"the estimator says: {row.reason}")
    for name, attribute in _NUMBERS:
        part = share if name in _OF_THE_SHARE else 1.0
        field_coverage.is_number(check, (*path, name), None if row.reason else getattr(row, attribute) * part, why)
    field_coverage.is_number(check, (*path, "throughput", "value"), None if row.reason else row.units_per_second, why)
    field_coverage.is_same(check, (*path, "throughput", "unit"), f"{unit}/s", "not the unit of this work")
    field_coverage.is_same(check, (*path, "precision"), row.precision, why)
    for name, value in row.layout:
        field_coverage.is_same(check, (*path, "layout", name), value, why)


def agrees_with_the_work(
    field_coverage: FieldCoverage, path: Path, named: Named, work: Work, *, goodput: float | None, share: float
) -> None:
    """Check that throughput, hours, MFU and layout agree with each other, and that no accelerator exceeds its dense
    peak.
    """
    check, stated = "work", stated_row(field_coverage, path)
    units = max(1.0, work.units_total / work.units_per_step) * work.units_per_step
    hours = share * units / stated.units_per_second / 3600
    field_coverage.is_true(
        check,
        (*path, "training_hours"),
        closely(stated.training_hours, hours, ROUNDED),
        hours,
        "not the share of the work over the throughput",
    )
    instance_type, devices = named.offer_group.machine.type, named.nodes * named.offer_group.machine.type.devices
    wall_hours = stated.training_hours / (_goodput(devices) if goodput is None else goodput)
    field_coverage.is_true(
        check,
        (*path, "hours_with_goodput"),
        closely(stated.hours_with_goodput, wall_hours, ROUNDED),
        wall_hours,
        "not the training hours over the goodput",
    )
    peak = dense_peak(accelerators()[instance_type.accelerator], stated.precision)
    if peak is None:
        field_coverage.is_true(
            check, (*path, "precision"), False, None, f"{instance_type.accelerator} has no dense rate for it"
        )
    else:
        mfu = (
            flops_for_mfu(work)
            * stated.units_per_second
            / (devices * peak * min(1.0, float(instance_type.accelerator_count)))
        )
        field_coverage.is_true(
            check, (*path, "mfu"), closely(stated.mfu, mfu, ROUNDED), mfu, "not FLOPs x throughput over the dense peak"
        )
        if named.offer_group.machine.measured is None:
            full = stated.units_per_second * work.flops_per_unit / (devices * peak)
            field_coverage.is_true(
                check, (*path, "throughput", "value"), full <= 1, None, "faster than the dense peak allows"
            )
    layout = dict(stated.layout)
    ways = [field_coverage.whole(*path, "layout", name, least=1) for name in SPLITS]
    field_coverage.is_true(
        check,
        (*path, "layout", "data"),
        math.prod(ways) == devices,
        devices,
        f"data x tensor x pipeline x context is not the {devices} accelerators",
    )
    field_coverage.is_true(
        check,
        (*path, "layout", "checkpointing"),
        layout["checkpointing"] in ("none", "selective", "full"),
        None,
        "no such recomputation",
    )


def _goodput(devices: int) -> float:
    """The share of wall time that trains where no setting states it: how-it-decides gives formula and figures."""
    failures_per_hour = devices / 40_000
    return 0.97 / (1 + math.sqrt(2 * 0.005 * failures_per_hour) + 0.15 * failures_per_hour)


def dense_peak(chip: Accelerator, precision: str) -> float | None:
    """FLOP/s of one accelerator; None where the catalogue has no rate for the precision."""
    tflops: float | None = getattr(chip, f"{precision}_tflops", None)
    return tflops * 1e12 if tflops else None


def flops_for_mfu(work: Work) -> float:
    """FLOPs per unit that MFU counts: 6 N + attention for transformers that train whole, else those of the work."""
    shape = work.shape
    if shape is None or shape.cross_attention_layers or work.frozen_parameter_bytes > 0:
        return work.flops_per_unit
    attention = 12.0 * shape.layers * shape.attention_heads * shape.head_size * shape.sequence_length
    per_token = 6.0 * work.active_parameters + attention * (0.5 if shape.causal else 1.0)
    return per_token * (1.0 if work.units_per_sample > 1 else shape.sequence_length)


def fits(
    field_coverage: FieldCoverage, path: Path, machine: Machine, work: Work, training: Training, *, factor: float
) -> None:
    """Check memory: the peak leaves the margin free, the capacity is at most the device's, and the peak holds the
    states.

    `factor` is the correction of peaks learned from past runs.
    """
    check, stated = "memory", stated_row(field_coverage, path)
    instance_type = machine.type
    if training.parallelism == "data":
        whole = all(int(dict(stated.layout)[way]) == 1 for way in ("tensor", "pipeline", "context", "expert"))
        field_coverage.is_true(
            check, (*path, "layout"), whole, None, "splits the model, and training.parallelism is data"
        )
    share = min(1.0, float(instance_type.accelerator_count))
    device = (
        instance_type.accelerator_memory_mib or accelerators()[instance_type.accelerator].device_memory_mib * share
    ) / 1024
    capacity, peak = (*path, "capacity_gib_per_accelerator"), (*path, "memory_gib_per_accelerator")
    field_coverage.is_true(
        check, capacity, stated.capacity_gib <= device * (1 + ROUNDED), device, "more than the device has"
    )
    margin = MARGIN if work.fixed_state_gib is None else 0.0
    most = stated.capacity_gib * (1 - margin)
    field_coverage.is_true(
        check, peak, stated.peak_gib <= most * (1 + ROUNDED), most, f"does not leave {margin:.0%} of the capacity free"
    )
    least = least_states_gib(dict(stated.layout), stated.precision, work, training) * min(1.0, factor)
    field_coverage.is_true(
        check, peak, stated.peak_gib >= least * (1 - ROUNDED), least, "less than weights, gradients and optimizer need"
    )


def least_states_gib(layout: Mapping[str, int | str], precision: str, work: Work, training: Training) -> float:
    """Lower bound in GiB on the states per device under a layout (Rajbhandari 2020, sections 3 and 5).

    It leaves out what expert parallelism and uneven pipelines may add.
    """
    ways = {name: max(1, int(layout[name])) for name in (*SPLITS, "expert")}
    ranks, stage = ways["data"] * ways["context"], int(layout["zero_stage"])
    if work.fixed_state_gib is not None:
        shared = work.fixed_state_gib / (ways["data"] if stage >= 3 else 1)
        return max(shared, work.min_memory_gib_per_accelerator)
    element, moments = 4.0 if precision in ("fp32", "tf32") else 2.0, MOMENT_BYTES[training.optimizer]
    master = 0.0 if element > 2 else 4.0
    if training.states == "pure_bf16":
        master, moments = 0.0, moments if element > 2 else moments / 2
    on_device = training.offload == "none"
    parts = (
        (0.0 if training.offload == "parameters" else element, 3),
        (element if on_device else 0.0, 2),
        (master + moments if on_device else 0.0, 1),
    )
    per_parameter = sum(size / (ranks if stage >= least else 1) for size, least in parts)
    frozen = work.frozen_parameter_bytes / (ranks if stage >= 3 else 1)
    frozen = 0.0 if training.offload == "parameters" and stage >= 3 else frozen
    trained = max(0.0, work.trainable_parameters - work.table_parameters)
    return (trained * per_parameter + frozen) / (ways["tensor"] * ways["pipeline"] * ways["expert"]) / 1024**3
