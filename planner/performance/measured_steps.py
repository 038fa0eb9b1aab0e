"""Training steps timed on owned machines, compared with the estimator's prediction of the same steps.

The ratio shows effects that measured rates do not: a host too slow to launch kernels, a throttling card, the installed
software. One short step of one size does not represent a whole job, so a job of its class and software applies half of
the difference (the geometric mean of 1 and the ratio).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.model.measured_rates import ConvolutionStep, MeasuredAccelerator, TransformerStep
from gpuplan.planner.model.job import Preset, Training, Transformer
from gpuplan.planner.performance.estimator_request import Estimates, LayoutRequest, Machines, one_configuration
from gpuplan.planner.performance.fastest_layout import estimate
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import software_of

Floats = NDArray[np.float64]

#: Exponent of (measured / predicted) seconds that a job applies: measurement and prediction count equally.
WEIGHT = 0.5
#: Limit of measured / predicted: a larger difference means that the step was disturbed or is not representative.
MOST = 2.0
#: Changes below this share are not reported.
_LEAST_REPORTED_CHANGE = 0.01
#: Terms of the step time that a timed step corrects; it does not measure communication or the optimizer.
_COMPUTE = ("matmul", "attention", "memory_bound", "bubble")
#: Steps of the estimated run; any number gives the same seconds per step.
_STEPS = 1000.0


def timed_step(chip: MeasuredAccelerator, work: Work) -> TransformerStep | ConvolutionStep | None:
    """The timed step on `chip` of the class of `work`: transformer blocks or convolutions; None if there is none."""
    if work.shape is not None:
        return chip.rates.transformer
    return chip.rates.convolution if work.task == "convolutional" else None


@lru_cache(maxsize=64)
def predicted_seconds(chip: MeasuredAccelerator, step: TransformerStep | ConvolutionStep) -> float | None:
    """Predicted seconds of `step` on one device at the measured rates; None if the estimator finds no layout."""
    optimizer = "adamw" if isinstance(step, TransformerStep) else "sgd"
    training = Training(
        precision=step.precision, software=step.software, optimizer=optimizer, activation_checkpointing="none"
    )
    workload = _transformer(step) if isinstance(step, TransformerStep) else _convolution(step)
    request = LayoutRequest(micro_batch=step.batch, checkpointing="none", zero_stage=0)
    prediction = estimate(
        work_of(workload, training), training, one_configuration(chip, devices=1), goodput=1.0, request=request
    )
    return None if prediction.reason[0] else float(prediction.step_seconds[0])


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


def slowdown(chip: MeasuredAccelerator, work: Work, training: Training) -> float:
    """The factor on the compute time of a job of this class on `chip`; 1.0 where no such step was timed."""
    step = timed_step(chip, work)
    if step is None or step.software != software_of(training):
        return 1.0
    predicted = predicted_seconds(chip, step)
    if predicted is None:
        return 1.0
    return float(np.clip(step.seconds / predicted, 1 / MOST, MOST) ** WEIGHT)


def timing_note(chip: Accelerator, work: Work, training: Training) -> tuple[str, ...]:
    """A sentence on how the timed step of an owned machine changes this job's time; empty if it does not."""
    factor = slowdown(chip, work, training) if isinstance(chip, MeasuredAccelerator) else 1.0
    if abs(factor - 1.0) < _LEAST_REPORTED_CHANGE:
        return ()
    change = f"{abs(factor - 1.0):.0%} {'more' if factor > 1 else 'less'}"
    distance = "the training step timed on this machine differs from its prediction at the measured rates"
    return (f"{distance}: half of that (geometrically) is taken over, {change} compute time",)


def as_timed(estimates: Estimates, machines: Machines, work: Work, training: Training) -> Estimates:
    """`estimates` with the compute time of measured machines multiplied by `slowdown`."""
    factor = np.array(
        [
            slowdown(chip, work, training) if isinstance(chip, MeasuredAccelerator) else 1.0
            for chip in machines.accelerators
        ]
    )
    if np.all(factor == 1.0):
        return estimates
    return _stretched(estimates, factor[machines.accelerator])


def _stretched(estimates: Estimates, factor: Floats) -> Estimates:
    """`estimates` with compute terms times `factor`, and all figures that follow from the time of a step."""
    terms = {name: term * factor if name in _COMPUTE else term for name, term in estimates.terms.items()}
    runs = estimates.reason == 0
    longer = np.ones(len(estimates))
    before, after = (np.sum([part[runs] for part in parts.values()], axis=0) for parts in (estimates.terms, terms))
    longer[runs] = after / before
    return replace(
        estimates,
        terms=terms,
        step_seconds=estimates.step_seconds * longer,
        hours=estimates.hours * longer,
        hours_with_goodput=estimates.hours_with_goodput * longer,
        mfu=estimates.mfu / longer,
        units_per_second=estimates.units_per_second / longer,
        tflops_per_accelerator=estimates.tflops_per_accelerator / longer,
    )
