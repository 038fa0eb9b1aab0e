"""The policy: equal to brute force where that can be had, never late anywhere, and as good as it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.spot_policy.policy_comparison import omniscient_usd
from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Greedy, OnDemand, UniformProgress
from gpuplan.planner.spot_policy.solved_policy import make_policy
from gpuplan.planner.spot_policy.trace_replay import Rule, replay
from gpuplan.planner.spot_policy.zone_availability import fit, two_state, typical_chain
from tests.planner.spot_policy.instances import STEP, chain, expected_usd, least_usd, synthetic, terms

CASES = [
    terms(),
    terms(changeover=0.5, deadline=4.0),
    terms(prices=(0.3, 0.25), move_usd=0.2, deadline=3.25),
    terms(prices=(0.3, 0.2), move_usd=0.1, move_hours=0.25, changeover=0.25),
    terms(changeover=0.0, deadline=2.5),
]


@pytest.mark.parametrize("case", CASES)
def test_the_expected_cost_is_that_of_brute_force_over_every_policy(case: SpotTerms) -> None:
    chains = [chain(), chain(0.6, 1.2)][: len(case.places)]
    assert make_policy(case, chains).expected_usd == pytest.approx(expected_usd(case, chains), rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_replays_of_the_chain_cost_what_the_policy_expects(case: SpotTerms) -> None:
    policy = make_policy(case, [chain()] * len(case.places))
    up = synthetic(6000, math.ceil(case.deadline_hours / STEP), len(case.places), seed=4)
    got = replay(case, up, policy)
    assert not got.late_hours.any()
    assert got.usd.mean() == pytest.approx(policy.expected_usd, abs=4 * got.usd.std() / math.sqrt(len(up)))


@pytest.mark.parametrize("case", CASES)
def test_the_omniscient_optimum_is_that_of_brute_force(case: SpotTerms) -> None:
    up = synthetic(12, math.ceil(case.deadline_hours / STEP), len(case.places), seed=9)
    brute = [least_usd(case, pattern) for pattern in up]
    assert omniscient_usd(case, up).tolist() == pytest.approx(brute)


def rules(case: SpotTerms) -> list[Rule]:
    policy = make_policy(case, [chain()] * len(case.places))
    waits = UniformProgress(case, waits=True)
    return [OnDemand(case), Greedy(case), UniformProgress(case), waits, policy]


@given(
    st.floats(0.5, 3.0),
    st.floats(0.0, 1.5),
    st.floats(0.0, 0.6),
    st.sampled_from([(1.0,), (0.7,), (1.6,), (0.9, 1.3)]),
    st.sampled_from([0.0, 0.25, 0.6]),
    st.floats(0.0, 0.3),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_nothing_is_ever_late_and_nothing_beats_knowing_the_future(
    work: float, slack: float, changeover: float, speeds: tuple[float, ...], every: float, move: float, seed: int
) -> None:
    # A step of rounding for each of deadline, work and changeover: a tighter one is refused (see below).
    case = terms(
        work=work,
        deadline=work + changeover + move + slack + 3 * STEP,
        changeover=changeover,
        prices=(0.3,) * len(speeds),
        speeds=speeds,
        move_hours=move,
        every=every,
    )
    draw = np.random.default_rng(seed)
    steps = math.ceil(case.deadline_hours / STEP)
    wild = np.repeat(draw.random((40, steps, len(speeds))) < draw.random((40, 1, 1)), 1, axis=1)
    for rule in rules(case):
        got = replay(case, wild, rule)
        assert not got.late_hours.any(), type(rule)
        assert (got.usd >= omniscient_usd(case, wild) - 1e-9).all(), type(rule)


def test_work_lost_between_checkpoints_is_in_what_the_policy_expects() -> None:
    saved, lost = terms(deadline=6.0), terms(deadline=6.0, every=1.0)
    up = synthetic(6000, 24, 1, seed=8)
    policy = make_policy(lost, [chain()])
    paid = replay(lost, up, policy).usd.mean()
    # Half of an interval on average: near, not exact, since the table does not know how old the last checkpoint is.
    assert policy.expected_usd == pytest.approx(paid, rel=0.1)
    careless = make_policy(saved, [chain()])
    assert careless.expected_usd < 0.95 * paid


def test_a_last_step_that_reaches_beyond_the_deadline_is_no_time_to_change_machines() -> None:
    case = terms(work=2.0, deadline=2.7876, changeover=0.0376, speeds=(1.6,))
    up = np.zeros((1, 12, 1), np.bool_)
    up[0, [3, 11]] = True
    assert replay(case, up, UniformProgress(case)).late_hours[0] == 0.0


@pytest.mark.parametrize("always", [True, False])
def test_zones_that_are_always_or_never_there_leave_nothing_to_learn(always: bool) -> None:
    case = terms()
    up = np.full((1, 14, 1), always)
    got = replay(case, up, make_policy(case, [chain()]))
    assert got.late_hours[0] == 0.0
    if always:
        assert got.usd[0] == pytest.approx(0.3 * 2.25)
    else:
        assert got.on_demand_hours[0] == 2.25


@given(st.integers(9, 20))
@settings(max_examples=8, deadline=None)
def test_a_later_deadline_never_costs_more(steps: int) -> None:
    sooner = make_policy(terms(deadline=steps * STEP), [chain()]).expected_usd
    assert make_policy(terms(deadline=(steps + 1) * STEP), [chain()]).expected_usd <= sooner + 1e-9


def test_another_zone_never_costs_more_and_dearer_moves_never_less() -> None:
    one = make_policy(terms(), [chain()]).expected_usd
    free, dear = (make_policy(terms(prices=(0.3, 0.3), move_usd=usd), [chain()] * 2).expected_usd for usd in (0.0, 0.3))
    assert free < dear <= one + 1e-9


def test_a_preemption_takes_the_work_since_the_last_checkpoint() -> None:
    saved, lost = terms(work=1.0, deadline=6.0, every=0.0), terms(work=1.0, deadline=6.0, every=5.0)
    up = np.ones((1, 24, 1), np.bool_)
    up[0, 3] = False
    # Up for three steps: one of changeover, two of work. Then down, and all over again, or half of it.
    assert replay(saved, up, Greedy(saved)).spot_hours[0] == pytest.approx(0.75 + 0.75)
    assert replay(lost, up, Greedy(lost)).spot_hours[0] == pytest.approx(0.75 + 1.25)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (terms(work=-1.0), "work_hours: -1 is not accepted"),
        (
            terms(deadline=2.1),
            "deadline_hours: 2.1 h is too short even on-demand: 2 h of work and 0.25 h of changeover",
        ),
        (terms(prices=(0.0,)), r"places\[0\].usd_per_hour: 0 is not accepted"),
        (terms(work=200.0, deadline=9000.0, prices=(0.3,) * 4), "step_hours: 15 min make a table of"),
        (terms(work=2.1, deadline=2.36), "step_hours: 15 min are too coarse for so tight a deadline"),
    ],
)
def test_terms_that_cannot_be_met_are_refused_by_field(case: SpotTerms, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        make_policy(case, [chain()] * len(case.places))


def test_a_fitted_chain_finds_the_rates_it_was_drawn_with() -> None:
    histories = list(synthetic(20, 4000, 1, seed=2, up=2.0, down=1.0)[:, :, 0])
    fitted = fit(histories, STEP, ())
    true = two_state(mean_up_hours=2.0, mean_down_hours=1.0, step_hours=STEP)
    assert fitted.moves == pytest.approx(true.moves, abs=0.01)
    assert fitted.availability == pytest.approx(np.mean(histories), abs=0.01)


def test_a_chain_with_ages_sees_that_young_zones_are_shakier() -> None:
    draw, history = np.random.default_rng(1), []
    for _ in range(2000):
        # Half of the stretches are one step, the others forty.
        history += [True] * (1 if draw.random() < 0.5 else 40) + [False] * 5
    fitted = fit([np.array(history)], STEP, (STEP, 2.0))
    falls = fitted.moves[fitted.classes :, 0]
    assert falls[0] == pytest.approx(0.5, abs=0.05)
    assert falls[1] < 0.01
    assert fitted.moves.sum(axis=1) == pytest.approx(np.ones(6))


def test_an_unknown_age_is_taken_to_be_the_likeliest() -> None:
    fitted = fit(list(synthetic(5, 4000, 1, seed=2, up=9.0)[:, :, 0]), STEP, (STEP, 1.0))
    up, unknown = np.array([True, True]), np.array([False, True])
    old, new = fitted.state(up, np.array([STEP, STEP]), unknown)
    assert (old, new) == (5, 3)


@pytest.mark.parametrize("step", [1 / 12, 0.5, 2.0])
@pytest.mark.parametrize("classes", [1, 2, 4, 8])
def test_the_typical_zone_is_as_often_up_on_every_grid_and_however_merged(step: float, classes: int) -> None:
    typical = typical_chain(step, classes=classes)
    assert typical.classes == classes
    assert typical.moves.sum(axis=1) == pytest.approx(np.ones(2 * classes))
    assert typical.availability == pytest.approx(typical_chain(step).availability, abs=1e-6)
    assert typical.availability == pytest.approx(0.55, abs=0.05)
