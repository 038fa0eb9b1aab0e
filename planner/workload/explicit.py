"""Work that the user has counted: only totals are known, so the estimate rests on them alone."""

import math

from catalog.errors import Fault, UnusableInput
from planner.job import Explicit
from planner.workload.work import Work

#: No job is larger: the largest published training runs are near 5e26 FLOPs (Epoch AI, Notable AI Models, 2025).
MOST_FLOPS = 1e32
#: No job holds more: 1e9 GiB is the memory of ten million of the largest accelerators.
MOST_GIB = 1e9
#: Steps of a job that gives none: they only say how often gradients are exchanged and kernels launched.
NOMINAL_STEPS = 1000.0
#: More than any job moves: 1e32 FLOPs at one byte each.
_MOST_BYTES = 1e32
_MOST_PARAMETERS = 1e18


def explicit_work(counted: Explicit) -> Work:
    """Work in units of optimizer steps; raises `UnusableInput` at ("workload", field) for absurd totals."""
    faults = [*_faults(counted)]
    if faults:
        raise UnusableInput(*faults)
    steps = counted.steps if counted.steps is not None else NOMINAL_STEPS
    parameters = counted.parameters or 0.0
    return Work(
        task="explicit",
        name="explicit",
        unit="steps",
        units_total=steps,
        units_per_step=1.0,
        units_per_sample=1.0,
        parameters=parameters,
        active_parameters=parameters,
        trainable_parameters=parameters,
        embedding_parameters=0.0,
        linear_flops_per_unit=counted.total_flops / steps,
        attention_flops_per_unit=0.0,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=(counted.bytes_moved or 0.0) / steps,
        activation_bytes_per_sample=(0.0, 0.0, 0.0),
        logits_bytes_per_sample=0.0,
        fixed_state_gib=counted.memory_gib,
        min_memory_gib_per_accelerator=counted.min_memory_gib_per_accelerator,
        assumptions=tuple(_said(counted)),
    )


def _faults(counted: Explicit) -> list[Fault]:
    checks: list[tuple[str, float | None, float, float, str]] = [
        ("total_flops", counted.total_flops, 1.0, MOST_FLOPS, "FLOPs (the largest published runs are near 5e26)"),
        ("memory_gib", counted.memory_gib, 1e-6, MOST_GIB, "GiB"),
        ("min_memory_gib_per_accelerator", counted.min_memory_gib_per_accelerator, 0.0, MOST_GIB, "GiB"),
        ("bytes_moved", counted.bytes_moved, 1.0, _MOST_BYTES, "bytes"),
        ("parameters", counted.parameters, 1.0, _MOST_PARAMETERS, "parameters"),
        ("steps", counted.steps, 1.0, 1e12, "steps"),
    ]
    return [
        Fault(("workload", name), f"{value:g} is outside {least:g} to {most:g} {what}")
        for name, value, least, most, what in checks
        if value is not None and not (math.isfinite(value) and least <= value <= most)
    ]


def _said(counted: Explicit) -> list[str]:
    said = []
    if counted.steps is None:
        said.append(f"steps not given: {NOMINAL_STEPS:,.0f} optimizer steps assumed")
    if counted.bytes_moved is None:
        said.append("bytes_moved not given: memory bandwidth is not counted, time rests on FLOPs alone")
    if counted.parameters is None:
        said.append("parameters not given: exchange of gradients between accelerators is not counted")
    return said
