from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.api.schemas.estimate_request import parse_estimate_request, parse_layout
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import Preset
from gpuplan.planner.performance.estimator_request import LayoutRequest

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
JOB = {"workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "1B"}}


def configuration(on: Any) -> dict[str, Any]:
    return parse_estimate_request({"job": JOB, "on": on}, now=NOW)[1]


def faults(on: Any, job: Any = JOB) -> dict[str, str]:
    with pytest.raises(UnusableInput) as refused:
        parse_estimate_request({"job": job, "on": on}, now=NOW)
    return {fault.field: fault.message for fault in refused.value.faults}


def test_only_accelerator_and_number_are_needed_and_the_job_has_no_deadline() -> None:
    job, on = parse_estimate_request({"job": JOB, "on": {"accelerator": "a100 80gb", "gpus": 8}}, now=NOW)
    assert isinstance(job.workload, Preset)
    assert job.deadline_hours is None
    assert on == {
        "accelerator": "A100-80GB-SXM",
        "gpus": 8,
        "gpus_per_node": None,
        "internode_gbps": None,
        "layout": LayoutRequest(),
    }


def test_the_micro_batch_may_stand_beside_the_layout_or_in_it() -> None:
    on = {"accelerator": "H100", "gpus": 8}
    for given in ({"micro_batch": 2}, {"layout": {"micro_batch": 2}}, {"micro_batch": 2, "layout": {"micro_batch": 2}}):
        assert configuration(on | given)["layout"].micro_batch == 2
    assert "give it once" in faults(on | {"micro_batch": 2, "layout": {"micro_batch": 4}})["on.micro_batch"]


def test_a_whole_layout_is_taken_as_it_stands() -> None:
    layout = {
        "data": 32,
        "tensor": 2,
        "pipeline": 1,
        "context": 1,
        "expert": 1,
        "interleave": 1,
        "zero_stage": 3,
        "checkpointing": "full",
    }
    on = configuration(
        {"accelerator": "H100", "gpus": 64, "gpus_per_node": 8, "internode_gbps": 3200, "layout": layout}
    )
    assert on["layout"] == LayoutRequest(**layout)  # type: ignore[arg-type]
    assert on["internode_gbps"] == 3200.0


@pytest.mark.parametrize(
    ("on", "field", "message"),
    [
        ({"gpus": 8}, "on.accelerator", "missing"),
        ({"accelerator": "H1000", "gpus": 8}, "on.accelerator", "nearest: H100"),
        ({"accelerator": "cpu", "gpus": 8}, "on.accelerator", "without an accelerator are beyond"),
        ({"accelerator": "H100", "gpus": 0}, "on.gpus", "whole number from 1"),
        ({"accelerator": "H100", "gpus": 8, "gpus_per_node": 3}, "on.gpus_per_node", "does not divide gpus (8)"),
        ({"accelerator": "H100", "gpus": 8, "internode_gbps": -1}, "on.internode_gbps", "negative"),
        ({"accelerator": "H100", "gpus": 8, "layout": {"tensr": 2}}, "on.layout.tensr", "did you mean tensor?"),
        ({"accelerator": "H100", "gpus": 8, "layout": {"tensor": 3}}, "on.layout", "does not divide gpus (8)"),
        ({"accelerator": "H100", "gpus": 8, "layout": {"zero_stage": 4}}, "on.layout.zero_stage", "from 0 to 3"),
        (
            {"accelerator": "H100", "gpus": 8, "layout": {"data": 2, "tensor": 2, "pipeline": 1, "context": 1}},
            "on.layout",
            "is 4, but must be gpus (8)",
        ),
        (
            {"accelerator": "H100", "gpus": 8, "layout": {"interleave": 2, "pipeline": 1}},
            "on.layout.interleave",
            "2 or more stages",
        ),
        (5, "on", "write a mapping"),
    ],
)
def test_a_bad_configuration_is_named_with_what_would_be_accepted(on: Any, field: str, message: str) -> None:
    faults_by_field = faults(on)
    assert list(faults_by_field) == [field]
    assert message in faults_by_field[field]


def test_faults_of_job_and_configuration_come_together() -> None:
    job = JOB | {"training": {"rank": 8}}
    assert set(faults({"accelerator": "H100", "gpus": 8, "gpus_per_node": 3}, job)) == {
        "job.training.rank",
        "on.gpus_per_node",
    }


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("fsdp,tp=2,pp=4", {"zero_stage": 3, "tensor": 2, "pipeline": 4}),
        ("ddp", {"zero_stage": 0}),
        (" ZeRO1 , DP=8, mb = 2 ", {"zero_stage": 1, "data": 8, "micro_batch": 2}),
        (
            "zero=2,cp=2,ep=4,vpp=2,ckpt=full",
            {"zero_stage": 2, "context": 2, "expert": 4, "interleave": 2, "checkpointing": "full"},
        ),
    ],
)
def test_a_layout_may_be_written_as_a_line(text: str, layout: dict[str, Any]) -> None:
    assert parse_layout(text) == layout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fdsp", "did you mean fsdp?"),
        ("tp", "fsdp,tp=2,pp=4"),
        ("tp=two", "write a whole number"),
        ("tp=2,tp=4", "tensor is given twice"),
        ("ddp,zero=1", "zero_stage is given twice"),
        ("", "fsdp,tp=2,pp=4"),
        ("tp=2," * 100, "is not a layout"),
    ],
)
def test_a_line_that_is_no_layout_is_refused_with_an_example(text: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        parse_layout(text)
    assert message in str(refused.value)
