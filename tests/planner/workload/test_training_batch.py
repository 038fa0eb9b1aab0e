"""The default batch of language models: DeepSeek's formula, rounded to sequences, leaving enough steps."""

from itertools import pairwise

import pytest

from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.training_batch import best_batch_tokens, in_whole_sequences


def batch(model: str, tokens: float, **training: str) -> float:
    return work_of(Preset(model=model, tokens=tokens), Training(**training)).units_per_step  # type: ignore[arg-type]


def test_the_formula_is_that_of_deepseek() -> None:
    # DeepSeek-AI 2024, section 3.1: 0.2920 C^0.3271 tokens; 1e20 FLOPs take about a million.
    assert best_batch_tokens(1e20 / 6 / 1e10, 1e10) == pytest.approx(0.2920 * 1e20**0.3271)
    assert best_batch_tokens(1e20 / 6 / 1e10, 1e10) == pytest.approx(1.02e6, rel=0.01)


def test_the_default_batch_grows_with_the_tokens_of_the_run() -> None:
    batches = [batch("qwen3-8b", 10.0**power) for power in range(9, 14)]
    assert all(earlier <= later for earlier, later in pairwise(batches))
    assert batches[0] < batches[-1]


def test_the_default_batch_grows_with_the_model() -> None:
    batches = [batch(f"qwen3-{size}", 1e11) for size in ("4b", "8b", "14b", "32b")]
    assert all(earlier <= later for earlier, later in pairwise(batches))
    assert batches[0] < batches[-1]


def test_a_published_batch_is_kept_whatever_the_run() -> None:
    assert batch("gpt2", 1e11) == batch("gpt2", 1e13) == 512 * 1024


def test_a_short_run_keeps_a_thousand_steps_and_adapters_sixty_four_sequences() -> None:
    assert 1e8 / batch("qwen3-8b", 1e8) >= 1000
    tokens = work_of(Preset(model="qwen3-8b", tokens=1e11), Training()).units_per_sample
    assert batch("qwen3-8b", 1e11, method="lora") == 64 * tokens


def test_the_default_batch_is_the_same_on_every_machine() -> None:
    work = work_of(Preset(model="qwen3-8b", tokens=1e11), Training())
    answers = [
        estimate_on(work, Training(), On(accelerator=name, gpus=gpus), goodput=None)
        for name, gpus in (("H100-80GB-SXM", 8), ("A100-40GB-SXM", 64), ("TPU-v5p", 256))
    ]
    batches = {
        assumed.value for answer in answers for assumed in answer.assumed if assumed.field.endswith("batch_tokens")
    }
    assert batches == {work.units_per_step}


def test_a_batch_is_a_power_of_two_sequences_and_at_least_one() -> None:
    assert in_whole_sequences(1e6, 8192) == 64 * 8192
    assert in_whole_sequences(100.0, 8192) == 8192
