"""Work of a counted module: its counts as they are, its class by what they are made of."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Profile, Training
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.workload import work_of

#: A convolutional network of ResNet-50's size.
PROFILE = Profile(
    model="train:resnet",
    samples=1e8,
    global_batch_samples=256,
    parameters=25_557_032,
    trainable_parameters=25_557_032,
    flops_per_sample=24.3e9,
    convolution_flops_per_sample=24.28e9,
    bytes_per_sample=480e6,
    fused_bytes_per_sample=378e6,
    bytes_per_pass=153e6,
    fused_bytes_per_pass=153e6,
    activation_bytes_per_sample=43.7e6,
    selective_activation_bytes_per_sample=24.5e6,
    full_activation_bytes_per_sample=23.4e6,
    kernels=512,
    fused_kernels=333,
)
A100 = On(accelerator="A100-40GB-SXM", gpus=1)


def hours(profile: Profile, training: Training | None = None) -> float:
    training = training or Training()
    hours_: float = wire(estimate_on(work_of(profile, training), training, A100, goodput=0.8))["hours"]
    return hours_


def test_the_work_is_what_was_counted() -> None:
    work = work_of(PROFILE, Training())
    assert work.total_flops == 24.3e9 * 1e8
    assert (work.parameters, work.trainable_parameters, work.frozen_parameter_bytes) == (25_557_032, 25_557_032, 0)
    assert (work.unit, work.samples_per_step, work.steps) == ("samples", 256, 1e8 / 256)
    assert work.activation_bytes_per_sample == (43.7e6, 24.5e6, 23.4e6)
    assert "counted module train:resnet, taken as convolutional work" in work.assumptions


def test_a_fused_stack_moves_the_fused_bytes_and_a_plain_one_all_of_them() -> None:
    fused, plain = (work_of(PROFILE, Training(software=name)) for name in ("fused", "plain"))
    assert (fused.vector_bytes_per_unit, fused.kernels) == (378e6, 333)
    assert (plain.vector_bytes_per_unit, plain.kernels) == (480e6, 512)


def test_scores_stay_in_memory_only_where_attention_is_not_fused() -> None:
    attending = replace(PROFILE, attention_flops_per_sample=1e7, attention_scores_per_sample=1e6)
    fused, plain = (work_of(attending, Training(software=name)) for name in ("fused", "plain"))
    assert plain.activation_bytes_per_sample[0] - fused.activation_bytes_per_sample[0] == 4e6


def test_frozen_parameters_and_buffers_are_held_but_not_trained() -> None:
    half = replace(PROFILE, trainable_parameters=5_557_032, buffer_bytes=1e6)
    assert work_of(half, Training()).frozen_parameter_bytes == 2 * 20e6 + 1e6
    assert work_of(half, Training(precision="fp32")).frozen_parameter_bytes == 4 * 20e6 + 1e6


@pytest.mark.parametrize(
    ("change", "task"),
    [
        ({}, "convolutional"),
        ({"sequential_steps": 1000}, "recurrent"),
        ({"optimizers": 2}, "gan"),
        ({"convolution_flops_per_sample": 0.0, "attention_flops_per_sample": 1e9}, "encoder"),
        ({"convolution_flops_per_sample": 0.0}, "explicit"),
    ],
)
def test_the_class_follows_from_the_counts(change: dict[str, Any], task: str) -> None:
    assert work_of(replace(PROFILE, **change), Training()).task == task


def test_a_recurrence_takes_longer_than_the_same_work_side_by_side() -> None:
    small = replace(PROFILE, flops_per_sample=1e6, convolution_flops_per_sample=0, bytes_per_sample=1e5)
    small = replace(small, fused_bytes_per_sample=1e5, bytes_per_pass=0, fused_bytes_per_pass=0)
    assert hours(replace(small, sequential_steps=1000)) > 5 * hours(small)


@given(
    field=st.sampled_from(
        ["flops_per_sample", "bytes_per_sample", "bytes_per_pass", "kernels", "sequential_steps", "parameters"]
    ),
    factor=st.integers(2, 8),
)
def test_more_of_anything_never_takes_less_time(field: str, factor: int) -> None:
    plain = Training(software="plain")
    base = replace(PROFILE, sequential_steps=20) if field == "sequential_steps" else PROFILE
    change: dict[str, Any] = {field: getattr(base, field) * factor}
    if field == "flops_per_sample":  # of the same kind, or the work would be of another class
        change["convolution_flops_per_sample"] = PROFILE.convolution_flops_per_sample * factor
    assert hours(replace(base, **change), plain) >= hours(base, plain)


def test_a_counted_small_network_is_not_charged_the_kernels_of_a_large_one() -> None:
    tiny = replace(
        PROFILE, flops_per_sample=1e6, convolution_flops_per_sample=9e5, bytes_per_sample=1e4, fused_bytes_per_sample=1e4,
        bytes_per_pass=0, fused_bytes_per_pass=0, parameters=1e5, trainable_parameters=1e5,
    )  # fmt: skip
    assert hours(replace(tiny, kernels=30, fused_kernels=30)) < hours(replace(tiny, kernels=0, fused_kernels=0)) / 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trainable_parameters": 1e12}, "trainable_parameters"),
        ({"global_batch_samples": 1e9}, "global_batch_samples"),
        ({"attention_flops_per_sample": 24e9}, "flops_per_sample"),
        ({"fused_bytes_per_sample": 1e12}, "fused_bytes_per_sample"),
        ({"fused_bytes_per_pass": 1e12}, "fused_bytes_per_pass"),
        ({"fused_kernels": 1e12}, "fused_kernels"),
        ({"selective_activation_bytes_per_sample": 1e12}, "selective_activation_bytes_per_sample"),
        ({"full_activation_bytes_per_sample": 3e7}, "full_activation_bytes_per_sample"),
        ({"flops_per_sample": float("nan")}, "flops_per_sample"),
        ({"bytes_per_sample": -1.0}, "bytes_per_sample"),
    ],
)
def test_counts_that_contradict_each_other_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        work_of(replace(PROFILE, **change), Training())
    assert refused.value.faults[0].path == ("workload", field)


def test_adapters_do_not_apply_to_counted_work() -> None:
    with pytest.raises(UnusableInput, match=r"lora does not apply to counted work; accepted: full") as refused:
        work_of(PROFILE, Training(method="lora"))
    assert refused.value.faults[0].path == ("training", "method")
