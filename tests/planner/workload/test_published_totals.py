"""Models known by their totals: what is published comes out, and sharded tables are spread, exchanged, never reduced."""

import pytest

from gpuplan.catalog.runtime.errors import UnusableInput
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


def test_adapters_of_flux_are_those_of_its_published_layers() -> None:
    """19 blocks with projections of their own for image and text, 38 that project both together, of width 3072."""
    full = work_of(Preset(model="flux", samples=1000), SGD)
    lora = work_of(Preset(model="flux", samples=1000), Training(method="lora", rank=16, precision="bf16"))
    layer, attention, feed_forward = 3072, 4 * (3072 + 3072), 2 * (3072 + 12288)
    joint = 3 * (layer + layer) + (layer + 4 * layer) + (5 * layer + layer)
    assert lora.trainable_parameters == 16 * (19 * 2 * (attention + feed_forward) + 38 * joint)
    assert lora.parameters == full.parameters + lora.trainable_parameters
    assert full.flops_per_unit * 2 / 3 < lora.flops_per_unit < full.flops_per_unit * 0.7


@pytest.mark.parametrize("name", [name for name in WHOLE if "adapter_width" in dict(presets()[name].details)])
def test_adapters_are_counted_once_per_position_of_the_sample(name: str) -> None:
    """A projection that widens fourfold has four fifths of (in + out) x narrower parameters, a square one half of them.

    Multiplied at each position, they cost no more than the whole network does.
    """
    details = {key: float(value) for key, value in dict(presets()[name].details).items()}
    assert 0.5 * details["adapter_width"] * details["narrowest"] < details["parameters"]
    assert 0.5 * details["adapter_gflops"] * details["narrowest"] < details["gflops"]
    with pytest.raises(UnusableInput, match="not below"):
        work_of(Preset(model=name, samples=1e6), Training(method="lora", rank=int(details["narrowest"])))


def test_a_model_whose_projections_are_not_known_is_refused_adapters() -> None:
    with pytest.raises(UnusableInput, match=r"knows none in mamba2-1\.3b; accepted: full"):
        work_of(Preset(model="mamba2-1.3b", tokens=1e9), Training(method="lora"))
