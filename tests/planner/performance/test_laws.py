"""Laws that hold for all constants: monotone in hardware, in layout, in memory."""

import random
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.candidates.machine_shapes import shapes_of
from gpuplan.planner.candidates.node_counts import machine_candidates
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import estimate, fastest_layout
from gpuplan.planner.performance import fastest_layout as clusters_alike
from gpuplan.planner.performance.estimator_request import REASONS, Estimates, LayoutRequest, Machines, arrays_of
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work
from tests.planner.performance.cases import chip, cluster, explicit_work, llama_8b, resnet
from tests.planner.small_catalogues import random_types

BF16 = Training(precision="bf16")
AUTO = Training()
ROOMY_MIB = 1e7
#: Every accelerator that trains and has a known rate.
CHIPS = sorted(
    name for name, one in accelerators().items() if one.trains != "no" and (one.bf16_tflops or one.fp32_tflops)
)
CHECKPOINTING = ["none", "selective", "full"]
#: Volta's tensor cores multiply 16-bit floats alone (NVIDIA, V100 white paper, 2017); bfloat16 came with Ampere.
VOLTA = [name for name in CHIPS if name.startswith("V100")]
#: Kepler and Pascal came before tensor cores.
NO_TENSOR_CORES = [name for name in CHIPS if name.startswith(("K80", "P100"))]


def ask(work: Work, machines: Machines, training: Training = BF16, **fixed: int | str) -> Estimates:
    return estimate(work, training, machines, goodput=0.8, request=LayoutRequest(**fixed))  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(CHIPS),
    work=st.sampled_from([llama_8b(), llama_8b(sequence=2048, batch=512), resnet()]),
    power=st.integers(0, 5),
    stage=st.integers(0, 3),
    checkpointing=st.sampled_from(CHECKPOINTING),
    gbps=st.sampled_from([float("nan"), 25.0, 3200.0]),
)
def test_throughput_of_an_accelerator_never_rises_with_more_replicas(
    name: str, work: Work, power: int, stage: int, checkpointing: str, gbps: float
) -> None:
    per = []
    for nodes in (1 << power, 2 << power):
        machines = cluster(chip(name), nodes=nodes, memory_mib=ROOMY_MIB, fabric_gbps=gbps)
        fixed = {"tensor": 1, "pipeline": 1, "zero_stage": stage, "micro_batch": 1, "checkpointing": checkpointing}
        estimates = ask(work, machines, AUTO, **fixed)  # type: ignore[arg-type]
        assume(REASONS[int(estimates.reason[0])] != "devices do not talk to each other")
        assert estimates.reason[0] == 0
        per.append(estimates.units_per_second[0] / (8 * nodes))
    assert per[1] <= per[0] * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(CHIPS),
    sequence=st.integers(128, 100_000),
    times_longer=st.floats(1.0, 4.0),
    software=st.sampled_from(["fused", "plain"]),
    checkpointing=st.sampled_from(CHECKPOINTING),
)
def test_attention_time_of_a_token_never_falls_with_the_sequence(
    name: str, sequence: int, times_longer: float, software: str, checkpointing: str
) -> None:
    times = []
    for length in (sequence, int(sequence * times_longer)):
        machines = cluster(chip(name), devices=1, memory_mib=ROOMY_MIB)
        work, training = llama_8b(sequence=length, batch=64), Training(software=software)
        estimates = ask(work, machines, training, tensor=1, micro_batch=1, checkpointing=checkpointing)
        assert estimates.reason[0] == 0
        times.append(estimates.terms["attention"][0] / work.units_per_step)
    assert times[1] >= times[0] * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(nodes=st.sampled_from([1, 2, 4, 16]), tensor=st.sampled_from([1, 2, 4]))
def test_each_zero_stage_holds_no_more_states_than_the_one_before(nodes: int, tensor: int) -> None:
    machines = cluster(chip(), nodes=nodes, memory_mib=ROOMY_MIB)
    states = [
        ask(llama_8b(), machines, tensor=tensor, pipeline=1, zero_stage=stage, micro_batch=1).states_gib[0]
        for stage in range(4)
    ]
    assert states == sorted(states, reverse=True)
    assert states[3] < states[0]


@pytest.mark.slow(reason="one long case")
@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(["llama-3-8b", "bert-base", "t5-small", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b"]),
    method=st.sampled_from(["lora", "qlora"]),
    rank=st.integers(1, 256),
    optimizer=st.sampled_from(["adamw", "adafactor", "lion_8bit"]),
    states=st.sampled_from(["mixed", "pure_bf16"]),
    stage=st.integers(0, 3),
    devices=st.sampled_from([1, 4, 8]),
)
@example(model="qwen3-30b-a3b", method="lora", rank=256, optimizer="adafactor", states="pure_bf16", stage=1, devices=8)
def test_adapters_hold_no_more_states_than_full_training(
    model: str, method: str, rank: int, optimizer: str, states: str, stage: int, devices: int
) -> None:
    every = Training(precision="bf16", optimizer=optimizer, states=states, parallelism="any")
    some = replace(every, method=method, rank=rank)
    job = Preset(model=model, tokens=1e9)
    full, adapted = work_of(job, every), work_of(job, some)
    # Adapters stand beside weights of 2 bytes; half as many parameters at 4 bytes and more already outweigh the rest.
    # ZeRO-2 divides what they save, gradients and optimizer, by the devices, but not the adapters' own weights.
    divided = devices if stage == 2 else 1
    assume(adapted.trainable_parameters <= full.trainable_parameters / (2 * divided))
    machines = cluster(chip(), devices=devices, memory_mib=ROOMY_MIB)
    fixed = {"tensor": 1, "pipeline": 1, "zero_stage": stage, "micro_batch": 1}
    held = [ask(work, machines, training, **fixed).states_gib[0] for work, training in ((full, every), (adapted, some))]
    assert held[1] <= held[0] * (1 + 1e-9)


@pytest.mark.parametrize("method", ["full", "qlora"])
def test_code_that_splits_batches_alone_is_no_faster_and_splits_no_model(method: str) -> None:
    work = work_of(Preset(model="mixtral-8x7b", tokens=1e9), Training(method=method))
    machines = cluster(chip(), devices=8, nodes=8)
    either, data, unstated = (
        ask(work, machines, Training(method=method, precision="bf16", parallelism=ways))
        for ways in ("any", "data", "auto")
    )
    assert [getattr(data, way)[0] for way in ("tensor", "pipeline", "context", "expert")] == [1, 1, 1, 1]
    assert max(getattr(either, way)[0] for way in ("tensor", "pipeline", "expert")) > 1
    assert either.hours[0] <= data.hours[0]
    assert unstated.hours[0] == (either if method == "full" else data).hours[0]


def test_large_adapters_outweigh_gradients_that_eight_devices_divide() -> None:
    every = Training(precision="bf16", optimizer="adafactor", states="pure_bf16")
    some = replace(every, method="lora", rank=75)
    full, adapted = (work_of(Preset(model="bert-base", tokens=1e9), training) for training in (every, some))
    fixed = {"tensor": 1, "pipeline": 1, "zero_stage": 2, "micro_batch": 1}
    machines = cluster(chip(), devices=8, memory_mib=ROOMY_MIB)
    states = [
        ask(work, machines, training, **fixed).states_gib[0] * 2**30
        for work, training in ((full, every), (adapted, some))
    ]
    # Weights of 2 bytes on every device, gradients of 2 bytes divided by 8; adafactor's factors are next to nothing.
    assert states[0] == pytest.approx((2 + 2 / 8) * full.trainable_parameters, rel=0.02)
    # The same weights, frozen, and adapters of 2 bytes with their divided gradients on top.
    assert states[1] == pytest.approx(
        2 * full.trainable_parameters + (2 + 2 / 8) * adapted.trainable_parameters, rel=0.02
    )
    assert states[1] > states[0]


def test_full_training_with_adam_holds_sixteen_bytes_a_parameter() -> None:
    estimates = ask(llama_8b(), cluster(chip(), devices=1, memory_mib=ROOMY_MIB))
    assert estimates.states_gib[0] * 2**30 == pytest.approx(16 * 8.03e9, rel=0.01)


@settings(max_examples=40, deadline=None)
@given(
    gib=st.floats(8, 200),
    factor=st.floats(1.0, 4.0),
    devices=st.sampled_from([1, 2, 4, 8]),
    nodes=st.sampled_from([1, 2, 3, 8]),
    work=st.sampled_from([llama_8b(), resnet(), explicit_work()]),
)
def test_more_memory_never_stops_a_job_from_fitting(
    gib: float, factor: float, devices: int, nodes: int, work: Work
) -> None:
    small = ask(work, cluster(chip(), devices=devices, nodes=nodes, memory_mib=gib * 1024))
    large = ask(work, cluster(chip(), devices=devices, nodes=nodes, memory_mib=gib * factor * 1024))
    assert small.reason[0] != 0 or large.reason[0] == 0


@settings(max_examples=40, deadline=None)
@given(
    factor=st.floats(1.0, 3.0),
    column=st.sampled_from(["bf16_tflops", "fp32_tflops", "memory_gbs", "link_gbs", "pcie_gbs"]),
    work=st.sampled_from([llama_8b(), resnet(), explicit_work()]),
    nodes=st.sampled_from([1, 4]),
)
def test_a_faster_chip_or_link_is_never_slower(factor: float, column: str, work: Work, nodes: int) -> None:
    plain, better = chip(), chip(**{column: getattr(chip(), column) * factor})
    estimates = ask(work, cluster(plain, better, nodes=nodes, fabric_gbps=100.0))
    assert estimates.step_seconds[1] <= estimates.step_seconds[0] * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(gbps=st.floats(5, 3200), factor=st.floats(1.0, 10.0))
def test_a_faster_fabric_is_never_slower(gbps: float, factor: float) -> None:
    slow = ask(llama_8b(), cluster(chip(), nodes=4, fabric_gbps=gbps))
    fast = ask(llama_8b(), cluster(chip(), nodes=4, fabric_gbps=gbps * factor))
    assert fast.step_seconds[0] <= slow.step_seconds[0] * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(["H100-80GB-SXM", "A100-40GB-SXM", "L4", "V100-16GB", "TPU-v5p", "GB200", "MI300X"]),
    nodes=st.sampled_from([1, 2, 3, 5, 8]),
    devices=st.sampled_from([1, 4, 8]),
    work=st.sampled_from([llama_8b(), llama_8b(sequence=65536, batch=64), resnet(), explicit_work()]),
)
def test_terms_add_to_the_step_and_the_layout_to_the_cluster(name: str, nodes: int, devices: int, work: Work) -> None:
    estimates = ask(work, cluster(chip(name), devices=devices, nodes=nodes), AUTO)
    if estimates.reason[0]:
        assert np.isinf(estimates.hours[0])
        return
    assert sum(values[0] for values in estimates.terms.values()) == pytest.approx(estimates.step_seconds[0])
    assert estimates.data[0] * estimates.tensor[0] * estimates.pipeline[0] * estimates.context[0] == nodes * devices
    assert estimates.peak_gib[0] <= estimates.capacity_gib[0] * (1 + 1e-9)
    parts = estimates.states_gib[0] + estimates.activations_gib[0] + estimates.other_gib[0]
    assert parts == pytest.approx(estimates.peak_gib[0])
    assert estimates.hours[0] == pytest.approx(estimates.step_seconds[0] * work.steps / 3600)
    assert estimates.hours_with_goodput[0] == pytest.approx(estimates.hours[0] / 0.8)
    assert 0 < estimates.mfu[0] < 1


def test_rows_do_not_depend_on_their_neighbours() -> None:
    chips = [chip(name) for name in ("H100-80GB-SXM", "L4", "A100-40GB-SXM", "K80")]
    together = ask(llama_8b(), cluster(*chips, nodes=2), AUTO)
    for index, one in enumerate(chips):
        alone = ask(llama_8b(), cluster(one, nodes=2), AUTO)
        for name in arrays_of(together):
            assert getattr(alone, name)[0] == pytest.approx(getattr(together, name)[index], nan_ok=True), name


def test_the_chosen_layout_is_no_slower_than_any_that_is_asked_for() -> None:
    machines = cluster(chip(), nodes=2)
    free = ask(llama_8b(), machines).step_seconds[0]
    for tensor in (1, 2, 4, 8):
        for pipeline in (1, 2):
            asked = ask(llama_8b(), machines, tensor=tensor, pipeline=pipeline)
            assert free <= asked.step_seconds[0] * 1.001


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(CHIPS), work=st.sampled_from([llama_8b(), resnet(), explicit_work()]))
def test_fp8_runs_where_the_chip_has_a_rate_for_it_and_is_refused_everywhere_else(name: str, work: Work) -> None:
    estimates = ask(work, cluster(chip(name), devices=1, memory_mib=ROOMY_MIB), Training(precision="fp8"))
    assert REASONS[int(estimates.reason[0])] == ("" if chip(name).fp8_tflops else "precision not supported")


@pytest.mark.parametrize("name", VOLTA)
def test_volta_has_tensor_cores_for_fp16_and_none_for_bf16(name: str) -> None:
    assert chip(name).fp16_is_tensor
    estimates = ask(resnet(), cluster(chip(name)), BF16)
    assert REASONS[int(estimates.reason[0])] == "precision not supported"


@pytest.mark.parametrize("name", NO_TENSOR_CORES)
@pytest.mark.parametrize("precision", ["tf32", "bf16", "fp8", "fp4"])
def test_kepler_and_pascal_refuse_every_precision_of_tensor_cores(name: str, precision: str) -> None:
    assert not chip(name).fp16_is_tensor
    estimates = ask(resnet(), cluster(chip(name)), Training(precision=precision))
    assert REASONS[int(estimates.reason[0])] == "precision not supported"
    plain = ask(resnet(), cluster(chip(name)), AUTO)
    assert plain.precisions[plain.precision[0]] == "fp32"


@pytest.mark.parametrize(("module", "limit"), [(fastest_layout, "ROWS_AT_ONCE"), (clusters_alike, "PAIRS_AT_ONCE")])
@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b", "gpt3-175b"])
def test_rows_estimated_in_blocks_are_those_estimated_at_once(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, model: str
) -> None:
    shapes = shapes_of(tuple(random_types(random.Random("blocks"), 4)))
    rows = machine_candidates(shapes, tuple(range(len(shapes))), 20).machines
    training = Training()
    work = work_of(Preset(model=model, tokens=1e9), training)
    whole = fastest_layout.estimate(work, training, rows, goodput=0.9)
    assert len(rows) > 7
    monkeypatch.setattr(module, limit, 7)
    blocks = fastest_layout.estimate(work, training, rows, goodput=0.9)
    for name in arrays_of(whole):
        assert np.array_equal(getattr(whole, name), getattr(blocks, name), equal_nan=True), name
    assert all(np.array_equal(whole.terms[name], blocks.terms[name]) for name in whole.terms)
