"""What software, 4-bit weights, pipelines and tensor parallelism add to time and memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import estimate, software_stacks
from gpuplan.planner.performance.communication import copies_across_nodes
from gpuplan.planner.performance.configuration_on_request import On
from gpuplan.planner.performance.estimator_request import Estimates, LayoutRequest, Machines
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.single_configuration import estimate_on
from gpuplan.planner.workload import find_preset, work_of
from gpuplan.planner.workload.step_work import Work
from tests.planner.performance.cases import chip, cluster, llama_8b

BF16 = Training(precision="bf16")
ROOMY_MIB = 1e7
LLAMA_3_405B = Preset(model="llama-3.1-405b", tokens=1e12, sequence_length=8192, global_batch_tokens=2.0**24)


def ask(work: Work, machines: Machines, training: Training = BF16, **fixed: Any) -> Estimates:
    return estimate(work, training, machines, goodput=1.0, request=LayoutRequest(**fixed))


def test_unpacking_4_bit_weights_costs_most_at_small_micro_batches() -> None:
    job = Preset(model="llama-3-8b", tokens=1e9, sequence_length=512, global_batch_tokens=64 * 512)
    machines = cluster(chip("A100-80GB-SXM"), devices=1)
    slowdowns = []
    for micro_batch in (1, 2, 4, 8, 16):
        seconds = [
            ask(work_of(job, training), machines, training, tensor=1, micro_batch=micro_batch).step_seconds[0]
            for training in (Training(precision="bf16", method=method) for method in ("lora", "qlora"))
        ]
        slowdowns.append(seconds[1] / seconds[0])
    assert slowdowns == sorted(slowdowns, reverse=True)
    assert slowdowns[0] > 1.3
    assert 1 < slowdowns[-1] < 1.1


@pytest.mark.parametrize("gpus", [8_192, 16_384])
def test_llama_3_405b_fits_the_accelerators_that_trained_it_with_chunks_of_unequal_size(gpus: int) -> None:
    # Llama Team 2024, table 4: tensor parallelism 8, 16 stages; 126 blocks divide by no number of chunks on 16 stages.
    machines = cluster(chip(), nodes=gpus // 8)
    answer = ask(work_of(LLAMA_3_405B, BF16), machines, tensor=8, pipeline=16)
    assert answer.reason[0] == 0
    assert answer.interleave[0] > 1
    assert 126 % (16 * answer.interleave[0])
    alone = ask(work_of(LLAMA_3_405B, BF16), machines, tensor=8, pipeline=16, interleave=1)
    assert answer.terms["bubble"][0] < alone.terms["bubble"][0]


@pytest.mark.parametrize("micro_batch", [1, 8])
@pytest.mark.parametrize("model", ["llama-3-8b", "bert-large", "gpt2", "resnet-50"])
def test_eager_software_is_never_faster_than_fused_nor_plain_than_eager(model: str, micro_batch: int) -> None:
    chips = [one for one in accelerators().values() if one.trains != "no" and one.bf16_tflops]
    machines, tokens = cluster(*chips, memory_mib=ROOMY_MIB), find_preset(model).unit == "tokens"
    job = Preset(model=model, tokens=1e10) if tokens else Preset(model=model, samples=1e8)
    fused, eager, plain = (
        ask(work_of(job, training), machines, training, micro_batch=micro_batch).step_seconds
        for training in (Training(precision="bf16", software=name) for name in ("fused", "eager", "plain"))
    )
    assert np.count_nonzero(np.isfinite(fused)) > 30
    assert np.all(fused <= eager * (1 + 1e-9))
    assert np.all(eager <= plain * (1 + 1e-9))


def test_gradients_in_32_bit_take_two_more_bytes_a_parameter() -> None:
    fixed: dict[str, Any] = {"tensor": 1, "pipeline": 1, "zero_stage": 0, "micro_batch": 1}
    machines = cluster(chip(), memory_mib=ROOMY_MIB)
    states = [
        ask(llama_8b(), machines, Training(precision="bf16", states=name), **fixed).states_gib[0]
        for name in ("mixed", "fp32_gradients")
    ]
    assert (states[1] - states[0]) * 2**30 == pytest.approx(2 * llama_8b().parameters)


def test_a_chunked_cross_entropy_lowers_the_peak_where_logits_are_the_largest_tensor() -> None:
    peaks = []
    for chunked in (False, True):
        training = Training(precision="bf16", chunked_cross_entropy=chunked)
        work = work_of(Preset(model="llama-3-8b", tokens=1e10), training)
        fixed: dict[str, Any] = {"micro_batch": 2, "checkpointing": "full", "tensor": 1, "zero_stage": 3}
        peaks.append(ask(work, cluster(chip()), training, **fixed).peak_gib[0])
    # Two samples of 8,192 tokens, 128,256 logits each: 2 bytes less each, for the 32-bit copy gives way to a gradient.
    assert (peaks[0] - peaks[1]) * 2**30 == pytest.approx(2 * 8192 * 128_256 * 2, rel=0.01)


def test_tensor_parallelism_gathers_the_inputs_of_one_block_again() -> None:
    fixed: dict[str, Any] = {"pipeline": 1, "zero_stage": 1, "micro_batch": 1}
    machines = cluster(chip(), memory_mib=ROOMY_MIB)
    whole, split = (
        ask(llama_8b(), machines, tensor=tensor, checkpointing="full", **fixed).activations_gib[0] for tensor in (1, 8)
    )
    gathered = 2 * (1 - 1 / 8) * 8192 * 4096 * 2 / 2**30
    assert split == pytest.approx(whole / 8 + gathered)


def test_plain_software_holds_norms_and_residuals_whole_on_every_rank() -> None:
    fixed: dict[str, Any] = {"pipeline": 1, "zero_stage": 1, "micro_batch": 1}
    machines = cluster(chip(), memory_mib=ROOMY_MIB)
    left = []
    for software in ("fused", "plain"):
        training = Training(precision="bf16", software=software)
        whole, split = (
            ask(llama_8b(), machines, training, tensor=tensor, checkpointing="full", **fixed).activations_gib[0]
            for tensor in (1, 8)
        )
        left.append(split - whole / 8)
    # The input of each of 32 blocks, less the eighth that was counted.
    assert left[1] - left[0] == pytest.approx(32 * (1 - 1 / 8) * 8192 * 4096 * 2 / 2**30)


def test_a_compiler_fuses_what_a_model_with_written_out_attention_leaves_apart() -> None:
    machines = cluster(chip(), memory_mib=ROOMY_MIB)
    plain, by_xla, fused_by_xla = (
        Training(precision="bf16", software=software, framework=framework)
        for software, framework in (("plain", "any"), ("plain", "xla"), ("compiled", "xla"))
    )
    job = Preset(model="llama-3-8b", tokens=1e9, sequence_length=4096, global_batch_tokens=4096 * 64)
    apart, written_out, compiled = (
        ask(work_of(job, training), machines, training, tensor=8, micro_batch=1, checkpointing="selective")
        for training in (plain, by_xla, fused_by_xla)
    )
    # The same attention, and the compiler's matmuls; its scores pass through memory.
    assert written_out.terms["attention"][0] == apart.terms["attention"][0]
    assert written_out.terms["matmul"][0] == compiled.terms["matmul"][0]
    assert compiled.terms["memory_bound"][0] < written_out.terms["memory_bound"][0] < apart.terms["memory_bound"][0]
    assert written_out.activations_gib[0] < apart.activations_gib[0]


def test_a_token_goes_once_to_each_node_that_has_any_of_its_experts() -> None:
    nodes = np.array([1.0, 4.0, 1e9])
    # 8 experts anywhere on 4 nodes: each of the 3 others has one or more with the chance 1 - (3/4)^8.
    assert copies_across_nodes(nodes, 8, deduplicate=True) == pytest.approx([0.0, 3 * (1 - 0.75**8), 8.0], rel=1e-6)
    assert copies_across_nodes(nodes, 8, deduplicate=False) == pytest.approx([0.0, 6.0, 8.0])


def test_plain_software_moves_norms_and_residuals_whole_on_every_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    machines, training = cluster(chip(), memory_mib=ROOMY_MIB), Training(precision="bf16", software="plain")

    def seconds() -> list[float]:
        return [ask(llama_8b(), machines, training, tensor=ways, micro_batch=1).step_seconds[0] for ways in (1, 8)]

    repeated = seconds()
    monkeypatch.setitem(software_stacks.UNSPLIT_BYTES, "plain", 0.0)
    split = seconds()
    assert repeated[0] == split[0]
    assert repeated[1] > split[1] * 1.02


def test_hosts_hold_up_what_is_faster_than_they_decode() -> None:
    workload = Preset(model="resnet-50", samples=1e6)
    shown = {}
    for software in ("fused", "eager"):
        training = Training(software=software)
        for name in ("V100-16GB", "H200-141GB-SXM", "B200-SXM"):
            on = On(accelerator=name, gpus=1)
            shown[software, name] = estimate_on(work_of(workload, training), training, on, goodput=1.0)
    assert shown["eager", "V100-16GB"].terms["data"] == 0
    assert shown["eager", "B200-SXM"].terms["data"] > 0
    # Photos come no faster to the quicker of two chips that both wait for them.
    assert shown["eager", "B200-SXM"].hours == pytest.approx(shown["eager", "H200-141GB-SXM"].hours)
    assert shown["fused", "B200-SXM"].terms["data"] == 0


def test_asynchronous_tensor_parallelism_leaves_the_first_part_exposed_and_what_matmuls_are_too_short_for() -> None:
    work, machines = work_of(Preset(model="llama-3-70b", tokens=1e9), BF16), cluster(chip(), memory_mib=ROOMY_MIB)
    waiting, partly, behind = (
        ask(work, machines, Training(precision="bf16", tensor_overlap=overlap), tensor=8, checkpointing="none")
        for overlap in ("none", "auto", "asynchronous")
    )
    seconds = [float(one.terms["communication"][0]) for one in (waiting, partly, behind)]
    assert seconds == sorted(seconds, reverse=True)
    # The matmuls of this step are longer than its traffic: seven eighths are hidden, less what hiding costs.
    assert float(waiting.terms["matmul"][0]) > seconds[0]
    assert seconds[0] - seconds[2] == pytest.approx(seconds[0] * 7 / 8 * (1 - value("hidden_tax")))
    fast = cluster(chip(), devices=2, memory_mib=ROOMY_MIB, nodes=1)
    alone = ask(work, fast, Training(precision="bf16", tensor_overlap="asynchronous"), tensor=2, checkpointing="none")
    assert alone.step_seconds[0] < ask(work, fast, BF16, tensor=2, checkpointing="none").step_seconds[0] * 1.01


@pytest.mark.parametrize(
    ("model", "gpus", "layout"),
    [("resnet-50", 8, LayoutRequest()), ("gpt2", 8, LayoutRequest(tensor=1)), ("gpt2", 1, LayoutRequest())],
)
def test_overlap_without_tensor_parallelism_is_refused(model: str, gpus: int, layout: LayoutRequest) -> None:
    training = Training(precision="bf16", tensor_overlap="asynchronous")
    amount: dict[str, Any] = {"tokens": 1e9} if find_preset(model).unit == "tokens" else {"samples": 1e6}
    work, on = (
        work_of(Preset(model=model, **amount), training),
        On(accelerator="H100-80GB-SXM", gpus=gpus, layout=layout),
    )
    with pytest.raises(UnusableInput, match=r"training.tensor_overlap: belongs to tensor parallelism: .*leave it out"):
        estimate_on(work, training, on, goodput=1.0)


@pytest.mark.parametrize("model", ["resnet-50", "efficientnet-b0", "retinanet"])
def test_channels_last_saves_conversions_at_16_bit_only(model: str) -> None:
    def seconds(precision: str, memory_format: str) -> float:
        training = Training(precision=precision, software="eager", memory_format=memory_format, optimizer="sgd")
        work = work_of(Preset(model=model, samples=1e6, global_batch_samples=64), training)
        return float(ask(work, cluster(chip("RTX-3090"), devices=1, memory_mib=ROOMY_MIB), training).step_seconds[0])

    last, either, first = (seconds("fp16", name) for name in ("channels_last", "auto", "channels_first"))
    assert last < either < first < value("channels_first_traffic") * last
    assert seconds("fp32", "channels_last") == seconds("fp32", "channels_first")


def test_a_memory_format_is_refused_without_convolutions() -> None:
    training = Training(memory_format="channels_last")
    with pytest.raises(UnusableInput, match=r"training.memory_format: belongs to convolutional networks"):
        ask(work_of(Preset(model="gpt2", tokens=1e9), training), cluster(chip()), training)


def test_flash_attention_2_costs_eager_software_more_on_hopper_than_on_the_chips_it_was_written_for() -> None:
    job = Preset(model="llama-3-8b", tokens=1e9, sequence_length=32_768, global_batch_tokens=8 * 32_768)
    slower = {}
    for name in ("A100-80GB-SXM", "H100-80GB-SXM"):
        machines = cluster(chip(name), devices=8)
        seconds = [
            ask(work_of(job, training), machines, training, tensor=1, checkpointing="full").terms["attention"][0]
            for training in (Training(precision="bf16", software=software) for software in ("fused", "eager"))
        ]
        slower[name] = seconds[1] / seconds[0]
    assert slower["H100-80GB-SXM"] > 1.5 * slower["A100-80GB-SXM"]


def test_4_bit_weights_of_a_model_with_a_large_vocabulary_leave_its_head_alone() -> None:
    # Embeddings are neither stored nor unpacked at 4 bit; 256,000 of them are a fifth of Gemma 2 2B.
    job = Preset(model="gemma-2-2b", tokens=1e9, sequence_length=512, global_batch_tokens=64 * 512)
    machines = cluster(chip("A100-80GB-SXM"), devices=1)
    seconds = [
        ask(work_of(job, training), machines, training, tensor=1, micro_batch=1)
        for training in (Training(precision="bf16", method=method) for method in ("lora", "qlora"))
    ]
    work = work_of(job, Training(method="lora"))
    assert work.shape is not None
    added = seconds[1].terms["memory_bound"][0] - seconds[0].terms["memory_bound"][0]
    matrices = work.parameters - work.trainable_parameters - 256_000 * work.shape.hidden_size
    assert added == pytest.approx(64 * value("dequantise_bytes") * matrices / 2.039e12, rel=0.02)


def test_a_compiler_recomputes_all_of_a_block_but_its_last_matrix() -> None:
    training = Training(precision="bf16", software="compiled")
    work = work_of(Preset(model="llama-3-8b", tokens=1e9, global_batch_tokens=64 * 8192), training)
    machines = cluster(chip(), devices=8)
    none, full = (
        ask(work, machines, training, tensor=1, micro_batch=1, checkpointing=checkpointing).terms["matmul"][0]
        for checkpointing in ("none", "full")
    )
    # Of the 218 M weights of a block 58.7 M are the last; the head of 525 M runs once.
    blocks = 32 * 218.1e6
    assert (full - none) / none == pytest.approx(
        (1 - 32 * 58.72e6 / blocks) / 3 * blocks / (blocks + 525.3e6), rel=0.02
    )


def test_interleaved_pipelines_exchange_tokens_with_experts_behind_compute() -> None:
    job = Preset(model="deepseek-v3", tokens=1e12, global_batch_tokens=8192.0 * 4096)
    machines = cluster(chip(), nodes=128, memory_mib=ROOMY_MIB)
    layout: dict[str, Any] = {"tensor": 1, "pipeline": 8, "expert": 64, "micro_batch": 1, "checkpointing": "full"}
    alone, overlapped, short = (
        ask(work_of(job, BF16), row, interleave=chunks, **layout).terms
        for row, chunks in ((machines, 1), (machines, 4), (replace(machines, internode_gbps=np.array([100.0])), 4))
    )
    assert overlapped["communication"][0] < 0.5 * alone["communication"][0]
    # Over a slow network the exchange takes longer than compute, and the rest of it waits.
    busy = sum(short[name][0] for name in ("matmul", "attention", "memory_bound"))
    assert short["communication"][0] > busy


@pytest.mark.parametrize(
    ("model", "training", "expected"),
    [
        ("sdxl", Training(), "eager"),
        ("flux-dev", Training(framework="jax"), "compiled"),
        ("whisper-small", Training(), "eager"),
        ("sdxl", Training(software="compiled"), "compiled"),
        ("t5-11b", Training(), "fused"),
        ("resnet-50", Training(), "fused"),
        ("llama-3-8b", Training(), "fused"),
    ],
)
def test_models_that_no_stack_fuses_by_hand_run_as_frameworks_write_them(
    model: str, training: Training, expected: str
) -> None:
    tokens = find_preset(model).unit == "tokens"
    job = Preset(model=model, tokens=1e9) if tokens else Preset(model=model, samples=1e6)
    answers = [
        ask(work_of(job, one), cluster(chip("A100-80GB-SXM"), devices=8, memory_mib=ROOMY_MIB), one)
        for one in (training, replace(training, software=expected))
    ]
    assert answers[0].hours[0] == answers[1].hours[0]


def test_adapters_cost_more_as_frameworks_write_them_than_in_tuned_kernels() -> None:
    def moved(software: str, where: str) -> Work:
        training = Training(method="lora", software=software, adapters_on=where)
        return work_of(Preset(model="llama-3-8b", tokens=1e9, sequence_length=1024), training)

    full = work_of(Preset(model="llama-3-8b", tokens=1e9, sequence_length=1024), Training(software="fused"))
    tuned, written = moved("fused", "all"), moved("eager", "all")
    # In and out of query, key, value, result, gate, up and down of a block, and 4 passes of 2 bytes.
    widths = 2 * 8192 + 2 * 5120 + 3 * 18432
    assert tuned.vector_bytes_per_unit - full.vector_bytes_per_unit == pytest.approx(32 * widths * 4 * 2)
    assert (tuned.kernels, written.kernels, full.kernels) == (32 * 7 * 6, 32 * 7 * 16, 0)
    assert moved("eager", "query_value").kernels == 32 * 2 * 16
    assert written.vector_bytes_per_unit > 1.5 * tuned.vector_bytes_per_unit
