"""Training steps that were timed on a machine of the user's own, against what the estimator says of the same steps.

The distance between the two is the part of a machine that rates do not show: a host too slow to launch
kernels, a card that throttles, the stack that is installed. One short step of one size is no whole
job, so a job of its class and software takes over half of that distance (the geometric mean).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import Accelerator
from catalog.measured import ConvolutionStep, MeasuredAccelerator, TransformerStep
from planner.estimate import estimate
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.job import Preset, Training, Transformer
from planner.workload import work_of
from planner.workload.work import Work

Floats = NDArray[np.float64]

#: Exponent of (measured / predicted) seconds that a job takes over: one of two equal witnesses.
WEIGHT = 0.5
#: A step further off than this was disturbed, or is no step of that machine's usual work; no more is taken over.
MOST = 2.0
#: A change of less than a per cent is none.
_WORTH_SAYING = 0.01
#: Times that the step can change; communication and the optimizer's are not what it is about.
_COMPUTE = ("matmul", "attention", "memory_bound", "bubble")
#: Steps in a run that the estimator is asked about; any number gives the same seconds per step.
_STEPS = 1000.0


def timed_step(chip: MeasuredAccelerator, work: Work) -> TransformerStep | ConvolutionStep | None:
    """The step on `chip` that is of the class of `work`: blocks of known shape, or convolutions; None if neither."""
    if work.shape is not None:
        return chip.rates.transformer
    return chip.rates.convolution if work.task == "convolutional" else None


@lru_cache(maxsize=64)
def predicted_seconds(chip: MeasuredAccelerator, step: TransformerStep | ConvolutionStep) -> float | None:
    """Seconds that the estimator gives `step` on one device, at the rates measured; None if it calls it impossible."""
    optimizer = "adamw" if isinstance(step, TransformerStep) else "sgd"
    training = Training(
        precision=step.precision, software=step.software, optimizer=optimizer, activation_checkpointing="none"
    )
    workload = _transformer(step) if isinstance(step, TransformerStep) else _convolution(step)
    request = LayoutRequest(micro_batch=step.batch, checkpointing="none", zero_stage=0)
    found = estimate(work_of(workload, training), training, _alone(chip), goodput=1.0, request=request)
    return None if found.reason[0] else float(found.step_seconds[0])


def _transformer(step: TransformerStep) -> Transformer:
    tokens = float(step.batch * step.sequence_length)
    return Transformer(
        layers=step.layers,
        hidden_size=step.hidden_size,
        ffn_size=step.ffn_size,
        attention_heads=step.attention_heads,
        kv_heads=step.attention_heads,
        head_size=step.hidden_size // step.attention_heads,
        vocabulary_size=step.vocabulary_size,
        sequence_length=step.sequence_length,
        gated_mlp=False,
        causal=True,
        tied_embeddings=True,
        tokens=tokens * _STEPS,
        global_batch_tokens=tokens,
    )


def _convolution(step: ConvolutionStep) -> Preset:
    return Preset(
        model="resnet-50",
        samples=step.batch * _STEPS,
        image_size=step.image_size,
        global_batch_samples=float(step.batch),
    )


def _alone(chip: MeasuredAccelerator) -> Machines:
    """One device of `chip`, on its own."""
    one = np.ones(1, np.int64)
    return Machines(
        accelerators=(chip,),
        accelerator=np.zeros(1, np.int64),
        devices=one,
        fraction=np.ones(1),
        device_memory_mib=np.array([float(chip.device_memory_mib)]),
        intranode_gbs=np.full(1, np.nan),
        scaleup_domain=one,
        internode_gbps=np.full(1, np.nan),
        clusters=np.zeros(1, np.bool_),
        nodes=one,
    )


def slowdown(chip: MeasuredAccelerator, work: Work, training: Training) -> float:
    """What a job of this class multiplies its compute time by on `chip`; 1.0 where no such step was timed."""
    step = timed_step(chip, work)
    if step is None or step.software != training.software:
        return 1.0
    predicted = predicted_seconds(chip, step)
    if predicted is None:
        return 1.0
    return float(np.clip(step.seconds / predicted, 1 / MOST, MOST) ** WEIGHT)


def timing_note(chip: Accelerator, work: Work, training: Training) -> tuple[str, ...]:
    """What the step timed on an own machine changes for a job of this class, as a sentence; none where nothing."""
    factor = slowdown(chip, work, training) if isinstance(chip, MeasuredAccelerator) else 1.0
    if abs(factor - 1.0) < _WORTH_SAYING:
        return ()
    change = f"{abs(factor - 1.0):.0%} {'more' if factor > 1 else 'less'}"
    distance = "the training step timed on this machine differs from its prediction at the measured rates"
    return (f"{distance}: half of that (geometrically) is taken over, {change} compute time",)


def as_timed(found: Estimates, machines: Machines, work: Work, training: Training) -> Estimates:
    """`found` with the compute time of measured machines as far from the prediction as `slowdown` says."""
    factor = np.array(
        [
            slowdown(chip, work, training) if isinstance(chip, MeasuredAccelerator) else 1.0
            for chip in machines.accelerators
        ]
    )
    if np.all(factor == 1.0):
        return found
    return _stretched(found, factor[machines.accelerator])


def _stretched(found: Estimates, factor: Floats) -> Estimates:
    """Compute terms times `factor`, and everything that follows from the time of a step."""
    terms = {name: each * factor if name in _COMPUTE else each for name, each in found.terms.items()}
    runs = found.reason == 0
    longer = np.ones(len(found))
    before, after = (np.sum([each[runs] for each in parts.values()], axis=0) for parts in (found.terms, terms))
    longer[runs] = after / before
    return replace(
        found,
        terms=terms,
        step_seconds=found.step_seconds * longer,
        hours=found.hours * longer,
        hours_with_goodput=found.hours_with_goodput * longer,
        mfu=found.mfu / longer,
        units_per_second=found.units_per_second / longer,
        tflops_per_accelerator=found.tflops_per_accelerator / longer,
    )
