"""A measured run takes the measured hours on its own machines, and elsewhere the ratio of two predictions."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from gpuplan.api.schemas.estimate_request import parse_estimate_request
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.workloads import MEASURED_CLASSES
from gpuplan.planner.performance.configuration_on_request import On
from gpuplan.planner.performance.fitted_constants import value
from gpuplan.planner.performance.prediction_bands import log_sigma, sigma_of
from gpuplan.planner.performance.single_configuration import estimate_on
from gpuplan.planner.workload import work_of

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def wall_hours(workload: dict[str, Any], accelerator: str, gpus: int) -> float:
    """What `gpuplan estimate` says of the workload on these accelerators."""
    document = {"job": {"workload": workload}, "on": {"accelerator": accelerator, "gpus": gpus}}
    job, on = parse_estimate_request(document, now=NOW)
    return estimate_on(work_of(job.workload, job.training), job.training, On(**on), goodput=None).hours_with_goodput


@pytest.mark.parametrize("like", [*MEASURED_CLASSES, "qwen2.5-7b", "resnet-50"])
def test_the_run_takes_the_measured_hours_on_the_machines_it_ran_on(like: str) -> None:
    workload = {"kind": "measured", "on": "8 x A100-80GB-SXM", "hours": 20, "like": like}
    assert wall_hours(workload, "A100-80GB-SXM", 8) == pytest.approx(20, rel=0.02)


def test_twice_the_hours_are_twice_the_hours_elsewhere() -> None:
    short, long = (
        wall_hours({"kind": "measured", "on": "8 x V100-32GB", "hours": hours, "like": "cnn"}, "H100-80GB-SXM", 8)
        for hours in (10, 20)
    )
    assert long == pytest.approx(2 * short, rel=0.02)
    assert short < 10


def test_a_speed_with_an_amount_is_as_many_hours() -> None:
    # 8e9 tokens at 2e5 a second are 11.1 h of training, without failures, checkpoints and evaluation.
    speed = {"tokens_per_second": 2e5, "tokens": 8e9, "like": "llama-3-8b"}
    elsewhere = wall_hours({"kind": "measured", "on": "16 x H100-80GB-SXM", "nodes": 2} | speed, "H100-80GB-SXM", 16)
    assert elsewhere == pytest.approx(8e9 / 2e5 / 3600, rel=0.06)


@pytest.mark.parametrize(
    ("workload", "field", "message"),
    [
        ({"on": "8 x A100"}, "hours", "give hours, or tokens_per_second with tokens"),
        ({"on": "8 x A100", "hours": 2, "samples_per_second": 5, "samples": 10}, "samples_per_second", "contradicts"),
        ({"on": "8 x A100", "tokens_per_second": 5}, "tokens", "is missing; tokens_per_second needs it"),
        ({"on": "8 x A100", "hours": 2, "nodes": 3}, "nodes", "does not divide the 8 accelerators"),
        ({"on": "8 x banana", "hours": 2}, "on", "unknown accelerator"),
        ({"on": "0 x A100", "hours": 2}, "on", "is not a number of accelerators"),
        ({"on": "8 x A100", "hours": 2, "like": "cn"}, "like", "is neither a class .llm-pretrain"),
        ({"on": "1 x T4", "tokens_per_second": 1e6, "tokens": 1e12}, "tokens_per_second", "have a peak of"),
    ],
)
def test_what_no_run_can_have_been_is_refused_at_its_field(workload: dict[str, Any], field: str, message: str) -> None:
    document = {"workload": {"kind": "measured", "like": "llama-3-8b"} | workload, "deadline": "3d"}
    with pytest.raises(UnusableInput, match=message) as refused:
        parse_job(document, now=NOW)
    assert field in {fault.path[-1] for fault in refused.value.faults}


def test_accelerators_without_a_number_of_nodes_are_in_usual_machines() -> None:
    run = {"kind": "measured", "on": "64 x V100-32GB", "hours": 100, "like": "llm-pretrain"}
    assumed, stated, single = (
        wall_hours(run | nodes, "H100-80GB-SXM", 8) for nodes in ({}, {"nodes": 8}, {"nodes": 1})
    )
    assert assumed == stated
    # One machine of 64 would have no fabric between its cards.
    assert assumed != single


def test_a_run_that_does_not_fit_by_the_memory_model_says_so() -> None:
    def notes(on: str) -> str:
        workload = {"kind": "measured", "on": on, "hours": 5, "like": "llama-3-70b"}
        return " ".join(parse_job({"workload": workload, "deadline": "30d"}, now=NOW).assumptions)

    assert "does not fit on 1 x T4" in notes("1 x T4")
    assert "does not fit" not in notes("64 x H100-80GB-SXM")


def test_the_band_of_a_measured_run_is_that_of_ratios_where_its_model_is_named() -> None:
    measured = {"kind": "measured", "on": "8 x V100-32GB", "hours": 20}
    sigma = {
        like: float(log_sigma(work_of(job.workload, job.training), np.zeros(1))[0])
        for like in ("dlrm", "recommender", "resnet-50", "vit-b/16")
        for job in [parse_job({"workload": measured | {"like": like}}, now=NOW)]
    }
    assert sigma["dlrm"] == value("ratio_sigma", "recommender") < sigma_of("recommender")
    assert sigma["recommender"] == sigma_of("recommender")
    assert sigma["resnet-50"] == value("ratio_sigma", "convolutional")
    # Too few of its runs did the same work on two machines.
    assert sigma["vit-b/16"] == sigma_of("vision-transformer")
