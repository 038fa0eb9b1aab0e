"""Rules that follow a capacity ladder, on availability that can be worked out by hand."""

import numpy as np
import pytest

from gpuplan.planner.spot_policy.availability_traces import Trace
from gpuplan.planner.spot_policy.ladder_comparison import compare_ladder, together
from gpuplan.planner.spot_policy.ladder_rules import LADDER_RULES, LadderTerms, Watched
from gpuplan.planner.spot_policy.run_parameters import Place, SpotTerms
from gpuplan.planner.spot_policy.trace_replay import Replay, replay

STEP = 1 / 12
STEPS = 120
#: One hour of work, due after ten; a costs 1, b 2, on-demand 10 per hour. A choice is tried for four steps.
TERMS = LadderTerms(
    run=SpotTerms(
        work_hours=1.0,
        deadline_hours=10.0,
        step_hours=STEP,
        changeover_hours=0.0,
        on_demand_usd_per_hour=10.0,
        places=(Place(name="a", usd_per_hour=1.0), Place(name="b", usd_per_hour=2.0)),
    ),
    order=(0, 1, 2),
    permanent=(False, False, True),
    try_hours=1 / 3,
)


def up(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> np.ndarray:
    """One run's availability: from step to step, per place."""
    flags = np.zeros((1, STEPS, 2), np.bool_)
    for place, spans in enumerate((a, b)):
        for first, last in spans:
            flags[0, first:last, place] = True
    return flags


def followed(rule: str, flags: np.ndarray, terms: LadderTerms = TERMS) -> tuple[Replay, Watched]:
    watched = Watched(LADDER_RULES[rule](terms))
    return replay(terms.run, flags, watched), watched


def test_the_next_choice_is_tried_after_the_time_of_a_try() -> None:
    done, watched = followed("ladder", up([(5, STEPS)], [(0, STEPS)]))
    assert done.usd[0] == pytest.approx(2.0)
    assert (watched.first[0], watched.first_hours[0]) == (1, pytest.approx(4 * STEP))
    assert watched.place_hours[0] == pytest.approx([0.0, 1.0, 0.0])
    assert watched.live_hours[0] == pytest.approx(16 * STEP)


def test_after_a_preemption_the_ladder_is_followed_from_its_top() -> None:
    done, watched = followed("ladder", up([(10, STEPS)], [(0, 10), (11, STEPS)]))
    assert done.preemptions[0] == 1
    assert watched.place_hours[0] == pytest.approx([6 * STEP, 6 * STEP, 0.0])
    assert done.usd[0] == pytest.approx(1.5)


def test_on_demand_is_kept_by_the_ladder_and_avoided_by_trying_again() -> None:
    nothing_at_first = up([(20, STEPS)], [])
    one_pass, _ = followed("ladder, last choice kept", nothing_at_first)
    again, watched = followed("ladder", nothing_at_first)
    assert one_pass.usd[0] == pytest.approx(10.0)
    assert again.usd[0] == pytest.approx(1.0)
    # Steps 16 to 19 try a, 20 to 23 try b, and 24 obtains a.
    assert watched.first_hours[0] == pytest.approx(24 * STEP)


def test_a_run_without_machines_asks_for_on_demand_a_try_before_it_is_due() -> None:
    """So a refusal of on-demand does not make it late at once: due after 9 h, it is asked for from 8 h 40 min."""
    done, watched = followed("ladder", up([], []))
    assert (done.usd[0], done.late_hours[0]) == (pytest.approx(10.0), 0.0)
    assert watched.first_hours[0] == pytest.approx(9.0 - 1 / 3)
    first_alone, _ = followed("first choice only", up([(0, 96)], []))
    on_spot, machines = followed("ladder", up([(0, 96)], []))
    assert on_spot.usd[0] == first_alone.usd[0] == pytest.approx(1.0)
    assert machines.place_hours[0] == pytest.approx([1.0, 0.0, 0.0])


def test_waiting_for_the_first_choice_alone_ends_on_demand_in_time() -> None:
    done, watched = followed("first choice only", up([], [(0, STEPS)]))
    assert (done.usd[0], done.late_hours[0]) == (pytest.approx(10.0), 0.0)
    assert watched.first_hours[0] == pytest.approx(9.0)


def test_a_run_that_on_demand_is_refused_to_is_late_but_stays_on_its_spot_machine() -> None:
    never = LadderTerms(
        run=TERMS.run, order=TERMS.order, permanent=TERMS.permanent, try_hours=TERMS.try_hours, refused=1.0
    )
    late, _ = followed("cheapest on demand", up([], []), never)
    assert late.late_hours[0] == pytest.approx(1.0)
    # Spot comes at the last moment at which on-demand could begin, and finishes exactly in time.
    saved, watched = followed("first choice only", up([(108, STEPS)], []), never)
    assert (saved.late_hours[0], saved.usd[0]) == (0.0, pytest.approx(1.0))
    assert watched.first[0] == 0


def test_rules_are_compared_with_the_best_choice_in_hindsight() -> None:
    both = np.concatenate((up([(5, STEPS)], [(0, STEPS)]), up([], [(0, STEPS)])))
    ladder, _, first, demand = compare_ladder(TERMS, both)
    # a alone is best in the first run at $1, b in the second at $2.
    assert ladder.over_hindsight == pytest.approx(4.0 / 3.0 - 1.0)
    assert first.mean_usd == pytest.approx((1.0 + 10.0) / 2)
    assert demand.over_hindsight == pytest.approx(20.0 / 3.0 - 1.0)
    assert [use.share_first for use in ladder.uses] == [0.0, 1.0, 0.0]


def test_windows_start_together_every_hour_and_are_thinned_evenly() -> None:
    trace = Trace(name="a", step_hours=STEP, available=(np.arange(STEPS) % 24 < 12).astype(np.int64))
    whole = together([trace, None], nodes=[1, 1], step_hours=STEP, hours=2.0, most=100)
    assert whole.shape == (9, 24, 2)
    assert whole[:, 0, 0].tolist() == [True, False] * 4 + [True]
    assert whole[:, :, 1].all()
    thinned = together([trace, None], nodes=[1, 1], step_hours=STEP, hours=2.0, most=2)
    assert np.array_equal(thinned, whole[[0, 8]])
    assert len(together([trace], nodes=[1], step_hours=STEP, hours=12.0, most=9)) == 0
