"""Work stated by the user as totals only (explicit workloads)."""

import math

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Explicit
from gpuplan.planner.workload.step_work import Work

#: Most FLOPs of a job: the largest published training runs are near 5e26 FLOPs (Epoch AI, Notable AI Models, 2025).
MOST_FLOPS = 1e32
#: Most memory of a job: 1e9 GiB is the memory of ten million of the largest accelerators.
MOST_GIB = 1e9
#: Steps of a job that states none; they only set how often gradients are exchanged and kernels launched.
NOMINAL_STEPS = 1000.0
#: Most bytes that a job moves: 1e32 FLOPs at one byte each.
_MOST_BYTES = 1e32
_MOST_PARAMETERS = 1e18


def explicit_work(explicit: Explicit) -> Work:
    """Work in units of optimizer steps; raises `UnusableInput` at ("workload", field) for totals out of range."""
    faults = [*_faults(explicit)]
    if faults:
        raise UnusableInput(*faults)
    steps = explicit.steps if explicit.steps is not None else NOMINAL_STEPS
    parameters = explicit.parameters or 0.0
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
        linear_flops_per_unit=explicit.total_flops / steps,
        attention_flops_per_unit=0.0,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=(explicit.bytes_moved or 0.0) / steps,
        activation_bytes_per_sample=(0.0, 0.0, 0.0),
        logits_bytes_per_sample=0.0,
        fixed_state_gib=explicit.memory_gib,
        min_memory_gib_per_accelerator=explicit.min_memory_gib_per_accelerator,
        assumptions=tuple(_assumptions(explicit)),
    )


def _faults(explicit: Explicit) -> list[Fault]:
    checks: list[tuple[str, float | None, float, float, str]] = [
        ("total_flops", explicit.total_flops, 1.0, MOST_FLOPS, "FLOPs (the largest published runs are near 5e26)"),
        ("memory_gib", explicit.memory_gib, 1e-6, MOST_GIB, "GiB"),
        ("min_memory_gib_per_accelerator", explicit.min_memory_gib_per_accelerator, 0.0, MOST_GIB, "GiB"),
        ("bytes_moved", explicit.bytes_moved, 1.0, _MOST_BYTES, "bytes"),
        ("parameters", explicit.parameters, 1.0, _MOST_PARAMETERS, "parameters"),
        ("steps", explicit.steps, 1.0, 1e12, "steps"),
    ]
    return [
        Fault(("workload", name), f"{value:g} is outside {least:g} to {most:g} {what}")
        for name, value, least, most, what in checks
        if value is not None and not (math.isfinite(value) and least <= value <= most)
    ]


def _assumptions(explicit: Explicit) -> list[str]:
    sentences = []
    if explicit.steps is None:
        sentences.append(f"steps not given: {NOMINAL_STEPS:,.0f} optimizer steps assumed")
    if explicit.bytes_moved is None:
        sentences.append("bytes_moved not given: memory bandwidth is not counted, time rests on FLOPs alone")
    if explicit.parameters is None:
        sentences.append("parameters not given: exchange of gradients between accelerators is not counted")
    return sentences
