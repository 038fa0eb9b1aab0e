"""The figures of one phase held against each other, the work, and the estimator: rates, hours, memory, layout."""

import math
from typing import Any

from catalog.accelerators import Accelerator, accelerators
from planner.job import Training
from planner.verify.estimates import Row, Work
from planner.verify.ledger import Ledger, Path, closely
from planner.verify.named import Named
from planner.verify.place import MOMENT_BYTES
from planner.verify.shelves import Machine

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
#: Two figures that are each rounded to nine digits, and a quotient of them.
ROUNDED = 5e-8


def stated_row(ledger: Ledger, path: Path) -> Row:
    """The phase's own figures in place of the estimator's."""
    layout = {name: ledger.whole(*path, "layout", name) for name in LAYOUT}
    return Row(
        reason="",
        precision=ledger.text(*path, "precision"),
        substituted=False,
        training_hours=_positive(ledger, (*path, "training_hours")),
        hours_with_goodput=_positive(ledger, (*path, "hours_with_goodput")),
        log_sigma=_positive(ledger, (*path, "log_sigma")),
        units_per_second=_positive(ledger, (*path, "throughput", "value")),
        mfu=ledger.number(*path, "mfu"),
        peak_gib=ledger.number(*path, "memory_gib_per_accelerator"),
        capacity_gib=ledger.number(*path, "capacity_gib_per_accelerator"),
        layout=(*layout.items(), ("checkpointing", ledger.text(*path, "layout", "checkpointing"))),
    )


def _positive(ledger: Ledger, path: Path) -> float:
    value = ledger.number(*path)
    if not 0 < value < 1e30:
        raise ledger.unusable(path, f"{value:g} is not accepted; it is above 0 in a plan")
    return value


def repeats_the_estimator(ledger: Ledger, path: Path, row: Row, unit: str, *, share: float) -> None:
    """Tick off every figure that is the estimator's own; hours are those of a share of the work."""
    check, why = "estimates", "not what the estimator of this release says of this machine"
    if row.reason:
        ledger.holds(check, (*path, "nodes"), False, None, f"the estimator says: {row.reason}")
    for name, attribute in _NUMBERS:
        part = share if name in _OF_THE_SHARE else 1.0
        ledger.is_number(check, (*path, name), None if row.reason else getattr(row, attribute) * part, why)
    ledger.is_number(check, (*path, "throughput", "value"), None if row.reason else row.units_per_second, why)
    ledger.is_same(check, (*path, "throughput", "unit"), f"{unit}/s", "not the unit of this work")
    ledger.is_same(check, (*path, "precision"), row.precision, why)
    for name, value in row.layout:
        ledger.is_same(check, (*path, "layout", name), value, why)


def agrees_with_the_work(ledger: Ledger, path: Path, named: Named, work: Work, *, goodput: float, share: float) -> None:
    """Throughput, hours, use of the peak and layout follow from each other; no accelerator beats its dense peak."""
    check, stated = "work", stated_row(ledger, path)
    units = max(1.0, work.units_total / work.units_per_step) * work.units_per_step
    hours = share * units / stated.units_per_second / 3600
    ledger.holds(
        check,
        (*path, "training_hours"),
        closely(stated.training_hours, hours, ROUNDED),
        hours,
        "not the share of the work over the throughput",
    )
    ledger.holds(
        check,
        (*path, "hours_with_goodput"),
        closely(stated.hours_with_goodput, stated.training_hours / goodput, ROUNDED),
        stated.training_hours / goodput,
        "not the training hours over the goodput",
    )
    each, devices = named.lot.machine.type, named.nodes * named.lot.machine.type.devices
    peak = dense_peak(accelerators()[each.accelerator], stated.precision)
    if peak is None:
        ledger.holds(check, (*path, "precision"), False, None, f"{each.accelerator} has no dense rate for it")
    else:
        mfu = counted_flops(work) * stated.units_per_second / (devices * peak * min(1.0, float(each.accelerator_count)))
        ledger.holds(
            check, (*path, "mfu"), closely(stated.mfu, mfu, ROUNDED), mfu, "not FLOPs x throughput over the dense peak"
        )
        if named.lot.machine.measured is None:
            full = stated.units_per_second * work.flops_per_unit / (devices * peak)
            ledger.holds(check, (*path, "throughput", "value"), full <= 1, None, "faster than the dense peak allows")
    layout = dict(stated.layout)
    ways = [ledger.whole(*path, "layout", name, least=1) for name in SPLITS]
    ledger.holds(
        check,
        (*path, "layout", "data"),
        math.prod(ways) == devices,
        devices,
        f"data x tensor x pipeline x context is not the {devices} accelerators",
    )
    ledger.holds(
        check,
        (*path, "layout", "checkpointing"),
        layout["checkpointing"] in ("none", "selective", "full"),
        None,
        "no such recomputation",
    )


def dense_peak(chip: Accelerator, precision: str) -> float | None:
    """FLOP/s of one accelerator; None where the catalogue has none."""
    tflops: float | None = getattr(chip, f"{precision}_tflops", None)
    return tflops * 1e12 if tflops else None


def counted_flops(work: Work) -> float:
    """FLOPs per unit that the use of the peak counts: 6 N + attention for transformers, else what the work counts."""
    shape = work.shape
    if shape is None or shape.cross_attention_layers:
        return work.flops_per_unit
    attention = 12.0 * shape.layers * shape.attention_heads * shape.head_size * shape.sequence_length
    per_token = 6.0 * work.active_parameters + attention * (0.5 if shape.causal else 1.0)
    return per_token * (1.0 if work.units_per_sample > 1 else shape.sequence_length)


def fits(ledger: Ledger, path: Path, machine: Machine, work: Work, training: Training, *, factor: float) -> None:
    """The peak leaves the margin free, the capacity is no more than the device has, and the states are in the peak.

    `factor` is what past runs have taught of peaks.
    """
    check, stated = "memory", stated_row(ledger, path)
    each = machine.type
    share = min(1.0, float(each.accelerator_count))
    device = (each.accelerator_memory_mib or accelerators()[each.accelerator].device_memory_mib * share) / 1024
    capacity, peak = (*path, "capacity_gib_per_accelerator"), (*path, "memory_gib_per_accelerator")
    ledger.holds(check, capacity, stated.capacity_gib <= device * (1 + ROUNDED), device, "more than the device has")
    margin = MARGIN if work.fixed_state_gib is None else 0.0
    most = stated.capacity_gib * (1 - margin)
    ledger.holds(
        check, peak, stated.peak_gib <= most * (1 + ROUNDED), most, f"does not leave {margin:.0%} of the capacity free"
    )
    least = least_states_gib(dict(stated.layout), stated.precision, work, training) * min(1.0, factor)
    ledger.holds(
        check, peak, stated.peak_gib >= least * (1 - ROUNDED), least, "less than weights, gradients and optimizer take"
    )


def least_states_gib(layout: dict[str, Any], precision: str, work: Work, training: Training) -> float:
    """GiB of states that a layout leaves on each device, at the very least (Rajbhandari 2020, section 3 and 5).

    Whatever expert parallelism or uneven pipelines could add is left out, so no layout holds less.
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
    kept = training.offload == "none"
    parts = (
        (0.0 if training.offload == "parameters" else element, 3),
        (element if kept else 0.0, 2),
        (master + moments if kept else 0.0, 1),
    )
    per_parameter = sum(size / (ranks if stage >= least else 1) for size, least in parts)
    frozen = work.frozen_parameter_bytes / (ranks if stage >= 3 else 1)
    frozen = 0.0 if training.offload == "parameters" and stage >= 3 else frozen
    trained = max(0.0, work.trainable_parameters - work.table_parameters)
    return (trained * per_parameter + frozen) / (ways["tensor"] * ways["pipeline"] * ways["expert"]) / 1024**3
