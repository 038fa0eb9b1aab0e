"""The work of a module that was counted: its FLOPs, bytes and memory as they are, its class by what they are made of."""

import math
from dataclasses import fields

from catalog.errors import Fault, UnusableInput
from planner.job import Profile, Training
from planner.workload.methods import frozen_bytes, is_fused, method_of
from planner.workload.work import Work

#: Bytes at 16 bit of a score, and how they count where attention is not fused: kept before and after dropout.
_HALF = 2.0
_SCORES_KEPT = 2.0


def profiled_work(counted: Profile, training: Training) -> Work:
    """Work in units of samples.

    Raises `UnusableInput` at ("workload", field) for counts that contradict each other, and at
    ("training", "method") for adapters, which a counted module has or has not got already.
    """
    faults = _faults(counted)
    if method_of(training).adapters:
        message = f"{training.method} does not apply to counted work; accepted: full (freeze parameters in the module)"
        faults.append(Fault(("training", "method"), message))
    if faults:
        raise UnusableInput(*faults)
    fused = is_fused(training)
    frozen = frozen_bytes(training, 0.0, counted.parameters - counted.trainable_parameters)
    scores = 0.0 if fused else _SCORES_KEPT * _HALF * counted.attention_scores_per_sample
    return Work(
        task=_task(counted),
        name=counted.model,
        unit="samples",
        units_total=counted.samples,
        units_per_step=counted.global_batch_samples,
        units_per_sample=1.0,
        parameters=counted.parameters,
        active_parameters=counted.parameters,
        trainable_parameters=counted.trainable_parameters,
        embedding_parameters=0.0,
        linear_flops_per_unit=counted.flops_per_sample - counted.attention_flops_per_sample,
        attention_flops_per_unit=counted.attention_flops_per_sample,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=counted.fused_bytes_per_sample if fused else counted.bytes_per_sample,
        activation_bytes_per_sample=(
            counted.activation_bytes_per_sample + scores,
            counted.selective_activation_bytes_per_sample,
            counted.full_activation_bytes_per_sample,
        ),
        logits_bytes_per_sample=0.0,
        sequential_steps=counted.sequential_steps,
        # Buffers stay on every device as frozen weights do.
        frozen_parameter_bytes=frozen + counted.buffer_bytes,
        kernels=counted.fused_kernels if fused else counted.kernels,
        bytes_per_pass=counted.fused_bytes_per_pass if fused else counted.bytes_per_pass,
        assumptions=tuple(_said(counted)),
    )


def _task(counted: Profile) -> str:
    """The class whose shares of a machine's rates this work reaches: by what most of its time goes into."""
    if counted.sequential_steps > 1:
        return "recurrent"
    if counted.optimizers > 1:
        return "gan"
    if counted.convolution_flops_per_sample > counted.flops_per_sample / 2:
        return "convolutional"
    return "encoder" if counted.attention_flops_per_sample > 0 else "explicit"


def _faults(counted: Profile) -> list[Fault]:
    wrong = [
        Fault(("workload", each.name), f"{value:g} is not a number of at least 0")
        for each in fields(counted)
        if isinstance(value := getattr(counted, each.name), float | int) and not 0 <= value < math.inf
    ]
    if wrong:
        return wrong
    selective = counted.selective_activation_bytes_per_sample
    parts = counted.convolution_flops_per_sample + counted.attention_flops_per_sample
    limits = (
        ("trainable_parameters", counted.trainable_parameters, "parameters", counted.parameters),
        ("global_batch_samples", counted.global_batch_samples, "samples", counted.samples),
        (
            "flops_per_sample",
            parts,
            "flops_per_sample (of convolutions and attention together)",
            counted.flops_per_sample,
        ),
        ("fused_bytes_per_sample", counted.fused_bytes_per_sample, "bytes_per_sample", counted.bytes_per_sample),
        ("fused_bytes_per_pass", counted.fused_bytes_per_pass, "bytes_per_pass", counted.bytes_per_pass),
        ("fused_kernels", counted.fused_kernels, "kernels", counted.kernels),
        (
            "selective_activation_bytes_per_sample",
            selective,
            "activation_bytes_per_sample",
            counted.activation_bytes_per_sample,
        ),
        (
            "full_activation_bytes_per_sample",
            counted.full_activation_bytes_per_sample,
            "selective_activation_bytes_per_sample",
            selective,
        ),
    )
    return [
        Fault(("workload", field), f"{value:g} is more than {whole} ({most:g}); give at most that")
        for field, value, whole, most in limits
        if value > most * (1 + 1e-9)
    ]


def _said(counted: Profile) -> list[str]:
    """What the counts rest on."""
    said = [f"counted module {counted.model}, taken as {_task(counted)} work", *counted.notes]
    if counted.sequential_steps > 1:
        said.append(f"{counted.sequential_steps} steps of a recurrence run one after the other in each pass")
    if counted.optimizers > 1:
        said.append(f"{counted.optimizers} modules with an optimizer each, trained in turn by one job")
    return said
