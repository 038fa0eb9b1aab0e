"""Models known by their totals: what is published comes out, and sharded tables are spread, exchanged, never reduced."""

import pytest

from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.model.wire import wire
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.workload import presets, work_of

SGD = Training(optimizer="sgd", precision="fp16")
WHOLE = sorted(name for name, row in presets().items() if row.architecture == "whole")


@pytest.mark.parametrize("name", WHOLE)
def test_flops_are_three_times_the_published_forward_ones_and_parameters_as_published(name: str) -> None:
    row = presets()[name]
    details = dict(row.details)
    amount = {"tokens": 1e10} if row.unit == "tokens" else {"samples": 1e9}
    work = work_of(Preset(model=name, **amount), SGD)  # type: ignore[arg-type]
    assert work.flops_per_unit == pytest.approx(3 * float(details["gflops"]) * 1e9)
    assert work.parameters == pytest.approx(row.published_parameters)
    assert row.source


def test_counted_totals_agree_with_counting_layer_by_layer() -> None:
    """ResNeXt-50 moves what ResNet-50 does at the same outputs; 11.1 and 14.4 million in timm's table."""
    whole = work_of(Preset(model="resnext-50", samples=1e6), SGD)
    layered = work_of(Preset(model="resnet-50", samples=1e6), SGD)
    assert whole.vector_bytes_per_unit / 14.4 == pytest.approx(layered.vector_bytes_per_unit / 11.1, rel=0.1)


def test_sharded_tables_are_spread_over_the_devices_and_not_among_the_reduced_parameters() -> None:
    work = work_of(Preset(model="dlrm", samples=4e9), SGD)
    assert work.trainable_parameters < 1e7 < work.table_parameters
    states = [
        wire(estimate_on(work, SGD, On(accelerator="A100-80GB-SXM", gpus=gpus), goodput=1.0))["memory"]["states_gib"]
        for gpus in (8, 16)
    ]
    assert states[0] == pytest.approx(4 * work.table_parameters / 8 / 2**30, rel=0.02)
    assert states[1] == pytest.approx(states[0] / 2, rel=0.02)


def test_exchanging_table_rows_takes_time_that_a_slower_fabric_lengthens() -> None:
    work = work_of(Preset(model="dlrm", samples=4e9), SGD)
    seconds = [
        wire(estimate_on(work, SGD, On(accelerator="A100-80GB-SXM", gpus=32, internode_gbps=gbps), goodput=1.0))[
            "step_seconds"
        ]
        for gbps in (1600.0, 200.0)
    ]
    assert seconds[1] > 1.2 * seconds[0]
