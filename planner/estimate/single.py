"""Time and memory on one configuration that the user names, with no prices involved."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from catalog.accelerators import Accelerator, find_accelerator
from catalog.errors import Fault, UnusableInput
from planner.estimate import clusters
from planner.estimate.bands import Z80
from planner.estimate.chips import PRECISIONS, peak_tflops
from planner.estimate.corrected import estimate_learned
from planner.estimate.learned import NOTHING, Learned
from planner.estimate.machines import CHECKPOINTING, REASONS, Estimates, LayoutRequest, Machines
from planner.estimate.memory import MARGIN
from planner.estimate.sizing import largest_micro_batch, least_accelerators, loading_gib
from planner.job import Training
from planner.workload.work import Work

#: More devices than any machine of today; past it a count is a slip.
MOST_GPUS = 1_000_000
#: Memory that holds any job the doors let in, MiB: what a job needs is worked out as if it fitted.
_ENOUGH_MIB = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class On:
    """One configuration. None is for the estimator: the accelerator's usual machine, fabric and the best layout."""

    accelerator: str
    gpus: int
    gpus_per_node: int | None = None
    internode_gbps: float | None = None
    micro_batch: int | None = None
    layout: LayoutRequest = field(default_factory=LayoutRequest)


def estimate_on(
    work: Work, training: Training, on: On, *, goodput: float, learned: Learned = NOTHING
) -> dict[str, Any]:
    """The answer of `gpuplan estimate`, ready for JSON.

    Where nothing fits, `memory.fits` is false, memory is that of the layout that needs least, and the
    times are those of that layout as if it fitted. Raises `UnusableInput` at on.* or training.* for what
    cannot be run at all: unknown accelerator or precision, a layout that does not multiply to `gpus` or divide
    the model, more replicas than samples.
    """
    chip = find_accelerator(on.accelerator, path=("on", "accelerator"))
    request = _request(on)
    _check(work, on, request)
    machines = _machines(chip, on)
    found = estimate_learned(work, training, machines, goodput=goodput, learned=learned, request=request)
    fits = int(found.reason[0]) != clusters.DOES_NOT_FIT
    if not fits:
        roomy = replace(machines, device_memory_mib=np.array([_ENOUGH_MIB]))
        found = estimate_learned(work, training, roomy, goodput=goodput, learned=learned, request=_as_found(found))
    if found.reason[0]:
        raise _refusal(REASONS[int(found.reason[0])], chip, work, training)
    at = clusters.clusters_of(machines, training)
    capacity = float(at.capacity_bytes[0] / clusters.GIB)
    answer = _answer(work, on, chip, found, fits=fits, capacity_gib=capacity)
    loading = loading_gib(work, found, float(at.element_bytes[0]))
    answer["warnings"] += _loading_warning(work, loading, capacity) if fits else []

    def ask(rows: Machines, free: LayoutRequest) -> Estimates:
        return estimate_learned(work, training, rows, goodput=goodput, learned=learned, request=free)

    answer["memory"] |= {
        "largest_micro_batch": largest_micro_batch(work, found, capacity),
        "least_accelerators": least_accelerators(ask, partial(_of_count, chip, on), _per_node(chip, on), request),
        "loading_gib": loading,
    }
    said = [*work.assumptions, *learned.sentences(chip.name), *assumptions(training)]
    return answer | {"on": _echo(on, chip, machines), "assumptions": said}


def _loading_warning(work: Work, loading: float | None, capacity: float) -> list[str]:
    """What to say where pretrained weights do not fit whole beside their shard."""
    if loading is None or loading <= capacity or work.frozen_parameter_bytes <= 0:
        return []
    why = "a stack that builds the whole model on each device before it shards it"
    return [f"{why} needs {loading:.1f} GiB to load; use one that loads it sharded"]


def _request(on: On) -> LayoutRequest:
    """The layout asked for; the micro-batch may stand beside it."""
    inside = on.layout.micro_batch
    if on.micro_batch and inside and on.micro_batch != inside:
        raise UnusableInput.at(
            "on", "micro_batch", message=f"{on.micro_batch} contradicts layout.micro_batch {inside}; give one of them"
        )
    return replace(on.layout, micro_batch=on.micro_batch or inside)


def _check(work: Work, on: On, request: LayoutRequest) -> None:
    """Raise one `UnusableInput` with every fault of the counts and the layout."""
    faults = [*_count_faults(on), *_split_faults(on, request), *_model_faults(work, request)]
    if request.micro_batch and request.micro_batch > work.samples_per_step:
        most = f"more than the {work.samples_per_step:g} samples of a step"
        faults.append(Fault(("on", "micro_batch"), f"{request.micro_batch} is {most}; give fewer or batch more"))
    if faults:
        raise UnusableInput(*faults)


def _count_faults(on: On) -> list[Fault]:
    faults = []
    if not 1 <= on.gpus <= MOST_GPUS:
        faults.append(Fault(("on", "gpus"), f"{on.gpus} is not a number of accelerators from 1 to {MOST_GPUS:,}"))
    elif on.gpus_per_node is not None and (on.gpus_per_node < 1 or on.gpus % on.gpus_per_node):
        faults.append(Fault(("on", "gpus_per_node"), f"{on.gpus_per_node} does not divide the {on.gpus} accelerators"))
    if on.internode_gbps is not None and not (math.isfinite(on.internode_gbps) and on.internode_gbps > 0):
        faults.append(Fault(("on", "internode_gbps"), "not a positive number of Gbit/s per node"))
    return faults


def _split_faults(on: On, request: LayoutRequest) -> list[Fault]:
    """Faults of the request in itself: data x tensor x pipeline x context is the number of accelerators."""
    ways = {name: getattr(request, name) for name in ("data", "tensor", "pipeline", "context")}
    counts = ways | {name: getattr(request, name) for name in ("expert", "interleave", "micro_batch")}
    faults = [
        Fault(("on", "layout", name), f"{value} is not a whole number of at least 1")
        for name, value in counts.items()
        if value is not None and value < 1
    ]
    product = math.prod(value for value in ways.values() if value)
    complete = all(value is not None for value in ways.values())
    if not faults and on.gpus >= 1 and (product != on.gpus if complete else on.gpus % product):
        text = " x ".join(f"{name} {value}" for name, value in ways.items() if value)
        want = "is" if complete else "must divide"
        faults.append(
            Fault(("on", "layout", "data"), f"{text} = {product}; data x tensor x pipeline x context {want} {on.gpus}")
        )
    if request.zero_stage is not None and request.zero_stage not in range(4):
        faults.append(Fault(("on", "layout", "zero_stage"), f"{request.zero_stage} is not one of 0, 1, 2, 3"))
    if request.checkpointing is not None and request.checkpointing not in CHECKPOINTING:
        accepted = ", ".join(CHECKPOINTING)
        faults.append(Fault(("on", "layout", "checkpointing"), f"{request.checkpointing!r} is not one of {accepted}"))
    return faults


def _model_faults(work: Work, request: LayoutRequest) -> list[Fault]:
    """Faults of the request against the model: heads, blocks and experts that do not divide."""
    shape = work.shape
    heads, layers, experts = (shape.attention_heads, shape.layers, max(1, shape.experts)) if shape else (1, 1, 1)
    stages = (request.pipeline or 1) * (request.interleave or 1)
    checks = (
        ("tensor", request.tensor and heads % request.tensor, f"must divide the {heads} attention heads"),
        (
            "pipeline",
            request.pipeline and request.pipeline > layers,
            f"must be at most the {layers} blocks of the model",
        ),
        ("interleave", request.interleave and stages > layers, f"x pipeline must be at most the {layers} blocks"),
        ("expert", request.expert and experts % request.expert, f"must divide the {experts} experts"),
        (
            "context",
            request.context and not shape and request.context > 1,
            "must be 1: the model has no sequence to split",
        ),
    )
    return [Fault(("on", "layout", name), f"{getattr(request, name)} {why}") for name, wrong, why in checks if wrong]


def _machines(chip: Accelerator, on: On) -> Machines:
    """The configuration as one machine row."""
    per_node = on.gpus_per_node or _usual_per_node(chip, on.gpus)
    return Machines(
        accelerators=(chip,),
        accelerator=np.zeros(1, dtype=np.int64),
        devices=np.array([per_node], dtype=np.int64),
        fraction=np.ones(1),
        device_memory_mib=np.array([float(chip.device_memory_mib)]),
        intranode_gbs=np.full(1, np.nan),
        scaleup_domain=np.array([max(per_node, chip.link_domain)], dtype=np.int64),
        internode_gbps=np.array([on.internode_gbps or chip.usual_internode_gbps]),
        clusters=np.ones(1, dtype=bool),
        nodes=np.array([on.gpus // per_node], dtype=np.int64),
    )


def _per_node(chip: Accelerator, on: On) -> int:
    """Accelerators in a full machine."""
    return on.gpus_per_node or max(1, chip.usual_per_node)


def _of_count(chip: Accelerator, on: On, count: int) -> Machines:
    """The machine row of `count` accelerators: part of one machine, or whole ones."""
    return _machines(chip, replace(on, gpus=count, gpus_per_node=min(count, _per_node(chip, on))))


def _usual_per_node(chip: Accelerator, gpus: int) -> int:
    """The usual machine of that accelerator, or the largest smaller one that makes up `gpus`."""
    return next(count for count in range(min(max(1, chip.usual_per_node), gpus), 0, -1) if gpus % count == 0)


def _as_found(found: Estimates) -> LayoutRequest:
    """The layout of the first row as a request."""
    layout = found.layout(0)
    return LayoutRequest(**layout)  # type: ignore[arg-type]


def _refusal(reason: str, chip: Accelerator, work: Work, training: Training) -> UnusableInput:
    """Why the configuration cannot run at all, at the field that would have to change."""
    known = [name for name in PRECISIONS if peak_tflops(chip, name)]
    refusals = {
        "does not train": (("on", "accelerator"), f"{chip.name} does not train: {chip.trains_reason}"),
        "precision not supported": (
            ("training", "precision"),
            f"{chip.name} has no {training.precision}; it has {', '.join(known) or 'no known rate'}",
        ),
        "no kernels for quantised weights or 8-bit optimizer states": (
            ("on", "accelerator"),
            f"{chip.name} ({chip.stack}) has no kernels for qlora or 8-bit optimizers; choose one on CUDA or ROCm",
        ),
        "nodes do not cluster": (("on", "gpus"), f"{chip.name} machines have no known fabric; give on.internode_gbps"),
        "devices do not talk to each other": (("on", "gpus"), f"{chip.name} devices work alone; give 1"),
        "more accelerators than the batch has samples": (
            ("on", "gpus"),
            f"a step has {work.samples_per_step:g} samples, fewer than such a layout has replicas: use fewer or batch more",
        ),
        "no layout divides the model": (("on", "layout"), "does not divide the model and the accelerators"),
    }
    path, message = refusals[reason]
    return UnusableInput.at(*path, message=message)


def _answer(
    work: Work, on: On, chip: Accelerator, found: Estimates, *, fits: bool, capacity_gib: float
) -> dict[str, Any]:
    """The object of INTERFACES, of the first row of `found`."""
    hours, spread = float(found.hours[0]), math.exp(Z80 * float(found.log_sigma[0]))
    rate = float(found.units_per_second[0])
    warnings = (
        [] if fits else ["does not fit in memory: times are those of the layout that needs least, as if it fitted"]
    )
    if chip.trains == "limited":
        warnings.append(f"{chip.name}: {chip.trains_reason}")
    precision = found.precisions[int(found.precision[0])]
    if found.substituted[0]:
        warnings.append(f"precision {precision} in place of bf16, which {chip.name} lacks")
    return {
        "hours": hours,
        "hours_with_goodput": float(found.hours_with_goodput[0]),
        "step_seconds": float(found.step_seconds[0]),
        "throughput": {"value": rate, "unit": f"{work.unit}/s", "per_accelerator": rate / on.gpus},
        "tflops_per_accelerator": float(found.tflops_per_accelerator[0]),
        "mfu": float(found.mfu[0]),
        "memory": {
            "fits": fits,
            "peak_gib": float(found.peak_gib[0]),
            "capacity_gib": capacity_gib,
            "states_gib": float(found.states_gib[0]),
            "activations_gib": float(found.activations_gib[0]),
            "other_gib": float(found.other_gib[0]),
        },
        "layout": found.layout(0),
        "terms": {name: float(values[0]) for name, values in found.terms.items()},
        "band": {"low_hours": hours / spread, "high_hours": hours * spread},
        "precision": precision,
        "warnings": warnings,
    }


def _echo(on: On, chip: Accelerator, machines: Machines) -> dict[str, Any]:
    """The configuration in full; what was not given is marked as assumed."""
    per_node, fabric = int(machines.devices[0]), float(machines.internode_gbps[0])
    return {
        "accelerator": chip.name,
        "gpus": on.gpus,
        "gpus_per_node": {"value": per_node, "assumed": on.gpus_per_node is None},
        "nodes": int(machines.nodes[0]),
        "internode_gbps": {"value": fabric, "assumed": on.internode_gbps is None},
    }


def assumptions(training: Training) -> list[str]:
    """What every estimate takes for granted, as sentences for the user."""
    return [
        f"software class {training.software}",
        "data loading keeps up with the accelerators (the data term is 0)",
        f"a predicted peak fits where it leaves {100 * MARGIN:g} % of the memory free",
        "the global batch is rounded by at most 5 % to whole samples per replica",
    ]
