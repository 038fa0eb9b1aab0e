"""Evaluate all measured runs at once: their fastest layouts, determined once, timed under varying constants.

Runs of like structure (class of work, precision, method) are stacked into one input of many rows, so that the estimator's
own formulas run on arrays: a pass over two thousand runs takes some hundredths of a second.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.model.job import Training
from gpuplan.planner.performance import accelerator_constants
from gpuplan.planner.performance.estimator_request import Floats, Machines
from gpuplan.planner.performance.layout_candidates import layout_candidates_of
from gpuplan.planner.performance.layout_columns import Gathered, gather
from gpuplan.planner.performance.layout_question import question_of, rates_of
from gpuplan.planner.performance.memory_options import candidates_of
from gpuplan.planner.performance.rowwise_minimum import first_least
from gpuplan.planner.performance.step_time import seconds
from gpuplan.planner.workload.step_work import TransformerShape, Work
from tools.fitting.measured_runs import Run, requests_of

_CHIPS = tuple(accelerators().values())
_INDEX = {chip.name: index for index, chip in enumerate(_CHIPS)}
_RATES = ("linear_rate", "wide_rate", "attention_rate", "memory_rate", "peer_rate", "fabric_rate", "host_rate")


class Column(np.ndarray[Any, np.dtype[np.float64]]):
    """One field of many works. The formulas ask of a work whether a field is set; stacked works agree in that."""

    def __bool__(self) -> bool:
        return bool(np.asarray(self).any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Runs of like structure: `at` their layouts, `where` their places in the sample."""

    where: NDArray[np.int64]
    work: Work
    training: Training
    machines: Machines
    at: Gathered


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Runs that the estimator can time, and the stacks of them."""

    runs: tuple[Run, ...]
    stacks: tuple[Stack, ...]
    measured: Floats


def sample_of(runs: Iterable[Run]) -> Sample:
    """The runs for which there is a layout, each at its fastest under the present constants."""
    timed_runs: list[Run] = []
    layouts: list[Gathered] = []
    for run in runs:
        layout = _layout(run)
        if layout is not None:
            timed_runs.append(run)
            layouts.append(layout)
    like: dict[Hashable, list[int]] = defaultdict(list)
    for index, run in enumerate(timed_runs):
        like[_structure(run)].append(index)
    stacks = tuple(
        _stack([timed_runs[i] for i in where], [layouts[i] for i in where], where) for where in like.values()
    )
    return Sample(runs=tuple(timed_runs), stacks=stacks, measured=np.log([run.per_accelerator for run in timed_runs]))


def residuals(sample: Sample) -> Floats:
    """ln(predicted rate / measured rate) of every run; of those in unknown units it has an unknown offset."""
    accelerator_constants.forget()
    predicted = np.empty(len(sample.runs))
    for stack in sample.stacks:
        clusters = rates_of(stack.work, stack.training, stack.machines)
        at = replace(stack.at, **{name: getattr(clusters, name) for name in _RATES})
        step = np.sum(list(seconds(stack.work, stack.training, at).values()), axis=0)
        predicted[stack.where] = np.asarray(stack.work.units_per_step) / step / stack.at.gpus
    return np.log(predicted) - sample.measured


def _layout(run: Run) -> Gathered | None:
    """Columns of the fastest candidate of the first request that can be met."""
    for machines, request in requests_of(run):
        question = question_of(run.work, run.training, machines, request)
        if question.clusters.reason[0]:
            continue
        layout_candidates = layout_candidates_of(question, machines)
        chosen = candidates_of(question, layout_candidates)
        if len(chosen.split):
            row = layout_candidates.splits.row[chosen.split]
            at = gather(question, layout_candidates, chosen, row)
            total = np.sum(list(seconds(run.work, run.training, at).values()), axis=0)
            winner, _ = first_least(total, row)
            return Gathered(**{field.name: getattr(at, field.name)[winner] for field in fields(at)})
    return None


def _structure(run: Run) -> Hashable:
    work, shape = run.work, run.work.shape
    return (
        work.task,
        work.units_per_sample > 1,
        work.head_flops_per_unit > 0,
        work.sequential_steps > 1,
        work.kernels > 0,
        work.exchanged_bytes_per_unit > 0,
        work.selective_recomputed_share > 0,
        work.offloaded_bytes_per_sample > 0,
        shape is not None
        and (
            shape.causal,
            shape.gated_mlp,
            shape.experts > 0,
            shape.cross_attention_layers > 0,
            shape.routed_size > 0,
        ),
        run.training,
    )


def _stack(runs: list[Run], layouts: list[Gathered], where: list[int]) -> Stack:
    first = runs[0].work
    numbers = {
        name: _column([getattr(run.work, name) for run in runs])
        for name in (field.name for field in fields(Work))
        if isinstance(getattr(first, name), int | float)
    }
    work = replace(first, **cast(dict[str, Any], numbers))
    if first.shape is not None:
        shapes = [cast(TransformerShape, run.work.shape) for run in runs]
        names = [f.name for f in fields(TransformerShape) if not isinstance(getattr(first.shape, f.name), bool)]
        sizes = {name: _column([getattr(shape, name) for shape in shapes]) for name in names}
        work = replace(work, shape=replace(first.shape, **cast(dict[str, Any], sizes)))
    at = {f.name: np.concatenate([getattr(layout, f.name) for layout in layouts]) for f in fields(Gathered)}
    return Stack(
        where=np.array(where),
        work=work,
        training=runs[0].training,
        machines=_machines([run.machines for run in runs]),
        at=Gathered(**at),
    )


def _column(values: list[float]) -> Column:
    return np.array(values, dtype=np.float64).view(Column)


def _machines(parts: list[Machines]) -> Machines:
    names = [f.name for f in fields(Machines) if f.name not in {"accelerators", "accelerator"}]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    indices = np.array([_INDEX[part.accelerators[0].name] for part in parts], dtype=np.int64)
    return Machines(accelerators=_CHIPS, accelerator=indices, **joined)
