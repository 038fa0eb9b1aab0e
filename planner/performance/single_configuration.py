"""Time and memory of a job on one configuration that the user names, without prices."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.mig_slices import MigSlice, find_card_or_slice
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.estimate import Assumed, Band, Estimate, EstimatedOn, EstimatedThroughput, Memory, Terms
from gpuplan.planner.model.job import Training, Workload
from gpuplan.planner.model.learned import NOTHING, LearnedCorrections
from gpuplan.planner.model.shared import Layout
from gpuplan.planner.performance import cluster_rates
from gpuplan.planner.performance.accelerator_constants import PRECISIONS, peak_tflops
from gpuplan.planner.performance.accelerator_memory import MARGIN
from gpuplan.planner.performance.configuration_on_request import On, check, request_of
from gpuplan.planner.performance.corrected_estimates import estimate_learned, reasons_learned
from gpuplan.planner.performance.estimate_doubts import Asked, assumed_of, doubts_of
from gpuplan.planner.performance.estimator_request import (
    REASONS,
    Estimates,
    Ints,
    LayoutRequest,
    Machines,
    one_configuration,
)
from gpuplan.planner.performance.layout_question import no_tensor_parallelism
from gpuplan.planner.performance.memory_headroom import largest_micro_batch, least_accelerators, loading_gib
from gpuplan.planner.performance.memory_remedies import eager_does_not_fit
from gpuplan.planner.performance.prediction_bands import Z80
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import settled, software_of

#: More memory than any accepted job needs, MiB: used to estimate a job that does not fit as if it did.
_ENOUGH_MIB = 1e18


def estimate_on(
    work: Work,
    training: Training,
    on: On,
    *,
    goodput: float | None,
    learned: LearnedCorrections = NOTHING,
    workload: Workload | None = None,
) -> Estimate:
    """The answer of `gpuplan estimate`; with the `workload` that `work` was counted from, it names its doubts.

    If no layout fits, `memory.fits` is false, memory is that of the layout that needs the least, and times are those of
    that layout as if it fitted. Raises `UnusableInput` at on.* or training.* if the configuration cannot run at all:
    unknown accelerator or precision, a layout that does not multiply to `gpus` or divide the model, more replicas than
    samples.
    """
    named = _named(on)
    request = request_of(on)
    check(work, on, request)
    machines = named.machines()
    ask = partial(estimate_learned, work, training, goodput=goodput, learned=learned)
    estimates = ask(machines, request=request)
    fits = int(estimates.reason[0]) != cluster_rates.DOES_NOT_FIT
    capacity = float(estimates.capacity_gib[0])
    if not fits:
        roomy = replace(machines, device_memory_mib=np.array([_ENOUGH_MIB]))
        estimates = ask(roomy, request=_as_request(estimates))
    _refuse_unless_runs(estimates, named.chip, on, work, training)
    asked = _asked(work, training, named, machines, learned=learned, workload=workload) if fits and workload else None
    reasons_of = partial(_reasons, work, training, learned)
    least = least_accelerators(reasons_of, named.of_count, named.per_node, request)
    memory = _memory(work, estimates, fits=fits, capacity_gib=capacity, least_accelerators=least)
    rate = float(estimates.units_per_second[0])
    precision = _precision(estimates)
    return Estimate(
        hours=float(estimates.hours[0]),
        hours_with_goodput=float(estimates.hours_with_goodput[0]),
        step_seconds=float(estimates.step_seconds[0]),
        throughput=EstimatedThroughput(value=rate, unit=f"{work.unit}/s", per_accelerator=rate / on.gpus),
        tflops_per_accelerator=float(estimates.tflops_per_accelerator[0]),
        mfu=float(estimates.mfu[0]),
        memory=memory,
        layout=cast(Layout, estimates.layout(0)),
        terms=cast(Terms, {name: float(values[0]) for name, values in estimates.terms.items()}),
        band=_band(estimates),
        precision=precision,
        warnings=(*_warnings(named.chip, estimates, work, memory), *(() if asked is None else _eager_warning(asked))),
        on=named.echo(machines),
        assumptions=(
            *work.assumptions,
            *learned.sentences(named.chip.name),
            *assumptions(settled(training, work.task, work.unit)),
            *(() if named.mig_slice is None else (named.mig_slice.sentence,)),
        ),
        doubts=() if asked is None else doubts_of(asked, estimates),
        assumed=assumed_of(work, training, precision, goodput, on.gpus),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The configuration that the user names, with the accelerator that its name stands for."""

    on: On
    chip: Accelerator
    mig_slice: MigSlice | None

    @property
    def per_node(self) -> int:
        """Accelerators in a full machine."""
        return self.on.gpus_per_node or max(1, self.chip.usual_per_node)

    def machines(self) -> Machines:
        """The configuration as one machine row."""
        per_node = self.on.gpus_per_node or _usual_per_node(self.chip, self.on.gpus)
        fabric = self.on.internode_gbps or self.chip.usual_internode_gbps
        nodes = self.on.gpus // per_node
        machines = one_configuration(self.chip, devices=per_node, nodes=nodes, internode_gbps=fabric)
        if self.mig_slice is None:
            return machines
        return replace(
            machines,
            fraction=np.array([float(self.mig_slice.share)]),
            device_memory_mib=np.array([float(self.mig_slice.memory_mib)]),
        )

    def of_count(self, count: int) -> Machines:
        """The machine row of `count` accelerators: part of one machine, or whole machines."""
        on = replace(self.on, gpus=count, gpus_per_node=min(count, self.per_node))
        return replace(self, on=on).machines()

    def echo(self, machines: Machines) -> EstimatedOn:
        """The complete configuration, with defaults marked as assumed."""
        on = self.on
        return EstimatedOn(
            accelerator=self.chip.name if self.mig_slice is None else self.mig_slice.name,
            gpus=on.gpus,
            gpus_per_node=Assumed(value=int(machines.devices[0]), assumed=on.gpus_per_node is None),
            nodes=int(machines.nodes[0]),
            internode_gbps=Assumed(value=float(machines.internode_gbps[0]), assumed=on.internode_gbps is None),
        )


def _named(on: On) -> _Named:
    """Raises `UnusableInput` at on.accelerator for an unknown name."""
    chip, mig_slice = find_card_or_slice(on.accelerator, path=("on", "accelerator"))
    return _Named(on=on, chip=chip, mig_slice=mig_slice)


def _asked(
    work: Work,
    training: Training,
    named: _Named,
    machines: Machines,
    *,
    learned: LearnedCorrections,
    workload: Workload,
) -> Asked:
    """The question to which the doubts of the answer belong."""
    return Asked(
        workload=workload,
        training=training,
        work=work,
        machines=machines,
        request=request_of(named.on),
        learned=learned,
        assumes_network=named.on.internode_gbps is None,
    )


def _reasons(
    work: Work, training: Training, learned: LearnedCorrections, machines: Machines, free: LayoutRequest
) -> Ints:
    return reasons_learned(work, training, machines, learned=learned, request=free)


def _precision(estimates: Estimates) -> str:
    return estimates.precisions[int(estimates.precision[0])]


def _refuse_unless_runs(estimates: Estimates, chip: Accelerator, on: On, work: Work, training: Training) -> None:
    """Raise `UnusableInput` if the configuration cannot run at all, or overlaps tensor traffic that it does not have."""
    if estimates.reason[0]:
        raise _refusal(REASONS[int(estimates.reason[0])], chip, on, work, training)
    if training.tensor_overlap != "auto" and int(estimates.tensor[0]) == 1:
        raise no_tensor_parallelism("the layout found here has tensor 1; state another in layout, or")


def _band(estimates: Estimates) -> Band:
    """The hours between which 80 % of runs of the configuration end."""
    hours, spread = float(estimates.hours[0]), math.exp(Z80 * float(estimates.log_sigma[0]))
    return Band(low_hours=hours / spread, high_hours=hours * spread)


def fits_on(work: Work, training: Training, on: On) -> bool:
    """Whether the job runs on the configuration at all; raises `UnusableInput` like `estimate_on`."""
    named, request = _named(on), request_of(on)
    check(work, on, request)
    estimates = estimate_learned(work, training, named.machines(), goodput=1.0, learned=NOTHING, request=request)
    return not estimates.reason[0]


def _memory(
    work: Work,
    estimates: Estimates,
    *,
    fits: bool,
    capacity_gib: float,
    least_accelerators: int | None,
) -> Memory:
    """The memory of the first row of `estimates`."""
    return Memory(
        fits=fits,
        peak_gib=float(estimates.peak_gib[0]),
        capacity_gib=capacity_gib,
        states_gib=float(estimates.states_gib[0]),
        activations_gib=float(estimates.activations_gib[0]),
        other_gib=float(estimates.other_gib[0]),
        largest_micro_batch=largest_micro_batch(work, estimates, capacity_gib),
        least_accelerators=least_accelerators,
        loading_gib=loading_gib(work, estimates, 4.0 if _precision(estimates) in {"fp32", "tf32"} else 2.0),
    )


def _loading_warning(work: Work, memory: Memory) -> list[str]:
    """A warning if unsharded pretrained weights do not fit in memory together with their shard."""
    loading = memory.loading_gib
    if loading is None or loading <= memory.capacity_gib or work.frozen_parameter_bytes <= 0:
        return []
    why = "a stack that builds the whole model on each device before it shards it"
    return [f"{why} needs {loading:.1f} GiB to load; use one that loads it sharded"]


def _eager_warning(asked: Asked) -> list[str]:
    """A warning if the job fits with the software that is assumed, but not with Hugging Face's."""
    if asked.work.shape is None:
        return []
    return eager_does_not_fit(asked.workload, asked.training, lambda _, training: asked.can_train(training))


def _usual_per_node(chip: Accelerator, gpus: int) -> int:
    """Accelerators in its usual machine, or the largest smaller number that divides `gpus`."""
    return next(count for count in range(min(max(1, chip.usual_per_node), gpus), 0, -1) if gpus % count == 0)


def _as_request(estimates: Estimates) -> LayoutRequest:
    """The layout of the first row as a request."""
    layout = estimates.layout(0)
    return LayoutRequest(**layout)  # type: ignore[arg-type]


def _refusal(reason: str, chip: Accelerator, on: On, work: Work, training: Training) -> UnusableInput:
    """Why the configuration cannot run at all, at the field to change."""
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
        "nodes do not cluster": (("on", "gpus"), f"{chip.name} machines have no known fabric; give internode_gbps"),
        "devices do not talk to each other": (("on", "gpus"), f"{on.accelerator} devices work alone; give 1"),
        "more accelerators than the batch has samples": (
            ("on", "gpus"),
            f"a step has {work.samples_per_step:g} samples, fewer than such a layout has replicas: use fewer or batch more",
        ),
        "no layout divides the model": (("on", "layout"), "does not divide the model and the accelerators"),
    }
    path, message = refusals[reason]
    return UnusableInput.at(*path, message=message)


def _warnings(chip: Accelerator, estimates: Estimates, work: Work, memory: Memory) -> list[str]:
    """What the user must know of the configuration."""
    too_much = "does not fit in memory: times are those of the layout that needs least, as if it fitted"
    warnings = [] if memory.fits else [too_much]
    if chip.trains == "limited":
        warnings.append(f"{chip.name}: {chip.trains_reason}")
    if estimates.substituted[0]:
        warnings.append(f"precision {_precision(estimates)} in place of bf16, which {chip.name} lacks")
    return [*warnings, *(_loading_warning(work, memory) if memory.fits else [])]


def assumptions(training: Training) -> list[str]:
    """Assumptions of every estimate, as sentences for the user."""
    return [
        f"software class {software_of(training)}",
        "data loading keeps up with the accelerators where the data term is 0",
        f"a predicted peak fits where it leaves {100 * MARGIN:g} % of the memory free",
        "the global batch is rounded by at most 5 % to whole samples per replica",
    ]
