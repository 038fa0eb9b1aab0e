"""Plans with a standby: the rule replayed, every figure held against it or against those that are, and their intervals."""

import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpuplan.planner.model.job import Constraints, DataSource, Preset, TrainingJob
from gpuplan.planner.verify.standby_replay import Estimated, Pair, Rule, figures, replayed
from tests.planner.small_catalogues import START
from tests.planner.verify import answers
from tests.planner.verify.answers import (
    Path,
    answer_of,
    changed,
    figure,
    names,
    numbers,
    small_columns,
    snapshot_columns,
    tampered,
)
from tests.planner.verify.test_phases import SPOT_COLUMNS, STANDS_BY, WITH_STANDBY, checked

PAIR = Pair(
    work_hours=20.0,
    log_sigma=0.0,
    preemptions_per_hour=1e-9,
    checkpoint_hours=0.01,
    usd_per_hour=1.0,
    clock_usd_per_hour=0.0,
    fixed_usd=0.0,
    standby_work_hours=20.0,
    standby_log_sigma=0.0,
    standby_usd_per_hour=4.0,
    standby_fixed_usd=0.0,
    changeover_hours=0.25,
)
RULE = Rule(deadline_hours=40.0, setup_hours=0.25, restart_hours=0.25, wait_hours=0.0)
#: Figures that only the replay speaks of: within its interval nothing else tells what they are.
REPLAYED_ALONE = {
    *(("hours", name) for name in ("median", "confident", "p95")),
    ("cost_usd", "median"),
    ("cost_usd", "p95"),
}


def test_a_run_that_nobody_interrupts_never_calls_its_standby() -> None:
    switching = figures(PAIR, RULE, 1.0, 0.9)
    assert switching.calls.value == 0.0
    assert switching.called_at is None
    assert switching.paid_hours.value == pytest.approx(0.25 + 20 + 20 * 0.01)
    assert switching.p95_usd.value == pytest.approx(0.25 + 20 + 20 * 0.01)


def test_a_run_without_slack_calls_its_standby_after_the_first_segment() -> None:
    switching = figures(PAIR, RULE._replace(deadline_hours=21.0), 1.0, 0.9)
    assert switching.calls.value == 1.0
    assert switching.paid_hours.value == pytest.approx(0.25 + 1.01)
    assert switching.standby_hours.value == pytest.approx(20.25)
    assert switching.hours.value == pytest.approx(0.25 + 1.01 + 20.25)


def test_a_spot_that_is_slower_than_its_standby_is_left_when_the_slack_is_used_up() -> None:
    switching = figures(PAIR._replace(work_hours=80.0), RULE._replace(deadline_hours=30.0), 1.0, 0.9)
    # Each hour on spot saves a quarter of one on the standby: after h hours, 0.25 + h + 1 + 0.25 + 20 - h / 4 = 30.
    assert switching.calls.value == 1.0
    assert switching.paid_hours.value == pytest.approx(0.25 + 8.5 / 0.75, abs=1.5)


def test_a_run_that_waits_for_a_machine_when_it_calls_its_standby_has_waited_on_the_clock() -> None:
    """Hours on interruptible machines left out the last wait, so that they and those on the standby missed the end."""
    pair, rule = PAIR._replace(preemptions_per_hour=0.05), RULE._replace(deadline_hours=30.0, wait_hours=3.0)
    runs = replayed(pair, rule, 1.0, batches=4, runs=500)
    on_standby = np.where(runs.called, pair.changeover_hours + runs.standby, 0.0)
    assert 0.1 < runs.called.mean() < 0.9
    np.testing.assert_allclose(runs.on_clock + on_standby, runs.end)


def test_an_interval_is_as_wide_as_chance_and_its_room_allow() -> None:
    switching = figures(PAIR._replace(preemptions_per_hour=0.05), RULE._replace(deadline_hours=27.0), 1.0, 0.9).calls
    assert switching.error > 0
    assert switching.allows(switching.value + 4.9 * switching.error)
    assert not switching.allows(switching.value + 5.1 * switching.error)
    assert switching.allows(switching.value * 1.01, share=0.01)


def test_what_is_too_rare_for_any_replayed_run_is_not_refused_and_what_is_not_is() -> None:
    never = Estimated(0.0, 0.0)
    assert never.of_event(1e-7, 1.0).allows(1e-7)
    assert not never.of_event(1 / 100, 1.0).allows(1 / 10)


def test_batches_differ_by_as_much_as_other_seeds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard error that is told is that of the mean over other draws."""
    pair = PAIR._replace(preemptions_per_hour=0.2, log_sigma=0.2, standby_log_sigma=0.2)
    errors, means = [], []
    for seed in range(40):
        monkeypatch.setattr("gpuplan.planner.verify.standby_replay.SEED", seed)
        runs = replayed(pair, RULE, 1.0, batches=16, runs=50)
        mean = runs.mean(runs.paid)
        errors.append(mean.error)
        means.append(mean.value)
    assert 0.7 < float(np.std(means, ddof=1)) / float(np.mean(errors)) < 1.4


def _one_run(draw: random.Random, pair: Pair, rule: Rule, interval: float) -> tuple[float, float]:
    """Hours paid on interruptible machines, and whether the standby is called, of one run: one event at a time."""
    count = max(1, -(-pair.work_hours // interval))
    length, clock, paid, done = pair.work_hours / count + pair.checkpoint_hours, 0.25, 0.25, 0.0
    while done < count:
        last = rule.deadline_hours - length - pair.changeover_hours - pair.standby_work_hours * (1 - done / count)
        if clock > last + 1e-9:
            return paid, 1.0
        until = draw.expovariate(pair.preemptions_per_hour)
        clock, paid = clock + min(until, length), paid + min(until, length)
        done += until >= length
        while until < length:
            wait = draw.expovariate(1 / rule.wait_hours)
            if clock + wait + rule.restart_hours > last:
                return paid, 1.0
            up = min(draw.expovariate(pair.preemptions_per_hour), rule.restart_hours)
            clock, paid = clock + wait + up, paid + up
            if up == rule.restart_hours:
                break
    return paid, 0.0


def test_many_runs_at_once_fare_as_runs_one_event_at_a_time() -> None:
    pair = PAIR._replace(work_hours=12.3, preemptions_per_hour=0.3, standby_work_hours=9.0)
    rule = RULE._replace(deadline_hours=19.0, wait_hours=0.4)
    switching, draw = figures(pair, rule, 0.7, 0.9), random.Random(5)
    runs = np.array([_one_run(draw, pair, rule, 0.7) for _ in range(4000)])
    errors = runs.std(axis=0) / len(runs) ** 0.5
    assert 0.1 < switching.calls.value < 0.9
    assert abs(switching.paid_hours.value - runs[:, 0].mean()) < 4 * errors[0]
    assert abs(switching.calls.value - runs[:, 1].mean()) < 4 * errors[1]


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize("part", ["phases", "hours", "cost_usd", "deadline_probability", "carbon_kg", "certificate"])
def test_every_number_of_a_plan_with_a_standby_is_caught_when_it_is_changed(part: str) -> None:
    missed = []
    for path, value in numbers(WITH_STANDBY["plan"]):
        if path[0] == part and path not in REPLAYED_ALONE:
            wrong = names(checked(tampered(WITH_STANDBY, path, changed(value)), STANDS_BY, SPOT_COLUMNS))
            # Figures of the rule's average stand behind others: one that is changed within its interval shows there.
            if figure(path) not in wrong and not any(_follows(path, name) for name in wrong):
                missed.append((figure(path), sorted(wrong)))
    assert missed == []


def _follows(path: Path, wrong: str) -> bool:
    """Whether a wrong figure is one that follows from that at the path."""
    if path[-1] == "nodes":
        return True
    return path[-1] in ("hours", "probability", "expected_preemptions", "switch_by_hours", "expected") and (
        wrong.startswith("phases[") or wrong in ("finishes_at", "certificate.objective.value", "hours.expected")
    )


@pytest.mark.parametrize("path", [("finishes_at",), ("phases", 1, "starts_at"), ("phases", 1, "switch_by")])
def test_times_of_a_plan_with_a_standby_are_held_to_the_second(path: Path) -> None:
    """They were compared to the minute: a time within the same minute went unnoticed."""
    value = WITH_STANDBY["plan"]
    for part in path:
        value = value[part]
    second = int(value[-3:-1])
    other = f"{value[:-3]}{(second + 30) % 60:02d}Z"
    wrong = checked(tampered(WITH_STANDBY, path, other), STANDS_BY, SPOT_COLUMNS).wrong
    assert figure(path) in {finding.figure for finding in wrong}


def test_a_bound_a_micro_dollar_above_the_plan_is_named() -> None:
    bound = float(WITH_STANDBY["plan"]["certificate"]["objective_usd"]) + 1e-6
    wrong = names(
        checked(tampered(WITH_STANDBY, ("certificate", "bound_usd"), f"{bound:.6f}"), STANDS_BY, SPOT_COLUMNS)
    )
    assert "certificate.bound_usd" in wrong


@pytest.mark.parametrize("micros", [-1, 1])
def test_an_extra_cost_a_micro_dollar_off_the_difference_of_the_stated_costs_is_named(micros: int) -> None:
    plan, path = WITH_STANDBY["plan"], ("alternatives", 0, "extra_usd")
    extra = Decimal(plan["alternatives"][0]["cost_usd"]) - Decimal(plan["cost_usd"]["expected"])
    assert extra == Decimal(plan["alternatives"][0]["extra_usd"])
    forged = f"{extra + Decimal(micros) / 10**6:.6f}"
    assert names(checked(tampered(WITH_STANDBY, path, forged), STANDS_BY, SPOT_COLUMNS)) == {
        "alternatives[0].extra_usd"
    }


@pytest.mark.parametrize("path", sorted(REPLAYED_ALONE))
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_quantile_outside_of_its_interval_is_named(path: Path, factor: float) -> None:
    value = WITH_STANDBY["plan"][path[0]][path[1]]
    forged = f"{float(value) * factor:.6f}" if isinstance(value, str) else value * factor
    wrong = checked(tampered(WITH_STANDBY, path, forged), STANDS_BY, SPOT_COLUMNS).wrong
    assert figure(path) in {finding.figure for finding in wrong if finding.check == "replayed"}


def test_averages_that_agree_with_each_other_and_not_with_the_rule_are_named() -> None:
    """Half of the calls, with every figure that follows from them changed to match, is refused by the replay alone."""
    half = WITH_STANDBY["plan"]["phases"][1]["probability"] / 2
    wrong = checked(tampered(WITH_STANDBY, ("phases", 1, "probability"), half), STANDS_BY, SPOT_COLUMNS).wrong
    assert "phases[1].probability" in {finding.figure for finding in wrong if finding.check == "replayed"}


@hypothesis_settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_plans_with_a_standby_are_verified(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw, types=1, offers=14)
    job = TrainingJob(
        name="stands by",
        workload=Preset(model=draw.choice(("gpt2", "bert-large")), tokens=10 ** draw.uniform(8.5, 10.5)),
        start=START,
        constraints=Constraints(max_nodes=draw.choice((1, 2, 4)), price_kinds=("on_demand", "spot")),
        data=DataSource(location="aws:us-east-1", dataset_gb=draw.choice((0.0, 300.0))),
        confidence=draw.choice((0.5, 0.9, 0.95)),
    )
    answer = answer_of(job, columns)
    if answer["outcome"] == "planned":
        job = replace(job, deadline_hours=answer["plan"]["hours"]["expected"] * draw.uniform(0.7, 2))
        assert answers.checked(answer_of(job, columns), job, columns).wrong == ()


def test_a_mean_above_the_cost_of_nineteen_runs_of_twenty_is_stated_as_that_and_verified() -> None:
    offers = [
        offer if offer.price_kind == "spot" else replace(offer, usd_micros_per_hour=100 * offer.usd_micros_per_hour)
        for offer in SPOT_COLUMNS.offers
    ]
    columns = snapshot_columns(list(SPOT_COLUMNS.instance_types), offers)
    job = replace(STANDS_BY, deadline_hours=11.0, confidence=0.98)
    answer = answer_of(job, columns)
    cost = answer["plan"]["cost_usd"]
    assert answer["plan"]["phases"][1]["probability"] < 0.05
    assert cost["p95"] == cost["expected"]
    assert answers.checked(answer, job, columns).wrong == ()
    dearer = tampered(answer, ("cost_usd", "p95"), f"{1.1 * float(cost['p95']):.6f}")
    assert names(answers.checked(dearer, job, columns)) == {"cost_usd.p95"}
