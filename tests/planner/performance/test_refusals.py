"""Rows that cannot run a job say why, and bad input is named."""

import numpy as np
import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training
from gpuplan.planner.performance import On, estimate, estimate_on
from gpuplan.planner.performance.estimator_request import REASONS, LayoutRequest, Machines
from gpuplan.planner.workload.step_work import Work
from tests.planner.performance.cases import chip, cluster, explicit_work, llama_8b, resnet


def why(work: Work, machines: Machines, training: Training | None = None, tensor: int | None = None) -> str:
    estimates = estimate(work, training or Training(), machines, goodput=1.0, request=LayoutRequest(tensor=tensor))
    assert bool(estimates.reason[0]) == bool(np.isinf(estimates.step_seconds[0]))
    return REASONS[int(estimates.reason[0])]


def test_fp8_is_refused_where_the_chip_has_none() -> None:
    assert why(resnet(), cluster(chip("A100-80GB-SXM")), Training(precision="fp8")) == "precision not supported"
    assert why(resnet(), cluster(chip()), Training(precision="fp8")) == ""


def test_bf16_is_refused_on_a_v100_and_auto_takes_fp16_and_says_so() -> None:
    volta = cluster(chip("V100-32GB"))
    assert why(resnet(), volta, Training(precision="bf16")) == "precision not supported"
    estimates = estimate(resnet(), Training(precision="auto"), volta, goodput=1.0)
    assert estimates.precisions[estimates.precision[0]] == "fp16"
    assert estimates.substituted[0]


def test_auto_never_takes_fp8_and_falls_to_fp32_without_tensor_units() -> None:
    estimates = estimate(resnet(), Training(), cluster(chip(), chip("P100")), goodput=1.0)
    assert [estimates.precisions[index] for index in estimates.precision] == ["bf16", "fp32"]
    assert estimates.substituted.tolist() == [False, True]


def test_fp16_named_on_a_p100_runs_at_its_vector_rate() -> None:
    assert why(resnet(), cluster(chip("P100")), Training(precision="fp16")) == ""


def test_inference_chips_are_refused() -> None:
    assert why(resnet(), cluster(chip("Inferentia2"), devices=1)) == "does not train"


def test_a_model_larger_than_memory_says_the_least_that_it_needs() -> None:
    estimates = estimate(llama_8b(), Training(), cluster(chip("L4"), devices=1), goodput=1.0)
    assert REASONS[int(estimates.reason[0])] == "does not fit in memory"
    assert estimates.peak_gib[0] > estimates.capacity_gib[0]


def test_nodes_that_do_not_cluster_are_refused_only_when_there_are_several() -> None:
    assert why(resnet(), cluster(chip(), nodes=2, clusters=False)) == "nodes do not cluster"
    assert why(resnet(), cluster(chip(), nodes=1, clusters=False)) == ""


def test_slices_and_devices_that_do_not_talk_work_alone() -> None:
    mute = chip(talks_to_peers=False)
    assert why(resnet(), cluster(mute, devices=2)) == "devices do not talk to each other"
    assert why(resnet(), cluster(mute, devices=1)) == ""
    assert why(resnet(), cluster(chip(), devices=2, fraction=0.5)) == "devices do not talk to each other"


def test_a_slice_is_slower_in_proportion() -> None:
    whole = estimate(resnet(), Training(), cluster(chip(), devices=1), goodput=1.0)
    half = estimate(resnet(), Training(), cluster(chip(), devices=1, fraction=0.5), goodput=1.0)
    assert half.step_seconds[0] == pytest.approx(2 * whole.step_seconds[0], rel=0.05)


def test_more_replicas_than_samples_are_refused() -> None:
    assert why(resnet(batch=8), cluster(chip(), nodes=4)) == "more accelerators than the batch has samples"


def test_a_tensor_split_that_heads_do_not_allow_has_no_layout() -> None:
    assert why(llama_8b(), cluster(chip()), tensor=3) == "no layout divides the model"


def test_counted_jobs_divide_over_any_number_of_accelerators_but_hold_the_least_on_each() -> None:
    work = explicit_work(memory_gib=1000, least_gib=30)
    estimates = estimate(work, Training(), cluster(chip(), nodes=5), goodput=1.0)
    assert estimates.reason[0] == 0
    assert estimates.states_gib[0] == pytest.approx(30)
    assert why(explicit_work(memory_gib=1, least_gib=90), cluster(chip())) == "does not fit in memory"


@pytest.mark.parametrize(
    ("training", "field"),
    [
        (Training(precision="int3"), "training.precision"),
        (Training(optimizer="adamw_3bit"), "training.optimizer"),
        (Training(software="magic"), "training.software"),
    ],
)
def test_unknown_words_in_training_are_named(training: Training, field: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        estimate(llama_8b(), training, cluster(chip()), goodput=1.0)
    assert caught.value.faults[0].field == field


@pytest.mark.parametrize(
    ("on", "field"),
    [
        (On(accelerator="H1000", gpus=8), "on.accelerator"),
        (On(accelerator="H100", gpus=0), "on.gpus"),
        (On(accelerator="H100", gpus=12, gpus_per_node=8), "on.gpus_per_node"),
        (On(accelerator="H100", gpus=8, internode_gbps=-1.0), "on.internode_gbps"),
        (On(accelerator="H100", gpus=8, layout=LayoutRequest(data=3)), "on.layout.data"),
        (
            On(accelerator="H100", gpus=8, layout=LayoutRequest(data=2, tensor=2, pipeline=1, context=1)),
            "on.layout.data",
        ),
        (On(accelerator="H100", gpus=96, layout=LayoutRequest(tensor=3)), "on.layout.tensor"),
        (On(accelerator="H100", gpus=64, layout=LayoutRequest(pipeline=64)), "on.layout.pipeline"),
        (On(accelerator="H100", gpus=8, layout=LayoutRequest(expert=2)), "on.layout.expert"),
        (On(accelerator="H100", gpus=8, layout=LayoutRequest(zero_stage=4)), "on.layout.zero_stage"),
        (On(accelerator="H100", gpus=8, layout=LayoutRequest(checkpointing="some")), "on.layout.checkpointing"),
        (On(accelerator="H100", gpus=8, micro_batch=1, layout=LayoutRequest(micro_batch=2)), "on.micro_batch"),
        (On(accelerator="H100", gpus=1024, layout=LayoutRequest(tensor=1, pipeline=1)), "on.gpus"),
        (On(accelerator="Inferentia2", gpus=1), "on.accelerator"),
    ],
)
def test_an_unusable_configuration_names_its_field(on: On, field: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        estimate_on(llama_8b(), Training(), on, goodput=0.8)
    assert caught.value.faults[0].field == field


def test_a_named_precision_that_the_chip_lacks_offers_those_it_has() -> None:
    with pytest.raises(UnusableInput, match="fp16") as caught:
        estimate_on(llama_8b(), Training(precision="bf16"), On(accelerator="V100-32GB", gpus=8), goodput=0.8)
    assert caught.value.faults[0].field == "training.precision"


@pytest.mark.parametrize("training", [Training(method="qlora"), Training(optimizer="adamw_8bit")])
def test_quantised_training_needs_a_stack_with_kernels_for_it(training: Training) -> None:
    tpu = cluster(chip("TPU-v6e"), devices=1)
    assert why(llama_8b(), tpu, training) == "no kernels for quantised weights or 8-bit optimizer states"
    assert why(llama_8b(trained=0.001), cluster(chip("MI300X"), devices=1), training) == ""
    with pytest.raises(UnusableInput, match=r"on\.accelerator: TPU-v6e \(xla\) has no kernels"):
        estimate_on(llama_8b(), training, On(accelerator="TPU-v6e", gpus=1), goodput=1.0)
