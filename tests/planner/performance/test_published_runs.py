"""Predicted throughput against published measurements, within a quarter."""

import pytest

from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.performance.estimator_request import LayoutRequest
from gpuplan.planner.workload import work_of

#: (model, samples per step, accelerator, accelerators, precision, layout, tokens/s per accelerator, source)
PUBLISHED = [
    (
        "gpt3-175b",
        1536,
        "A100-80GB-SXM",
        1024,
        "bf16",
        LayoutRequest(tensor=8, pipeline=8, micro_batch=1, checkpointing="full"),
        140e12 / (8 * 174.6e9 * (1 + 2048 / (6 * 12288))),
        "Narayanan 2021, section 5.1: 140 TFLOP/s per GPU on 1024, recomputation counted; 300B tokens in 34 days",
    ),
    (
        "llama-2-7b",
        128,
        "H100-80GB-SXM",
        8,
        "fp8",
        LayoutRequest(tensor=1, pipeline=1, micro_batch=1),
        16847.0,
        "NVIDIA NeMo performance summary, container 24.07",
    ),
    (
        "llama-3-8b",
        128,
        "H100-80GB-SXM",
        8,
        "fp8",
        LayoutRequest(tensor=1, pipeline=1, context=2, micro_batch=1),
        12273.0,
        "NVIDIA NeMo performance summary, container 24.07",
    ),
]


@pytest.mark.parametrize(
    ("model", "batch", "accelerator", "gpus", "precision", "layout", "measured", "source"),
    PUBLISHED,
    ids=[f"{case[0]} on {case[3]} {case[2]}" for case in PUBLISHED],
)
def test_a_published_run_is_met_within_a_quarter(
    model: str,
    batch: int,
    accelerator: str,
    gpus: int,
    precision: str,
    layout: LayoutRequest,
    measured: float,
    source: str,
) -> None:
    training = Training(precision=precision)
    length = work_of(Preset(model=model, tokens=1e9), training).units_per_sample
    work = work_of(Preset(model=model, tokens=1e12, global_batch_tokens=batch * length), training)
    answer = wire(estimate_on(work, training, On(accelerator=accelerator, gpus=gpus, layout=layout), goodput=1.0))
    assert answer["throughput"]["per_accelerator"] == pytest.approx(measured, rel=0.25), source
