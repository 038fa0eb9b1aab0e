"""How many segments runs under a net pass, by moments: where it is plain, and where it is not."""

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.run_segments import Segments, _passed, passed_by_moments
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import NODE_WEIGHTS, NODES, deviations, intervals
from tests.planner.strategies.standby.standby_cases import some_offers, terms


def segments(pairs: Pairs, asked: StandbyTerms) -> Segments:
    tried = intervals(pairs)
    return Segments.of(pairs, asked, tried, deviations(pairs, asked, tried, NODES, NODE_WEIGHTS).z)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("deadline", [60.0, 300.0, 50000.0])
def test_runs_whose_losses_surely_fit_pass_as_many_segments_as_the_sum_over_them_says(
    seed: int, deadline: float
) -> None:
    offered = some_offers(seed, 5, 5, wait=1.0)
    spot, standby = np.nonzero(offered.allowed)
    runs = segments(offered.pairs(spot, standby), terms(deadline=deadline))
    passed, whole = passed_by_moments(runs)
    summed, chance = _passed(runs)
    assert passed == pytest.approx(summed, rel=1e-12, abs=1e-12)
    assert whole == pytest.approx(chance, abs=1e-12)
    if deadline == 50000.0:
        assert (passed == runs.count).all()


def test_runs_that_have_no_slack_pass_nothing_of_what_they_began() -> None:
    offered = some_offers(1, 3, 3)
    spot, standby = np.nonzero(offered.allowed)
    runs = segments(offered.pairs(spot, standby), terms(deadline=8.0))
    passed, whole = passed_by_moments(runs)
    gone = runs.slack + (runs.count - 1) * runs.growth < 0
    assert gone.any()
    assert (whole[gone] == 0).all()
    assert (passed[gone] < runs.count[gone]).all()
