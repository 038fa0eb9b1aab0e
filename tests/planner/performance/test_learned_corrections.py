"""Laws of learning: nothing without runs, the observed ratio with many, little from one, and never out of bounds."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.model.job import Training
from gpuplan.planner.model.learned import NOTHING, AcceleratorCorrection, LearnedCorrections, Shift
from gpuplan.planner.performance.corrected_estimates import estimate_learned
from gpuplan.planner.performance.estimator_request import Estimates, arrays_of
from gpuplan.planner.performance.fastest_layout import estimate
from gpuplan.planner.performance.learned_corrections import (
    MOST_LOG_HOURS,
    MOST_LOG_MEMORY,
    RUN_SHARE,
    learned_from,
    least_sigma,
    run_sigma,
)
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.performance.prediction_bands import sigma_of
from gpuplan.planner.workload.step_work import TASKS
from tests.planner.performance.cases import chip, cluster, llama_8b

quick = settings(deadline=None)
RATIOS = st.floats(-3.0, 3.0)
CHIPS = st.sampled_from(("H100-80GB-SXM", "A100-80GB-SXM", "L4"))
CLASSES = st.sampled_from(TASKS)


def a_run(log_hours: float, accelerator: str = "L4", *, task: str = "language", memory: float | None = None) -> PastRun:
    return PastRun(task=task, accelerator=accelerator, log_hours=log_hours, log_memory=memory, log_sigma=sigma_of(task))


RUNS = st.lists(st.builds(a_run, RATIOS, CHIPS, memory=st.none() | RATIOS), min_size=1, max_size=12).map(tuple)


def same(one: Estimates, other: Estimates) -> bool:
    names = arrays_of(one)
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in names) and all(
        np.array_equal(one.terms[name], other.terms[name]) for name in one.terms
    )


def on_three(learned: LearnedCorrections) -> Estimates:
    machines = cluster(chip("H100-80GB-SXM"), chip("A100-80GB-SXM"), chip("L4"))
    return estimate_learned(llama_8b(), Training(), machines, goodput=0.8, learned=learned)


def test_without_runs_estimates_are_the_same_to_the_last_bit() -> None:
    machines = cluster(chip("H100-80GB-SXM"), chip("A100-80GB-SXM"), chip("L4"))
    plain = estimate(llama_8b(), Training(), machines, goodput=0.8)
    assert same(on_three(NOTHING), plain)
    assert same(on_three(learned_from((), "language")), plain)
    assert same(on_three(learned_from((a_run(1.0, task="encoder"),), "language")), plain)


@pytest.mark.slow(reason="one long case")
@quick
@given(st.floats(-2.0, 2.0), CLASSES)
def test_many_consistent_runs_tend_to_their_ratio_and_leave_only_the_spread_between_runs(
    ratio: float, task: str
) -> None:
    correction = learned_from((a_run(ratio, task=task),) * 2_000, task).of("L4")
    assert correction.hours.log == pytest.approx(ratio, abs=0.01)
    left = sigma_of(task) ** 2 - correction.variance_removed
    assert math.sqrt(left) == pytest.approx(RUN_SHARE * sigma_of(task), rel=0.02)


@quick
@given(RATIOS, CLASSES, CHIPS)
def test_one_run_moves_an_estimate_by_less_than_its_weight_against_the_prior(
    ratio: float, task: str, other: str
) -> None:
    sigma = sigma_of(task)
    most = 1.0 / (1.0 + run_sigma(sigma) ** 2 / sigma**2)
    learned = learned_from((a_run(ratio, task=task),), task)
    assert abs(learned.of("L4").hours.log) <= most * abs(ratio)
    assert abs(learned.of(other).hours.log) <= most * abs(ratio)


@pytest.mark.slow(reason="one long case")
@quick
@given(RUNS)
def test_factors_and_bands_stay_in_bounds_whatever_was_reported(runs: tuple[PastRun, ...]) -> None:
    learned = learned_from(runs, "language")
    for correction in (*learned.corrections, learned.others):
        assert abs(correction.hours.log) <= MOST_LOG_HOURS
        assert abs(correction.memory.log) <= MOST_LOG_MEMORY
        assert 0.0 <= correction.variance_removed < sigma_of("language") ** 2


@pytest.mark.slow(reason="one long case")
@quick
@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_reports_changes_nothing(runs: tuple[PastRun, ...], draw: random.Random) -> None:
    shuffled = list(runs)
    draw.shuffle(shuffled)
    assert learned_from(tuple(shuffled), "language") == learned_from(runs, "language")


@pytest.mark.slow(reason="one long case")
@quick
@given(RUNS, RUNS)
def test_forgetting_restores_the_earlier_answer_exactly(
    remembered: tuple[PastRun, ...], forgotten: tuple[PastRun, ...]
) -> None:
    before = learned_from(remembered, "language")
    learned_from(remembered + forgotten, "language")
    learned_from.cache_clear()
    assert learned_from((remembered + forgotten)[: len(remembered)], "language") == before


@quick
@given(st.floats(0.05, 1.5), st.integers(1, 20))
def test_an_accelerator_learns_more_from_its_own_runs_than_from_those_of_others(ratio: float, count: int) -> None:
    learned = learned_from((a_run(ratio),) * count, "language")
    assert 0 < learned.of("T4").hours.log < learned.of("L4").hours.log < ratio
    assert 0 < learned.of("T4").variance_removed < learned.of("L4").variance_removed


def test_runs_of_another_class_of_work_teach_nothing() -> None:
    assert learned_from((a_run(1.0, task="encoder"),), "language") is NOTHING


def test_runs_on_a_chip_that_nobody_measured_teach_more() -> None:
    known = learned_from((a_run(0.5),), "language").of("L4")
    unknown = PastRun(
        task="language", accelerator="L4", log_hours=0.5, log_sigma=math.hypot(sigma_of("language"), 0.25)
    )
    assert learned_from((unknown,), "language").of("L4").hours.log > known.hours.log


def test_hours_teach_less_than_a_throughput_and_the_less_the_smaller_their_share_of_training() -> None:
    rate = learned_from((a_run(0.5),), "language").of("L4").hours.log
    shifts = []
    for share in (1.0, 0.5, 0.1):
        wall = PastRun(
            task="language",
            accelerator="L4",
            log_hours=0.5,
            extra_sigma=0.11,
            training_share=share,
            log_sigma=sigma_of("language"),
        )
        shifts.append(learned_from((wall,), "language").of("L4").hours.log)
    assert rate > shifts[0] > shifts[1] > shifts[2] > 0


def corrected(hours: float = 1.0, memory: float = 1.0, removed: float = 0.0) -> LearnedCorrections:
    correction = AcceleratorCorrection(
        accelerator="L4",
        hours=Shift(log=math.log(hours), runs=3),
        memory=Shift(log=math.log(memory), runs=3),
        variance_removed=removed,
    )
    return LearnedCorrections(task="language", corrections=(correction,))


@settings(max_examples=15, deadline=None)
@given(st.floats(0.2, 5.0))
def test_hours_are_scaled_on_that_accelerator_alone_and_rates_with_them(factor: float) -> None:
    plain, corrected_estimates = on_three(NOTHING), on_three(corrected(hours=factor))
    scale = np.array([1.0, 1.0, factor])
    for name in ("hours", "hours_with_goodput", "step_seconds"):
        assert getattr(corrected_estimates, name) == pytest.approx(getattr(plain, name) * scale)
    for name in ("units_per_second", "mfu", "tflops_per_accelerator"):
        assert getattr(corrected_estimates, name) == pytest.approx(getattr(plain, name) / scale)
    assert np.sum(list(corrected_estimates.terms.values()), axis=0) == pytest.approx(corrected_estimates.step_seconds)


def test_the_band_narrows_but_never_below_the_spread_from_run_to_run() -> None:
    plain, corrected_estimates = on_three(NOTHING), on_three(corrected(removed=0.005))
    assert corrected_estimates.log_sigma[2] ** 2 == pytest.approx(plain.log_sigma[2] ** 2 - 0.005)
    assert corrected_estimates.log_sigma[:2] == pytest.approx(plain.log_sigma[:2])
    assert on_three(corrected(removed=10.0)).log_sigma[2] == least_sigma("language")


@settings(max_examples=15, deadline=None)
@given(st.floats(0.5, 2.0))
def test_no_layout_is_chosen_whose_learned_peak_is_more_than_the_device_holds(factor: float) -> None:
    plain, corrected_estimates = on_three(NOTHING), on_three(corrected(memory=factor))
    assert corrected_estimates.capacity_gib == pytest.approx(plain.capacity_gib)
    fits = corrected_estimates.reason == 0
    assert np.all(corrected_estimates.peak_gib[fits] <= corrected_estimates.capacity_gib[fits] * (1 + 1e-9))


def test_what_was_learned_is_said_with_its_runs_and_how_to_forget_it() -> None:
    learned = learned_from((a_run(0.2), a_run(0.3), a_run(0.1, memory=0.1)), "language")
    correction = learned.of("L4")
    hours, memory = learned.sentences("L4")
    sentence = f"hours scaled by {correction.hours.factor:.2f} from 3 of your runs of language work on L4; forget them with gpuplan"
    assert hours.startswith(sentence)
    sentence = f"peak memory scaled by {correction.memory.factor:.2f} from 1 of your runs of language work on L4"
    assert memory.startswith(sentence)
    assert "from 3 of your runs of language work on other accelerators" in learned.sentences("T4")[0]
    assert NOTHING.sentences("L4") == ()
