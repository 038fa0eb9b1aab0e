"""Runs held against their plans: the right prediction, the right band, and what each run teaches without counting twice."""

import math
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.store.plan_store import Actual
from gpuplan.planner.performance.run_comparison import (
    GOODPUT_SIGMA,
    Expected,
    comparison,
    counting,
    past_runs,
    poisson_quantile,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
EXPECTED = Expected(
    hours=11.25,
    setup_hours=0.25,
    training_hours=10.0,
    hours_sigma=0.2,
    throughput=1000.0,
    throughput_sigma=0.2,
    unit="tokens/s",
    units_total=3.6e7,
    memory_gib=40.0,
    preemptions=2.0,
    hours_per_preemption=0.5,
    log_sigma=0.2,
    hours_factor=1.0,
    memory_factor=1.0,
)


def a_report(number: int = 0, *, expected: Expected = EXPECTED, **figures: Any) -> Actual:
    return Actual(
        id=f"run-{number}",
        plan_id=figures.pop("plan_id", "p"),
        task="language",
        accelerator="L4",
        reported_at=NOON + timedelta(hours=number),
        reported_by="",
        expected=asdict(expected),
        **{
            "running": False,
            "share_done": 1.0,
            "hours": None,
            "throughput": None,
            "peak_memory_gib": None,
            "preemptions": None,
        }
        | figures,
    )


def test_a_running_job_is_held_against_its_share_of_the_hours_after_the_whole_set_up() -> None:
    [(name, figure)] = comparison(a_report(running=True, share_done=0.5, hours=5.75)).items()
    assert name == "hours"
    assert figure.predicted == pytest.approx(0.25 + 0.5 * 11.0)
    assert figure.ratio == pytest.approx(1.0)
    assert figure.inside_band
    assert figure.band.high == pytest.approx(0.25 + 5.5 * math.exp(1.2816 * 0.2))


def test_each_figure_says_whether_it_lies_inside_its_band() -> None:
    figures = comparison(a_report(hours=30.0, throughput=400.0, peak_memory_gib=41.0, preemptions=3))
    assert {name: figure.inside_band for name, figure in figures.items()} == {
        "hours": False,
        "throughput": False,
        "peak_memory_gib": True,
        "preemptions": True,
    }
    assert figures["throughput"].ratio == pytest.approx(0.4)
    assert figures["peak_memory_gib"].ratio == pytest.approx(1.025)


def test_no_preemption_where_none_was_expected_has_no_ratio_and_is_inside() -> None:
    figure = comparison(a_report(expected=replace(EXPECTED, preemptions=0.0), preemptions=0))["preemptions"]
    assert figure.ratio is None
    assert figure.inside_band


@given(st.floats(0.01, 399.0), st.sampled_from((0.1, 0.9)))
def test_the_quantile_of_a_count_is_the_least_that_reaches_the_probability(mean: float, probability: float) -> None:
    count = poisson_quantile(mean, probability)
    terms = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1)]
    assert math.fsum(terms) >= probability - 1e-9
    assert math.fsum(terms[:-1]) < probability + 1e-9


def test_the_quantile_goes_on_smoothly_where_it_is_approximated() -> None:
    for probability in (0.1, 0.9):
        assert abs(poisson_quantile(400.0, probability) - poisson_quantile(400.01, probability)) <= 1


def test_a_throughput_teaches_rather_than_hours() -> None:
    [run] = past_runs([a_report(hours=30.0, throughput=800.0)])
    assert run.log_hours == pytest.approx(math.log(1000 / 800))
    assert (run.training_share, run.extra_sigma) == (1.0, 0.0)


def test_hours_teach_of_training_what_set_up_and_preemptions_leave() -> None:
    # 0.25 h of set-up and 1 h for two preemptions are not training; a third one would be half an hour more.
    [run] = past_runs([a_report(hours=13.25)])
    assert run.log_hours == pytest.approx(math.log(12 / 10))
    assert run.training_share == pytest.approx(10 / 11.25)
    assert run.extra_sigma == GOODPUT_SIGMA
    [past_run] = past_runs([a_report(hours=13.25, preemptions=3)])
    assert past_run.log_hours == pytest.approx(math.log(11.5 / 10))


def test_hours_that_set_up_alone_explains_are_bounded_rather_than_negative() -> None:
    [run] = past_runs([a_report(hours=0.2)])
    assert run.log_hours == pytest.approx(math.log(0.1))


def test_a_run_of_a_plan_that_had_learned_is_held_against_the_plain_prediction() -> None:
    learned = replace(
        EXPECTED, hours=12.25, training_hours=11.0, throughput=1000 / 1.1, hours_factor=1.1, memory_gib=44.0
    )
    learned = replace(learned, memory_factor=1.1)
    measured: tuple[dict[str, Any], ...] = ({"hours": 12.25}, {"throughput": 1000 / 1.1})
    for figures in measured:
        [run] = past_runs([a_report(expected=learned, peak_memory_gib=44.0, **figures)])
        assert run.log_hours == pytest.approx(math.log(1.1))
        assert run.log_memory == pytest.approx(math.log(1.1))


def test_a_report_on_a_running_job_counts_until_the_next_report_on_its_plan() -> None:
    running = a_report(0, running=True, share_done=0.5, hours=6.0)
    later = a_report(1, running=True, share_done=0.8, hours=9.0)
    elsewhere = a_report(2, plan_id="q", hours=9.0)
    assert counting([running, elsewhere]) == (running, elsewhere)
    assert counting([running, later, elsewhere]) == (later, elsewhere)
    done = a_report(3, hours=11.0)
    again = a_report(4, hours=12.0)
    assert counting([running, later, elsewhere, done, again]) == (elsewhere, done, again)


def test_preemptions_alone_teach_nothing_of_hours_or_memory() -> None:
    assert past_runs([a_report(preemptions=4)]) == ()
