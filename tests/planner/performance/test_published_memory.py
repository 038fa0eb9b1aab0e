"""Memory against a published table outside the facts, and what the job can say of its losses and checkpoints."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import estimate
from gpuplan.planner.performance.estimator_request import Estimates, LayoutRequest
from gpuplan.planner.workload import work_of
from tests.planner.performance.cases import chip, cluster
from tools.fitting.memory_facts import seen
from tools.fitting.memory_rows import facts

#: What a process holds besides what PyTorch's allocator reserves: the CUDA context and NCCL's buffers, GiB.
OUTSIDE_GIB = 1.1
#: torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, Llama 3.1 8B: software, accelerators, context parallelism, sequence
#: length, samples, checkpointing, GiB reserved.
TORCHTITAN = [
    ("eager", 8, 1, 8_192, 2, "selective", 82.4),
    ("compiled", 8, 1, 8_192, 2, "selective", 77.0),
    ("eager", 128, 1, 8_192, 2, "selective", 67.0),
    ("compiled", 128, 1, 8_192, 2, "selective", 62.0),
    ("compiled", 8, 1, 32_768, 1, "full", 83.9),
    ("compiled", 8, 2, 65_536, 1, "full", 84.2),
    ("compiled", 8, 8, 262_144, 1, "full", 84.5),
]
QLORA = Training(method="qlora", precision="bf16", rank=32, optimizer="adamw_8bit")
ONE_BLOCK_AT_A_TIME = {"micro_batch": 1, "tensor": 1, "zero_stage": 0}


def ask(job: Preset, training: Training, *, count: int = 1, **fixed: Any) -> Estimates:
    machines = cluster(chip(), devices=min(count, 8), nodes=max(1, count // 8), memory_mib=1e9)
    request = LayoutRequest(**({"checkpointing": "full"} | fixed))
    return estimate(work_of(job, training), training, machines, goodput=1.0, request=request)


def llama(length: int, samples: float = 1.0) -> Preset:
    return Preset(model="llama-3.1-8b", tokens=1e10, sequence_length=length, global_batch_tokens=samples * length)


@pytest.mark.parametrize(("software", "count", "context", "length", "samples", "kind", "measured"), TORCHTITAN)
def test_peaks_of_torchtitan_are_within_eight_percent(
    software: str, count: int, context: int, length: int, samples: int, kind: str, measured: float
) -> None:
    job = llama(length, samples * count // context)
    fixed: dict[str, Any] = {"context": context, "tensor": 1, "pipeline": 1, "zero_stage": 3, "micro_batch": samples}
    asked = ask(job, Training(precision="bf16", software=software), count=count, checkpointing=kind, **fixed)
    assert asked.peak_gib[0] - OUTSIDE_GIB == pytest.approx(measured, rel=0.08)


def test_longest_contexts_of_unsloth_need_about_all_of_their_card() -> None:
    longest = [
        fact
        for fact in facts()[0]
        if fact.source == "unsloth" and "longest context that fits: unsloth" in fact.row["notes"]
    ]
    used = [seen(fact).needed * 1024 / float(fact.machines.device_memory_mib[0]) for fact in longest]
    assert len(used) == 8
    assert np.median(np.abs(np.array(used) - 1)) <= 0.06
    assert max(used) <= 1.15


def test_a_linear_cross_entropy_leaves_no_logits() -> None:
    peaks = [
        ask(llama(65_536), replace(QLORA, cross_entropy=kind), **ONE_BLOCK_AT_A_TIME).activations_gib[0]
        for kind in ("full", "chunked", "linear")
    ]
    logits = 65_536 * 128_256 / 2**30
    assert peaks[0] - peaks[1] == pytest.approx((14 - 4) * logits)
    assert peaks[1] - peaks[2] > logits


def test_hugging_faces_stack_copies_its_logits_once_more() -> None:
    peaks = [
        ask(llama(65_536), replace(QLORA, cross_entropy="full", software=name), **ONE_BLOCK_AT_A_TIME).activations_gib[
            0
        ]
        for name in ("compiled", "eager")
    ]
    assert peaks[1] - peaks[0] == pytest.approx(4 * 65_536 * 128_256 / 2**30)


def test_losses_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UnusableInput, match="full contradicts chunked_cross_entropy: true"):
        work_of(llama(8192), Training(cross_entropy="full", chunked_cross_entropy=True))


def test_offloaded_checkpoints_leave_the_inputs_of_two_blocks_and_cost_time_only_where_the_link_is_slow() -> None:
    offloaded = replace(QLORA, cross_entropy="linear", activation_checkpointing="offloaded")
    whole = ask(llama(65_536), replace(offloaded, activation_checkpointing="full"), **ONE_BLOCK_AT_A_TIME)
    gone = ask(llama(65_536), offloaded, **ONE_BLOCK_AT_A_TIME)
    inputs = 65_536 * 4096 * 2 / 2**30
    assert whole.activations_gib[0] - gone.activations_gib[0] == pytest.approx((32 - 2) * inputs)
    assert gone.step_seconds[0] == whole.step_seconds[0]
    slow = replace(chip(), pcie_gbs=0.05)
    work = work_of(llama(65_536), offloaded)
    delayed = estimate(
        work, offloaded, cluster(slow, devices=1, memory_mib=1e9), goodput=1.0, request=LayoutRequest(micro_batch=1)
    )
    # There and back, less what passes meanwhile.
    most = 2 * 32 * inputs * 2**30 / 0.05e9
    assert 0.5 * most < delayed.step_seconds[0] - gone.step_seconds[0] < most


def test_checkpoints_of_networks_without_blocks_cannot_be_offloaded() -> None:
    with pytest.raises(UnusableInput, match="offloaded checkpoints are inputs of transformer blocks"):
        work_of(Preset(model="resnet-50", samples=1e6), Training(activation_checkpointing="offloaded"))


def test_checkpointing_by_operation_computes_a_third_of_the_matmuls_again_and_no_attention() -> None:
    training = Training(precision="bf16", software="compiled")
    fixed: dict[str, Any] = {"micro_batch": 1, "tensor": 1, "zero_stage": 0}
    none, selective = (ask(llama(8192), training, checkpointing=kind, **fixed) for kind in ("none", "selective"))
    # Key, result and up: 1,024, 4,096 and 14,336 of the 53,248 columns of a block's matmuls.
    share = (1024 + 4096 + 14_336) / (2 * 1024 + 2 * 4096 + 3 * 14_336)
    work = work_of(llama(8192), training)
    blocks = work.linear_flops_per_unit / (work.linear_flops_per_unit + work.head_flops_per_unit)
    assert selective.terms["matmul"][0] / none.terms["matmul"][0] == pytest.approx(1 + share / 3 * blocks, rel=0.02)
    assert selective.terms["attention"][0] == none.terms["attention"][0]
