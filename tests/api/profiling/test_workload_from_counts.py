"""What every sample adds and what a pass costs anyway are told apart by two batch sizes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.api.profiling.tensor_shapes import read_shape
from gpuplan.api.profiling.workload_from_counts import workload
from gpuplan.api.schemas.job import parse_job
from gpuplan.catalog.runtime.errors import UnusableInput

pytestmark = pytest.mark.slow(reason="needs torch")

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
PER_SAMPLE = {
    "matmul_flops": 1000.0, "convolution_flops": 600.0, "attention_flops": 50.0, "attention_scores": 7.0,
    "eager_bytes": 300.0, "fused_bytes": 200.0, "saved_bytes": 80.0, "selective_saved_bytes": 60.0,
    "full_saved_bytes": 20.0,
}  # fmt: skip
MODEL = {"parameters": 10, "trainable_parameters": 8, "buffer_bytes": 3, "modules": 1}


def result(*batches: int, fixed: float = 0.0, power: float = 1.0) -> dict[str, Any]:
    """As the counter would find it in a model of these counts."""
    counts = [
        {name: value * batch**power + fixed for name, value in PER_SAMPLE.items()}
        | {"batch": batch, "kernels": 30, "fused_kernels": 20, "sequential_steps": 1}
        for batch in batches
    ]
    base = {"notes": [], "device": "meta", "torch": "2.13.0", "stated_batch": batches[0]}
    return base | {"counts": counts, "model": MODEL}


def made(counts: dict[str, Any], **amounts: float) -> dict[str, Any]:
    document, _ = workload(
        counts, model="m:f", samples=amounts.get("samples"), global_batch=amounts.get("global_batch")
    )
    return document


@given(batch=st.integers(1, 4096), fixed=st.integers(0, 10**6))
def test_two_batch_sizes_give_back_the_counts_they_were_made_of(batch: int, fixed: int) -> None:
    document = made(result(batch, 2 * batch, fixed=float(fixed)))
    assert document["bytes_per_sample"] == pytest.approx(300)
    assert document["bytes_per_pass"] == pytest.approx(fixed)
    assert document["activation_bytes_per_sample"] == pytest.approx(80)
    assert document["buffer_bytes"] == pytest.approx(3 + fixed)
    assert document["flops_per_sample"] * batch == pytest.approx(1050 * batch + 2 * fixed)
    assert document["kernels"] == 30
    parse_job({"name": "counted", "workload": document}, now=NOW)


def test_what_grows_faster_than_the_batch_is_shared_out_and_said() -> None:
    document = made(result(8, 16, power=2.0))
    assert document["flops_per_sample"] == 1050 * 16
    assert any("grow faster than the batch" in note for note in document["notes"])


def test_one_batch_size_puts_everything_down_to_the_samples() -> None:
    document = made(result(16, fixed=160.0))
    assert (document["bytes_per_sample"], document["bytes_per_pass"], document["kernels"]) == (310, 0, 30)


def test_amounts_that_are_not_given_are_filled_in_and_said() -> None:
    document, assumptions = workload(result(16, 32), model="m:f", samples=None, global_batch=None)
    assert (document["samples"], document["global_batch_samples"]) == (16_000, 16)
    assert len(assumptions) == 2
    document, assumptions = workload(result(16, 32), model="m:f", samples=1e6, global_batch=256.0)
    assert (document["samples"], document["global_batch_samples"], assumptions) == (1_000_000, 256, [])


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [("16x3x224x224", (16, 3, 224, 224), "float32"), ("8:int64", (8,), "int64"), (" 4x2:bf16 ", (4, 2), "bfloat16")],
)
def test_a_shape_is_read_as_people_write_it(text: str, shape: tuple[int, ...], dtype: str) -> None:
    read = read_shape(text, field="input")
    assert (read.shape, read.dtype) == (shape, dtype)


@pytest.mark.parametrize(
    "text", ["", "x", "16x", "16,3", "-1x3", "1.5x2", "0x3", "9x9:int7", "99999999x99999999", "1x" * 20 + "1", "٣x٤"]
)
def test_what_is_no_shape_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UnusableInput, match=r"16x3x224x224|accepted") as refused:
        read_shape(text, field="input")
    assert refused.value.faults[0].field == "input"
