"""The work of a profiled module, from its counted FLOPs, bytes and memory."""

import math
from dataclasses import fields

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Profile, Training
from gpuplan.planner.workload.step_work import Work
from gpuplan.planner.workload.training_methods import frozen_bytes, is_fused, method_of

#: Bytes of an attention score at 16 bit.
_HALF = 2.0
#: Copies of the scores saved without fused attention: before and after dropout.
_SAVED_SCORES = 2.0


def profiled_work(profile: Profile, training: Training) -> Work:
    """Work in units of samples.

    Raises `UnusableInput` at ("workload", field) for counts that contradict each other, and at
    ("training", "method") for adapters, since the counts of the module include its adapters.
    """
    faults = _faults(profile)
    if method_of(training).adapters:
        message = f"{training.method} does not apply to counted work; accepted: full (freeze parameters in the module)"
        faults.append(Fault(("training", "method"), message))
    if faults:
        raise UnusableInput(*faults)
    fused = is_fused(training)
    frozen = frozen_bytes(training, 0.0, profile.parameters - profile.trainable_parameters)
    scores = 0.0 if fused else _SAVED_SCORES * _HALF * profile.attention_scores_per_sample
    return Work(
        task=_task(profile),
        name=profile.model,
        unit="samples",
        units_total=profile.samples,
        units_per_step=profile.global_batch_samples,
        units_per_sample=1.0,
        parameters=profile.parameters,
        active_parameters=profile.parameters,
        trainable_parameters=profile.trainable_parameters,
        embedding_parameters=0.0,
        linear_flops_per_unit=profile.flops_per_sample - profile.attention_flops_per_sample,
        attention_flops_per_unit=profile.attention_flops_per_sample,
        head_flops_per_unit=0.0,
        vector_bytes_per_unit=profile.fused_bytes_per_sample if fused else profile.bytes_per_sample,
        activation_bytes_per_sample=(
            profile.activation_bytes_per_sample + scores,
            profile.selective_activation_bytes_per_sample,
            profile.full_activation_bytes_per_sample,
        ),
        logits_bytes_per_sample=0.0,
        sequential_steps=profile.sequential_steps,
        # Buffers stay on every device as frozen weights do.
        frozen_parameter_bytes=frozen + profile.buffer_bytes,
        kernels=profile.fused_kernels if fused else profile.kernels,
        bytes_per_pass=profile.fused_bytes_per_pass if fused else profile.bytes_per_pass,
        assumptions=tuple(_assumptions(profile)),
    )


def _task(profile: Profile) -> str:
    """The class of work, which decides the shares of a machine's rates: by what takes most of the time."""
    if profile.sequential_steps > 1:
        return "recurrent"
    if profile.optimizers > 1:
        return "gan"
    if profile.convolution_flops_per_sample > profile.flops_per_sample / 2:
        return "convolutional"
    return "encoder" if profile.attention_flops_per_sample > 0 else "explicit"


def _faults(profile: Profile) -> list[Fault]:
    wrong = [
        Fault(("workload", field.name), f"{value:g} is not a number of at least 0")
        for field in fields(profile)
        if isinstance(value := getattr(profile, field.name), float | int) and not 0 <= value < math.inf
    ]
    if wrong:
        return wrong
    selective = profile.selective_activation_bytes_per_sample
    parts = profile.convolution_flops_per_sample + profile.attention_flops_per_sample
    limits = (
        ("trainable_parameters", profile.trainable_parameters, "parameters", profile.parameters),
        ("global_batch_samples", profile.global_batch_samples, "samples", profile.samples),
        (
            "flops_per_sample",
            parts,
            "flops_per_sample (of convolutions and attention together)",
            profile.flops_per_sample,
        ),
        ("fused_bytes_per_sample", profile.fused_bytes_per_sample, "bytes_per_sample", profile.bytes_per_sample),
        ("fused_bytes_per_pass", profile.fused_bytes_per_pass, "bytes_per_pass", profile.bytes_per_pass),
        ("fused_kernels", profile.fused_kernels, "kernels", profile.kernels),
        (
            "selective_activation_bytes_per_sample",
            selective,
            "activation_bytes_per_sample",
            profile.activation_bytes_per_sample,
        ),
        (
            "full_activation_bytes_per_sample",
            profile.full_activation_bytes_per_sample,
            "selective_activation_bytes_per_sample",
            selective,
        ),
    )
    return [
        Fault(("workload", field), f"{value:g} is more than {whole} ({most:g}); give at most that")
        for field, value, whole, most in limits
        if value > most * (1 + 1e-9)
    ]


def _assumptions(profile: Profile) -> list[str]:
    """Assumptions behind the counts, as sentences for the user."""
    sentences = [f"counted module {profile.model}, taken as {_task(profile)} work", *profile.notes]
    if profile.sequential_steps > 1:
        sentences.append(f"{profile.sequential_steps} steps of a recurrence run one after the other in each pass")
    if profile.optimizers > 1:
        sentences.append(f"{profile.optimizers} modules with an optimizer each, trained in turn by one job")
    return sentences
