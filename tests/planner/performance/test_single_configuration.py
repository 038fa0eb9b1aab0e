"""One configuration: the whole answer, what was assumed, and a job that does not fit."""

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Training
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.performance.estimator_request import LayoutRequest
from tests.planner.performance.cases import explicit_work, llama_8b, resnet


def test_the_answer_has_every_part_and_echoes_what_was_assumed() -> None:
    answer = wire(estimate_on(llama_8b(), Training(), On(accelerator="H100-80GB-SXM", gpus=64), goodput=0.8))
    assert answer["hours_with_goodput"] == pytest.approx(answer["hours"] / 0.8)
    assert answer["throughput"]["unit"] == "tokens/s"
    assert answer["throughput"]["per_accelerator"] == pytest.approx(answer["throughput"]["value"] / 64)
    assert sum(answer["terms"].values()) == pytest.approx(answer["step_seconds"])
    assert answer["band"]["low_hours"] < answer["hours"] < answer["band"]["high_hours"]
    assert answer["on"]["gpus_per_node"] == {"value": 8, "assumed": True}
    assert answer["on"]["internode_gbps"] == {"value": 3200.0, "assumed": True}
    assert answer["memory"]["fits"] is True
    assert answer["precision"] == "bf16"


def test_what_is_given_is_not_marked_as_assumed() -> None:
    on = On(accelerator="H100-80GB-SXM", gpus=8, gpus_per_node=4, internode_gbps=400.0)
    answer = wire(estimate_on(llama_8b(), Training(), on, goodput=0.8))
    assert answer["on"]["gpus_per_node"] == {"value": 4, "assumed": False}
    assert answer["on"]["internode_gbps"] == {"value": 400.0, "assumed": False}
    assert answer["on"]["nodes"] == 2


def test_a_layout_in_full_is_kept() -> None:
    layout = LayoutRequest(data=4, tensor=2, pipeline=2, context=1, zero_stage=1, micro_batch=1, checkpointing="full")
    on = On(accelerator="A100-80GB-SXM", gpus=16, layout=layout)
    answer = wire(estimate_on(llama_8b(), Training(precision="bf16"), on, goodput=0.8))
    asked = {"data": 4, "tensor": 2, "pipeline": 2, "context": 1, "zero_stage": 1, "micro_batch": 1}
    assert asked.items() <= answer["layout"].items()
    assert answer["layout"]["checkpointing"] == "full"


def test_a_job_that_does_not_fit_is_timed_as_if_it_did_and_says_so() -> None:
    answer = wire(estimate_on(llama_8b(), Training(), On(accelerator="L4", gpus=1), goodput=0.8))
    memory = answer["memory"]
    assert memory["fits"] is False
    assert memory["peak_gib"] > memory["capacity_gib"]
    assert answer["hours"] > 0
    assert any("does not fit" in warning for warning in answer["warnings"])


def test_an_unusual_count_takes_the_largest_machine_that_divides_it() -> None:
    answer = wire(estimate_on(resnet(), Training(), On(accelerator="A100-80GB-SXM", gpus=12), goodput=0.8))
    assert answer["on"]["gpus_per_node"]["value"] == 6


def test_a_substituted_precision_is_warned_about() -> None:
    answer = wire(estimate_on(resnet(), Training(), On(accelerator="V100-32GB", gpus=4), goodput=0.8))
    assert answer["precision"] == "fp16"
    assert any("fp16 in place of bf16" in warning for warning in answer["warnings"])


def test_a_job_larger_than_any_memory_is_answered_with_what_it_needs() -> None:
    answer = wire(estimate_on(explicit_work(memory_gib=1.5e6), Training(), On(accelerator="L40S", gpus=1), goodput=1.0))
    assert not answer["memory"]["fits"]
    assert answer["memory"]["peak_gib"] > 1e6


def test_a_micro_batch_beyond_the_batch_is_refused_at_its_own_field() -> None:
    with pytest.raises(UnusableInput, match=r"on\.micro_batch: 100000 is more than the 512 samples of a step"):
        estimate_on(llama_8b(), Training(), On(accelerator="H100", gpus=8, micro_batch=100_000), goodput=1.0)


def test_a_mig_slice_is_slower_and_smaller_than_its_card_and_says_how_it_was_planned() -> None:
    card = wire(estimate_on(resnet(), Training(), On(accelerator="A100-80GB-SXM", gpus=1), goodput=0.8))
    part = wire(estimate_on(resnet(), Training(), On(accelerator="A100-80GB-SXM:3g.40gb", gpus=1), goodput=0.8))
    assert part["on"]["accelerator"] == "A100-80GB-SXM:3g.40gb"
    assert part["memory"]["capacity_gib"] == pytest.approx(card["memory"]["capacity_gib"] / 2, rel=0.03)
    assert 2 < part["hours"] / card["hours"] <= 18 / 7 * 1.001
    assert any("planned as 38.9% of the card" in sentence for sentence in part["assumptions"])


def test_several_mig_slices_are_refused() -> None:
    with pytest.raises(UnusableInput, match=r"on\.gpus: A100-80GB-SXM:3g.40gb devices work alone; give 1"):
        estimate_on(resnet(), Training(), On(accelerator="A100-80GB-SXM:3g.40gb", gpus=2), goodput=0.8)
