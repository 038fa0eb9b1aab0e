"""What an estimate proposes where the job does not fit: each proposal fits, and the next larger one does not."""

import re
from dataclasses import replace

import pytest

from gpuplan.planner.model.job import Preset, Training, Workload
from gpuplan.planner.performance.configuration_on_request import On
from gpuplan.planner.performance.memory_remedies import eager_does_not_fit, remedies_of
from gpuplan.planner.performance.single_configuration import fits_on
from gpuplan.planner.workload import work_of

LORA = Training(method="lora", precision="bf16")


def fits(workload: Workload, training: Training, on: On) -> bool:
    return fits_on(work_of(workload, training), training, on)


def proposed(model: str, training: Training, on: On, length: int = 8192) -> list[str]:
    workload = Preset(model=model, tokens=1e9, sequence_length=length)
    return remedies_of(workload, training, length, lambda changed, trained: fits(changed, trained, on))


@pytest.mark.parametrize(
    ("model", "method", "accelerator"),
    [
        ("llama-3-8b", "full", "RTX-4090"),
        ("llama-3-8b", "full", "A100-80GB-SXM"),
        ("llama-3-8b", "lora", "RTX-4090"),
        ("llama-3-70b", "qlora", "RTX-A6000"),
        ("qwen2.5-14b", "lora", "A100-40GB-SXM"),
    ],
)
def test_what_is_proposed_fits(model: str, method: str, accelerator: str) -> None:
    training, on = Training(method=method, precision="bf16"), On(accelerator=accelerator, gpus=1)
    workload = Preset(model=model, tokens=1e9, sequence_length=8192)
    assert not fits(workload, training, on)
    (sentence,) = proposed(model, training, on)
    for proposal in sentence.removeprefix("it would fit with ").split(", or with "):
        changes = dict(re.findall(r"training\.(\w+): (\w+)", proposal))
        length = re.search(r"workload\.sequence_length: (\d+)", proposal)
        assert changes or length
        shorter = replace(workload, sequence_length=int(length[1])) if length else workload
        assert fits(shorter, replace(training, **changes), on)
        if length:
            assert not fits(replace(workload, sequence_length=2 * int(length[1])), training, on)


def test_lora_of_8b_fits_a_card_of_24_gb_without_logits() -> None:
    (sentence,) = proposed("llama-3-8b", LORA, On(accelerator="RTX-4090", gpus=1))
    assert sentence == "it would fit with training.cross_entropy: linear, or with workload.sequence_length: 4096"


def test_nothing_is_proposed_where_no_change_helps() -> None:
    assert proposed("deepseek-v3", Training(offload="optimizer"), On(accelerator="RTX-4090", gpus=1)) == []


def test_what_the_user_settled_is_left_alone() -> None:
    settled = replace(LORA, cross_entropy="linear", activation_checkpointing="none", optimizer="sgd")
    sentences = proposed("llama-3-8b", settled, On(accelerator="RTX-4090", gpus=1), 32_768)
    assert not any(word in " ".join(sentences) for word in ("cross_entropy", "checkpointing", "optimizer:"))


def test_a_job_that_fits_by_its_software_alone_says_so() -> None:
    on, workload = On(accelerator="RTX-4090", gpus=1), Preset(model="llama-3-8b", tokens=1e9, sequence_length=8192)
    qlora = Training(method="qlora", precision="bf16")

    def fits_here(changed: Workload, training: Training) -> bool:
        return fits(changed, training, on)

    assert fits_here(workload, qlora)
    (sentence,) = eager_does_not_fit(workload, qlora, fits_here)
    assert "not with eager software" in sentence
    assert eager_does_not_fit(replace(workload, sequence_length=2048), qlora, fits_here) == []
    assert eager_does_not_fit(workload, replace(qlora, software="compiled"), fits_here) == []
