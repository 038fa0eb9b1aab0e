"""Stages add passes, pairs, frozen models and generated answers to a step of supervised training."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance.prediction_bands import log_sigma
from gpuplan.planner.performance.training_states import parts_of
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work

MODEL = Preset(model="llama-3-8b", tokens=1e9, sequence_length=4096, global_batch_tokens=2**19)
PARAMETERS = work_of(MODEL, Training()).parameters


def work(stage: str, method: str = "full", completion: int | None = None) -> Work:
    return work_of(MODEL, Training(stage=stage, method=method, completion_tokens=completion))


def sigma(work: Work) -> float:
    return float(log_sigma(work, np.zeros(1))[0])


@pytest.mark.parametrize(
    ("stage", "method", "forward_passes"),
    [
        ("dpo", "full", 4),
        ("dpo", "lora", 3),
        ("orpo", "full", 3),
        ("kto", "full", 6),
        ("grpo", "full", 5),
        ("ppo", "full", 9),
    ],
)
def test_matmuls_grow_with_the_passes(stage: str, method: str, forward_passes: int) -> None:
    completion = 1024 if stage in {"grpo", "ppo"} else None
    supervised = work("sft", method)
    grown = work(stage, method, completion).linear_flops_per_unit / supervised.linear_flops_per_unit
    assert grown == pytest.approx(forward_passes / (3 if method == "full" else 2))


def test_the_amount_of_training_stays_and_a_pair_is_two_sequences() -> None:
    supervised, pairs = work("sft"), work("dpo")
    assert pairs.units_total == supervised.units_total
    assert pairs.units_per_step == supervised.units_per_step
    assert pairs.units_per_sample == 2 * supervised.units_per_sample
    assert pairs.activation_bytes_per_sample == tuple(2 * size for size in supervised.activation_bytes_per_sample)


@pytest.mark.parametrize(
    ("stage", "method", "frozen"), [("dpo", "full", 1), ("dpo", "lora", 0), ("orpo", "full", 0), ("ppo", "full", 2)]
)
def test_frozen_models_are_held_besides_the_trained_one(stage: str, method: str, frozen: int) -> None:
    staged = work(stage, method, 1024 if stage == "ppo" else None)
    without = replace(staged, reference_parameter_bytes=0.0)
    assert parts_of(staged).frozen_bytes - parts_of(without).frozen_bytes == pytest.approx(2 * frozen * PARAMETERS)


def test_a_reward_model_has_no_logits() -> None:
    assert work("reward").logits_bytes_per_sample == work("reward").head_flops_per_unit == 0


def test_longer_answers_move_more_bytes_and_widen_the_band_no_further() -> None:
    short, long = work("grpo", completion=256), work("grpo", completion=2048)
    assert work("sft").vector_bytes_per_unit < short.vector_bytes_per_unit < long.vector_bytes_per_unit
    assert sigma(work("sft")) < sigma(work("dpo")) < sigma(short) == sigma(long)


@pytest.mark.parametrize(
    ("workload", "training", "field", "message"),
    [
        (MODEL, Training(stage="grpo"), "completion_tokens", "is missing: grpo generates answers"),
        (MODEL, Training(stage="dpo", completion_tokens=9), "completion_tokens", "leave it out with dpo"),
        (MODEL, Training(stage="ppo", completion_tokens=4096), "completion_tokens", "no room for a prompt"),
        (Preset(model="resnet-50", samples=1e6), Training(stage="dpo"), "stage", "accepted: sft"),
        (Preset(model="bert-base", tokens=1e9), Training(stage="kto"), "stage", "accepted: sft"),
        (MODEL, Training(stage="dop"), "stage", "unknown stage 'dop'; accepted: sft, dpo"),
    ],
)
def test_contradictions_are_refused(workload: Preset, training: Training, field: str, message: str) -> None:
    with pytest.raises(UnusableInput, match=message) as refused:
        work_of(workload, training)
    assert refused.value.faults[0].path == ("training", field)
