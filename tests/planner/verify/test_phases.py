"""Plans in phases and with a standby: every figure, the order, the bound over any number of phases, the rule replayed."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpuplan.planner.model.job import Constraints, DataSource, Preset, TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.phase_pairs import Lines, in_phases, least_in_a_pair, lines_of, pair_bounds
from gpuplan.planner.verify.submitted_plan import SubmittedPlan
from gpuplan.planner.verify.verification_context import context_of
from tests.planner.small_catalogues import START, random_job
from tests.planner.spot_settings import replaced_at_once
from tests.planner.verify import answers
from tests.planner.verify.answers import (
    Path,
    changed,
    figure,
    names,
    numbers,
    small_columns,
    tampered,
    with_id,
)

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
answer_of = partial(answers.answer_of, settings=SETTINGS)
checked = partial(answers.checked, settings=SETTINGS)
JOB = TrainingJob(
    name="moves",
    workload=Preset(model="gpt2", tokens=2e9),
    start=START,
    deadline_hours=4.0,
    budget_usd=50_000.0,
    constraints=Constraints(max_nodes=3),
    data=DataSource(location="aws:us-east-1", dataset_gb=300.0),
)
COLUMNS = small_columns(random.Random(36), types=1, offers=14)
MOVES = answer_of(JOB, COLUMNS)
STANDS_BY = replace(JOB, deadline_hours=7.0, budget_usd=None, constraints=Constraints(max_nodes=2))
SPOT_COLUMNS = small_columns(random.Random(7), types=1, offers=14)
WITH_STANDBY = answer_of(STANDS_BY, SPOT_COLUMNS)
#: What a plan in phases is made of; alternatives and the like are those of any plan.
OF_PHASES = ("phases", "cost_usd", "hours", "deadline_probability", "carbon_kg", "certificate")


def test_the_answers_are_what_the_tests_are_about() -> None:
    assert [phase["role"] for phase in MOVES["plan"]["phases"]] == ["planned", "planned"]
    assert [phase["role"] for phase in WITH_STANDBY["plan"]["phases"]] == ["planned", "standby"]
    assert checked(MOVES, JOB, COLUMNS).wrong == ()
    verification = checked(WITH_STANDBY, STANDS_BY, SPOT_COLUMNS)
    assert verification.wrong == ()
    assert "replayed" in {check.check for check in verification.checks}


@pytest.mark.slow(reason="one long case")
def test_every_number_of_a_plan_in_phases_is_named_when_it_is_changed() -> None:
    missed = []
    for path, value in numbers(MOVES["plan"]):
        if path[0] in OF_PHASES:
            wrong = names(checked(tampered(MOVES, path, changed(value)), JOB, COLUMNS))
            if figure(path) not in wrong and not (path[-1] == "nodes" and wrong):
                missed.append((figure(path), sorted(wrong)))
    assert missed == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("phases", 1, "starts_at"), "2026-11-21T00:00:01Z"),
        (("phases", 0, "role"), "standby"),
        (("phases", 1, "moved", "from", "region"), "elsewhere"),
        (("phases", 1, "moved"), None),
        (("phases", 0, "moved"), {"checkpoint_gb": 1.0}),
        (("phases", 1, "cost_usd", "expected"), "0.01"),
        (("finishes_at",), "2026-11-22T00:00:00Z"),
    ],
)
def test_what_a_phase_takes_over_and_when_it_starts_is_held_to_the_phase_before(path: Path, value: object) -> None:
    assert checked(tampered(MOVES, path, value), JOB, COLUMNS).wrong_count


def test_shares_that_are_not_the_whole_work_are_named() -> None:
    first = MOVES["plan"]["phases"][0]["share"]
    wrong = checked(tampered(MOVES, ("phases", 0, "share"), round(first - 0.2, 5)), JOB, COLUMNS).wrong
    assert any("do not sum to the whole work" in finding.why for finding in wrong)


def test_more_phases_than_the_job_allows_are_refused() -> None:
    alone = replace(JOB, constraints=replace(JOB.constraints, max_phases=1))
    wrong = checked(MOVES, alone, COLUMNS).wrong
    assert any(finding.why == "more phases than constraints.max_phases" for finding in wrong)


def test_a_plan_that_stays_where_moving_is_cheaper_is_refuted_by_the_pair() -> None:
    alone = replace(JOB, constraints=replace(JOB.constraints, max_phases=1))
    answer = answer_of(alone, COLUMNS)
    wrong = [finding for finding in checked(with_id(answer), JOB, COLUMNS).wrong if finding.check == "bound"]
    assert any("in phases, " in finding.why for finding in wrong)


def test_a_job_that_only_moving_makes_possible_is_not_infeasible() -> None:
    alone = replace(JOB, constraints=replace(JOB.constraints, max_phases=1))
    cost = float(MOVES["plan"]["cost_usd"]["expected"])
    dear = float(answer_of(alone, COLUMNS)["plan"]["cost_usd"]["expected"])
    budget = (cost + dear) / 2
    answer = answer_of(replace(alone, budget_usd=budget), COLUMNS)
    assert answer["outcome"] == "infeasible"
    assert checked(answer, replace(alone, budget_usd=budget), COLUMNS).wrong == ()
    wrong = checked(answer, replace(JOB, budget_usd=budget), COLUMNS).wrong
    assert any("in two phases" in finding.why for finding in wrong)


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_plan_that_the_planner_finds_costs_less_than_the_linear_bounds(seed: int) -> None:
    draw = random.Random(seed)
    columns = small_columns(draw)
    job = replace(random_job(draw), deadline_hours=draw.uniform(1, 60), budget_usd=None)
    answer = answer_of(job, columns)
    if answer["outcome"] != "planned" or any(phase["role"] == "standby" for phase in answer["plan"]["phases"]):
        return
    submitted_plan = SubmittedPlan(part="plan", body=answer["plan"], job=job, start=START, settings=SETTINGS)
    bound = in_phases(context_of(submitted_plan, columns, ()), float("inf"))
    assert bound is not None
    assert bound.least_usd is not None
    assert bound.least_usd <= float(answer["plan"]["cost_usd"]["expected"]) * (1 + 1e-9) + 1e-6


def test_linear_bounds_of_hours_hold_at_every_share_and_count_waits_between_zones() -> None:
    submitted_plan = SubmittedPlan(
        part="plan", body=WITH_STANDBY["plan"], job=STANDS_BY, start=START, settings=PlannerSettings()
    )
    context = context_of(submitted_plan, SPOT_COLUMNS, ())
    ratios = []
    for offer_group, scaling in context.enumeration.runnable(context.open_offer_groups, 2):
        if not offer_group.rate:
            continue
        lines = lines_of(context, offer_group, scaling)
        for nodes, hours in zip(lines.nodes.tolist(), lines.work_hours.tolist(), strict=True):
            row = context.estimator.row(offer_group.machine, nodes)
            for share in (0.01, 0.1, 0.5, 1.0):
                clock = context.rates.clock(offer_group, nodes, row, share=share)
                if clock is not None:
                    ratios.append(hours * share / (clock.confident - clock.fixed))
    assert max(ratios) <= 1 + 1e-9
    assert max(ratios) > 0.97, sorted(ratios)[-3:]


@given(
    st.lists(
        st.tuples(st.floats(0, 50), st.floats(0, 20), st.floats(0, 500), st.floats(0.1, 60), st.floats(0, 2)),
        min_size=2,
        max_size=12,
    ),
    st.floats(0.5, 80),
)
@example([(0.0, 0.0, 0.0, 1.0, 0.4), (0.0, 0.0, 0.0, 0.1, 0.0)], 0.5)  # just in time, and late as 0.5 - 0.4 < 0.1
def test_what_is_put_aside_before_pairs_are_formed_is_in_none_that_costs_less(
    rows: list[tuple[float, float, float, float, float]], hours: float
) -> None:
    zero = np.zeros(len(rows), np.int64)
    start, data, work, takes, setup = (np.array(column) for column in zip(*rows, strict=True))
    lines = Lines(start, data, work, takes, setup, zero, zero, zero)
    bounds = pair_bounds(lines, lines, hours)
    np.fill_diagonal(bounds, np.inf)
    assert (least_in_a_pair(lines, hours) <= bounds.min(axis=1) + 1e-9 * (1 + bounds.min())).all()
    for one in range(len(rows)):
        for other in range(len(rows)):
            shares = [part / 200 for part in range(201)]
            mixes = [
                start[one] + start[other] + max(data[one], data[other]) + work[one] * x + work[other] * (1 - x)
                for x in shares
                if setup[one] + setup[other] + takes[one] * x + takes[other] * (1 - x) <= hours
            ]
            if one != other and mixes:
                assert bounds[one, other] <= min(mixes) + 1e-9
