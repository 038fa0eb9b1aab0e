"""Standbys of one spot run, priced together: what rests on the spot alone is worked out once."""

from dataclasses import fields, replace

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.offered_pairs import Offered
from gpuplan.planner.strategies.standby.preemption_losses import CERTAIN, normal_cdf
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs
from gpuplan.planner.strategies.standby.standby_switching import Outcomes, finely, outcomes
from tests.planner.strategies.standby.standby_cases import some_offers, terms


def beside_one(offered: Offered, spot: int) -> Pairs:
    standbys = np.arange(len(offered.standbys))
    return offered.pairs(np.full(len(standbys), spot), standbys)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("deadline", [30.0, 60.0, 5000.0])
def test_a_standby_costs_the_same_by_itself_as_among_others_of_its_spot(seed: int, deadline: float) -> None:
    pairs, asked = beside_one(some_offers(seed, 3, 6, wait=1.0), seed % 3), terms(deadline=deadline, confidence=0.3)
    # One estimate that is surely in time beside others that may be late.
    pairs = replace(pairs, standby_log_sigma=pairs.standby_log_sigma * np.linspace(0.1, 2.0, len(pairs)))
    for priced in (outcomes, finely):
        together = priced(pairs, asked)
        alone = [priced(pairs.take(np.array([i])), asked) for i in range(len(pairs))]
        for name in (field.name for field in fields(Outcomes)):
            separate = np.concatenate([getattr(one, name) for one in alone])
            assert getattr(together, name) == pytest.approx(separate, rel=1e-12, abs=1e-14), name


def test_a_run_that_surely_ends_on_spot_costs_the_same_whatever_stands_by() -> None:
    offered = some_offers(1, 3, 6)
    pairs, asked = beside_one(offered, 0), terms(deadline=1e6)
    seen = outcomes(pairs, asked)
    assert (seen.switch_probability == 0).all()
    assert (seen.standby_hours == 0).all()
    assert (seen.usd == seen.usd[0]).all()
    assert seen.usd[0] > float(pairs.work_hours[0] * pairs.usd_per_hour[0])


def test_a_normal_variable_is_smaller_for_certain_only_where_floats_cannot_tell() -> None:
    assert normal_cdf(np.array([CERTAIN, 40.0])).tolist() == [1.0, 1.0]
    # Beside one that is not, each is worked out, and comes to the same.
    assert normal_cdf(np.array([CERTAIN, 0.0]))[0] == 1.0
    assert normal_cdf(np.array([8.0]))[0] < 1.0
