"""Measurements on owned machines, and the estimates that follow from them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.model.accelerators import find_accelerator
from gpuplan.catalog.model.measured_rates import COPY_SHARE, MatmulRate, MeasuredRates, TransformerStep, as_measured
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import estimate
from gpuplan.planner.performance.accelerator_constants import best_matmul, chips_of
from gpuplan.planner.performance.estimator_request import Estimates, Machines
from gpuplan.planner.performance.measured_steps import MOST, WEIGHT, as_timed, predicted_seconds, slowdown, timing_note
from gpuplan.planner.workload import work_of

CHIP = find_accelerator("RTX 3090")
PEAK = CHIP.bf16_tflops or 0.0
AS_IN_THE_TABLE = MeasuredRates(
    measured_at=datetime(2026, 11, 20, tzinfo=UTC),
    matmuls=(
        MatmulRate(precision="bf16", size=1024, tflops=0.4 * PEAK),
        MatmulRate(precision="bf16", size=8192, tflops=best_matmul(CHIP)[0] * PEAK),
    ),
    memory_gbs=CHIP.memory_gbs * COPY_SHARE,
)
STEP = TransformerStep(
    precision="bf16",
    software="fused",
    seconds=1.0,
    batch=4,
    layers=4,
    hidden_size=2048,
    ffn_size=8192,
    attention_heads=16,
    vocabulary_size=32768,
    sequence_length=1024,
)
TRAINING = Training(precision="bf16", method="lora")
WORK = work_of(Preset(model="llama-3-8b", tokens=1e8, sequence_length=2048), TRAINING)


def rates(*, scale: float = 1.0, **changes: Any) -> MeasuredRates:
    """As the table has it, with every matmul `scale` times as fast."""
    matmuls = tuple(replace(matmul, tflops=matmul.tflops * scale) for matmul in AS_IN_THE_TABLE.matmuls)
    return replace(AS_IN_THE_TABLE, matmuls=matmuls, **changes)


def cluster(*chips: Any) -> Machines:
    """One machine with one device of each chip."""
    count = len(chips)
    ones = np.ones(count, np.int64)
    return Machines(
        accelerators=tuple(chips),
        accelerator=np.arange(count),
        devices=ones,
        fraction=np.ones(count),
        device_memory_mib=np.array([float(chip.device_memory_mib) for chip in chips]),
        intranode_gbs=np.full(count, np.nan),
        scaleup_domain=ones,
        internode_gbps=np.full(count, np.nan),
        clusters=np.zeros(count, np.bool_),
        nodes=ones,
    )


def estimates_of(*chips: Any) -> Estimates:
    return estimate(WORK, TRAINING, cluster(*chips), goodput=0.8)


def test_a_machine_measured_as_the_table_has_it_is_estimated_as_the_table_has_it() -> None:
    usual, measured = estimates_of(CHIP, as_measured(CHIP, AS_IN_THE_TABLE)).hours
    assert measured == pytest.approx(usual)


@given(scale=st.floats(0.3, 1.05))
def test_a_machine_is_as_much_slower_at_matmuls_as_was_measured(scale: float) -> None:
    usual, measured = estimates_of(CHIP, as_measured(CHIP, rates(scale=scale))).terms["matmul"]
    # A chip with fewer FLOP per byte of its memory loses a little less to the size of matrices.
    assert measured == pytest.approx(usual / scale, rel=0.05)
    assert (measured < usual / scale) == (scale < 1) or measured == pytest.approx(usual / scale)


def test_the_best_size_is_the_ceiling_and_a_precision_not_measured_keeps_the_tables() -> None:
    reach = chips_of((CHIP, as_measured(CHIP, rates(scale=0.5)))).reach
    usual, measured = reach.T
    assert measured[3] == pytest.approx(0.5 * usual[3])
    assert measured[0] == usual[0]


def test_memory_bound_work_grows_with_the_inverse_of_the_bandwidth() -> None:
    chips = (as_measured(CHIP, rates(memory_gbs=AS_IN_THE_TABLE.memory_gbs / slower)) for slower in (2, 4))
    usual, half, quarter = estimates_of(CHIP, *chips).terms["memory_bound"]
    # Launches that compute does not hide take their time at any bandwidth.
    assert quarter - half == pytest.approx(2 * (half - usual))
    assert 1.8 * usual < half <= 2 * usual


def test_host_bandwidth_stands_in_for_the_data_sheets_pcie() -> None:
    assert chips_of((as_measured(CHIP, rates(host_gbs=6.5)),)).pcie_gbs[0] == 6.5


def test_a_measured_chip_of_an_unmeasured_generation_has_the_narrower_band() -> None:
    old = find_accelerator("GTX 1080 Ti")
    measured = as_measured(old, MeasuredRates(measured_at=AS_IN_THE_TABLE.measured_at, matmuls=(), memory_gbs=400.0))
    assert list(chips_of((old, measured)).measured) == [False, True]


def test_a_step_as_predicted_changes_nothing() -> None:
    chip = as_measured(CHIP, rates(transformer=STEP))
    predicted = predicted_seconds(chip, STEP)
    assert predicted is not None
    on_time = as_measured(CHIP, rates(transformer=replace(STEP, seconds=predicted)))
    assert slowdown(on_time, WORK, TRAINING) == pytest.approx(1.0)


@given(off=st.floats(0.2, 5.0))
def test_a_job_takes_over_half_of_how_far_off_the_step_was_within_bounds(off: float) -> None:
    predicted = predicted_seconds(as_measured(CHIP, rates(transformer=STEP)), STEP) or 0.0
    chip = as_measured(CHIP, rates(transformer=replace(STEP, seconds=predicted * off)))
    assert slowdown(chip, WORK, TRAINING) == pytest.approx(min(max(off, 1 / MOST), MOST) ** WEIGHT)


def test_a_plan_says_how_much_a_timed_step_changes_and_nothing_where_it_does_not() -> None:
    predicted = predicted_seconds(as_measured(CHIP, rates(transformer=STEP)), STEP) or 0.0
    slow, fast, same = (
        as_measured(CHIP, rates(transformer=replace(STEP, seconds=predicted * off))) for off in (1.21, 0.81, 1.0)
    )
    assert "10% more compute time" in timing_note(slow, WORK, TRAINING)[0]
    assert "10% less compute time" in timing_note(fast, WORK, TRAINING)[0]
    assert timing_note(same, WORK, TRAINING) == timing_note(CHIP, WORK, TRAINING) == ()


@given(faster=st.floats(1.0, 1.2), dominated_offers_recheck=st.floats(1.0, 1.1), host=st.floats(1.0, 1.2))
def test_a_machine_measured_faster_is_never_estimated_slower(
    faster: float, dominated_offers_recheck: float, host: float
) -> None:
    slow = as_measured(CHIP, rates(host_gbs=20.0))
    memory = AS_IN_THE_TABLE.memory_gbs * dominated_offers_recheck
    fast = as_measured(CHIP, rates(scale=faster, memory_gbs=memory, host_gbs=20.0 * host))
    before, after = estimates_of(slow, fast).hours
    assert after <= before * (1 + 1e-9)


def test_a_slow_step_stretches_compute_and_all_that_follows_from_it() -> None:
    chip = as_measured(CHIP, rates(transformer=replace(STEP, seconds=1e3)))
    machines = cluster(CHIP, chip)
    before = estimate(WORK, TRAINING, machines, goodput=0.8)
    after = as_timed(before, machines, WORK, TRAINING)
    factor = MOST**WEIGHT
    assert after.hours[0] == before.hours[0]
    assert after.terms["matmul"][1] == pytest.approx(factor * before.terms["matmul"][1])
    assert after.terms["optimizer"][1] == before.terms["optimizer"][1]
    assert after.step_seconds[1] == pytest.approx(sum(term[1] for term in after.terms.values()))
    stretch = after.hours[1] / before.hours[1]
    assert 1.0 < stretch <= factor
    assert after.mfu[1] * stretch == pytest.approx(before.mfu[1])
    assert after.hours_with_goodput[1] == pytest.approx(after.hours[1] / 0.8)


def test_a_step_says_nothing_of_other_software_or_other_kinds_of_model() -> None:
    chip = as_measured(CHIP, rates(transformer=replace(STEP, seconds=1e3)))
    plain = replace(TRAINING, software="plain")
    assert slowdown(chip, work_of(Preset(model="llama-3-8b", tokens=1e8), plain), plain) == 1.0
    images = work_of(Preset(model="resnet-50", samples=1e6), Training())
    assert slowdown(chip, images, Training()) == 1.0


def test_a_machine_that_cannot_run_the_job_still_cannot() -> None:
    small = as_measured(find_accelerator("GTX 1060"), rates(transformer=replace(STEP, seconds=1e3)))
    machines = cluster(CHIP, small)
    before = estimate(WORK, TRAINING, machines, goodput=0.8)
    after = as_timed(before, machines, WORK, TRAINING)
    assert before.reason[1] == after.reason[1] > 0
    assert np.isinf(after.hours[1])
