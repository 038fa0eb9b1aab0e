"""Whatever the layout, all accelerators together hold every weight, gradient and optimizer state: none is counted away."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.planner.model.job import MOMENT_BYTES, Preset, Training
from gpuplan.planner.performance.accelerator_memory import STAGES, footprint
from gpuplan.planner.performance.estimator_request import LayoutRequest
from gpuplan.planner.performance.layout_question import question_of
from gpuplan.planner.performance.layout_splits import limits_of, splits_of
from gpuplan.planner.verify.phase_figures import GIB, states_floor
from gpuplan.planner.workload import work_of
from tests.planner.performance.cases import chip, cluster

MODELS = ("mixtral-8x7b", "deepseek-v3", "kimi-k2", "qwen3-30b-a3b", "llama-3-8b", "gpt2", "dlrm-small")
ALIKE = 1e-9


def jobs() -> st.SearchStrategy[Training]:
    return st.builds(
        Training,
        method=st.sampled_from(("full", "lora", "qlora")),
        precision=st.sampled_from(("bf16", "fp32")),
        optimizer=st.sampled_from(sorted(MOMENT_BYTES)),
        states=st.sampled_from(("mixed", "pure_bf16")),
        offload=st.sampled_from(("none", "optimizer", "parameters")),
        rank=st.sampled_from((4, 16, 64)),
        software=st.sampled_from(("fused", "plain")),
    )


def preset(model: str) -> Preset:
    return Preset(model=model, samples=1e6) if model == "dlrm-small" else Preset(model=model, tokens=1e9)


@pytest.mark.slow(reason="one long case")
@given(model=st.sampled_from(MODELS), training=jobs(), nodes=st.sampled_from((1, 2, 3, 8, 16, 60)))
def test_no_layout_holds_less_than_all_weights_and_states(model: str, training: Training, nodes: int) -> None:
    training = replace(training, method="full") if model == "dlrm-small" else training
    work = work_of(preset(model), training)
    machines = cluster(chip(), nodes=nodes)
    question = question_of(work, training, machines, LayoutRequest())
    domain = question.clusters.domain
    splits = splits_of(limits_of(work), machines.devices, machines.nodes, domain, question.request)
    element = np.full(len(splits.row), float(question.clusters.element_bytes[0]))
    memory = footprint(question, splits, element, np.ones(len(splits.row)))
    least = states_floor(work, training, training.precision).devices
    everything = memory.states * (8.0 * nodes)
    assert (everything >= least * (1 - ALIKE)).all()
    # Sharded over everything and cut into no stages, that is all that they hold, where no cast copy is kept besides.
    whole = (splits.pipeline == 1) & np.full(len(splits.row), training.software == "fused")
    if 3 in memory.stages and training.method != "qlora":
        assert everything[memory.stages.index(3), whole] == pytest.approx(least, rel=1e-6)
    assert set(memory.stages) <= set(STAGES)


def test_adapters_of_a_huge_mixture_of_experts_need_room_for_its_frozen_weights() -> None:
    """671 billion frozen weights of 2 bytes are 1,250 GiB, and adapters come on top."""
    training = Training(method="lora", precision="bf16")
    work = work_of(Preset(model="deepseek-v3", tokens=1e8), training)
    assert 1250 < states_floor(work, training, "bf16").devices / GIB < 1400
