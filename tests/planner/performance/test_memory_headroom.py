"""Limits of memory: the largest micro-batch, the fewest accelerators, loading, the margin, and what is offloaded."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.model.job import Explicit, Preset, Training
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance import On, estimate, estimate_on
from gpuplan.planner.performance.accelerator_memory import MARGIN
from gpuplan.planner.performance.estimator_request import Ints, LayoutRequest, Machines
from gpuplan.planner.performance.memory_headroom import least_accelerators
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work
from tests.planner.performance.cases import chip, cluster, llama_8b

BF16 = Training(precision="bf16")


def ask(work: Work, accelerator: str, gpus: int, training: Training = BF16, **fixed: Any) -> dict[str, Any]:
    on = On(accelerator=accelerator, gpus=gpus, layout=LayoutRequest(**fixed))
    estimates: dict[str, Any] = wire(estimate_on(work, training, on, goodput=0.8))
    return estimates


@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize(("accelerator", "stage"), [("A100-80GB-SXM", 1), ("H100-80GB-SXM", 3), ("L40S", 3)])
def test_the_largest_micro_batch_fits_and_one_more_does_not(accelerator: str, stage: int, checkpointing: str) -> None:
    fixed: dict[str, Any] = {"tensor": 4, "data": 2, "zero_stage": stage, "checkpointing": checkpointing}
    fixed |= {"pipeline": 1, "context": 1}
    work = llama_8b(sequence=2048, batch=4096)
    largest = ask(work, accelerator, 8, **fixed, micro_batch=1)["memory"]["largest_micro_batch"]
    if largest:
        assert ask(work, accelerator, 8, **fixed, micro_batch=largest)["memory"]["fits"]
    assert not ask(work, accelerator, 8, **fixed, micro_batch=largest + 1)["memory"]["fits"]


def test_a_job_that_does_not_fit_has_a_largest_micro_batch_of_none_at_all() -> None:
    memory = ask(llama_8b(), "L4", 1)["memory"]
    assert not memory["fits"]
    assert memory["largest_micro_batch"] == 0


@pytest.mark.parametrize(
    ("accelerator", "work"),
    [("A100-80GB-SXM", llama_8b()), ("A100-40GB-SXM", llama_8b()), ("L4", llama_8b(sequence=2048, batch=2048))],
)
def test_the_fewest_accelerators_hold_the_job_and_no_fewer_do(accelerator: str, work: Work) -> None:
    least = ask(work, accelerator, 8)["memory"]["least_accelerators"]
    assert least > 1
    assert ask(work, accelerator, least)["memory"]["fits"]
    assert not any(ask(work, accelerator, fewer)["memory"]["fits"] for fewer in range(1, min(least, 8)))


def test_a_job_of_many_nodes_is_told_how_many_though_it_is_asked_about_one() -> None:
    work = work_of(Preset(model="llama-3.1-405b", tokens=1e12, global_batch_tokens=1.6e7), BF16)
    least = ask(work, "H100-80GB-SXM", 8)["memory"]["least_accelerators"]
    assert 64 < least <= 128
    assert least % 8 == 0
    assert ask(work, "H100-80GB-SXM", least)["memory"]["fits"]


def test_stated_memory_has_no_micro_batch_and_no_margin() -> None:
    capacity = ask(llama_8b(), "A100-80GB-SXM", 1, micro_batch=1)["memory"]["capacity_gib"]
    context = 0.6
    for share, fits in ((0.999, True), (1.01, False)):
        stated = Explicit(total_flops=1e18, memory_gib=capacity * share - context, min_memory_gib_per_accelerator=1)
        memory = ask(work_of(stated, BF16), "A100-80GB-SXM", 1)["memory"]
        assert memory["fits"] is fits
        assert memory["largest_micro_batch"] is None
        assert memory["loading_gib"] is None


def test_a_prediction_fits_only_with_the_margin_to_spare() -> None:
    work = llama_8b(sequence=2048)
    request = LayoutRequest(micro_batch=2, checkpointing="none")
    roomy = cluster(chip(), devices=1, memory_mib=1e7)
    peak = estimate(work, BF16, roomy, goodput=1.0, request=request).peak_gib[0]
    driver = 1e7 / 1024 - estimate(work, BF16, roomy, goodput=1.0).capacity_gib[0]
    for slack, reason in ((1e-6, 0), (-1e-6, 3)):
        machines = cluster(chip(), devices=1, memory_mib=(peak / (1 - MARGIN) + driver + slack) * 1024)
        assert estimate(work, BF16, machines, goodput=1.0, request=request).reason[0] == reason


def test_loading_holds_the_whole_model_beside_its_shard_and_is_warned_about() -> None:
    work = work_of(Preset(model="llama-3-70b", tokens=1e9, global_batch_tokens=1e6), Training(method="lora"))
    answer = ask(work, "A100-80GB-SXM", 8, Training(method="lora"), tensor=1, pipeline=1, context=1, zero_stage=3)
    weights = (work.frozen_parameter_bytes + 2 * work.trainable_parameters) / 2**30
    assert answer["memory"]["loading_gib"] == pytest.approx(weights * (1 + 1 / 8))
    assert any("builds the whole model on each device" in warning for warning in answer["warnings"])
    assert not any("builds the whole" in text for text in ask(llama_8b(), "A100-80GB-SXM", 8, zero_stage=3)["warnings"])


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 64), kind=st.sampled_from(["none", "selective", "full"]), stage=st.integers(0, 3))
def test_a_larger_micro_batch_never_needs_less(size: int, kind: str, stage: int) -> None:
    work, machines = llama_8b(sequence=1024, batch=4096), cluster(chip(), memory_mib=1e7)
    peaks = [
        estimate(
            work,
            BF16,
            machines,
            goodput=1.0,
            request=LayoutRequest(tensor=1, pipeline=1, zero_stage=stage, micro_batch=count, checkpointing=kind),
        ).peak_gib[0]
        for count in (size, size + 1)
    ]
    assert peaks[0] < peaks[1]


def test_an_optimizer_on_the_host_takes_the_gradients_with_it() -> None:
    """ZeRO-Offload holds 13 B parameters on one V100 of 32 GB (Ren 2021): the weights at 16 bit and little else."""
    work = work_of(Preset(model="gpt3-13b", tokens=1e9, sequence_length=1024, global_batch_tokens=1e5), BF16)
    offloaded = Training(precision="fp16", offload="optimizer")
    memory = ask(work, "V100-32GB", 1, offloaded, micro_batch=1)["memory"]
    assert memory["fits"]
    assert memory["states_gib"] * 2**30 == pytest.approx(2 * work.parameters)


def test_autocast_holds_the_cast_weights_beside_those_in_32_bit() -> None:
    work = llama_8b()
    states = [
        ask(work, "H100-80GB-SXM", 1, Training(precision="bf16", software=software), micro_batch=1)["memory"][
            "states_gib"
        ]
        for software in ("fused", "plain")
    ]
    assert (states[1] - states[0]) * 2**30 == pytest.approx(2 * work.parameters)


def test_four_bit_weights_are_written_out_a_block_and_the_head_at_a_time() -> None:
    trainings = [Training(method=method, precision="bf16") for method in ("lora", "qlora")]
    preset = Preset(model="llama-2-7b", tokens=1e9, global_batch_tokens=1e5)
    lora, qlora = (
        ask(work_of(preset, training), "A100-80GB-SXM", 1, training)["memory"]["other_gib"] for training in trainings
    )
    block = 4 * 4096 * 4096 + 3 * 4096 * 11008
    assert (qlora - lora) * 2**30 == pytest.approx(2 * (block + 32000 * 4096), rel=0.01)


@pytest.mark.parametrize("per_node", [1, 4, 8])
@pytest.mark.parametrize("first", [3, 5, 8, 9, 88, 1000])
def test_the_fewest_accelerators_are_those_of_a_loop_over_every_number(first: int, per_node: int) -> None:
    # What fits on some number of nodes need not fit on the next, as layouts divide: here only multiples of `first` do.
    def ask_many(rows: Machines, request: LayoutRequest) -> Ints:
        return np.where(rows.devices * rows.nodes % first == 0, 0, 3)

    counts = [*range(1, per_node + 1), *(per_node * nodes for nodes in range(2, 4097))]
    expected = next((count for count in counts if count % first == 0), None)
    row_of = partial(_row, per_node)
    assert least_accelerators(ask_many, row_of, per_node, LayoutRequest()) == expected


WORK = work_of(Explicit(total_flops=1e18, memory_gib=1.0), BF16)


def _row(per_node: int, count: int) -> Machines:
    return cluster(chip("L4"), devices=min(count, per_node), nodes=max(1, count // per_node))
