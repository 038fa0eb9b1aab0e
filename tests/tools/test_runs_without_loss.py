"""The mixture of runs without a loss and others that is compared with the lognormal of a plan."""

import math

import numpy as np
import pytest

from tools.benchmarks.runs_without_loss import Cell, Lognormal, Mixture, likeliest
from tools.fitting.spot_waits import SETUP_HOURS, Attempts, rate_of

#: Hours of 4 h of work with their checkpoints at the best interval of the rate without a published one.
LOSSLESS = 4 * (1 + 1 / 60 / math.sqrt(2 / 60 / rate_of(1)))


def cell(deadline_hours: float, starts: int = 100, in_time: int = 0) -> Cell:
    none = np.zeros(0)
    one = Attempts(nodes=1, work_hours=4.0, deadline_hours=deadline_hours, in_time=none > 0, days=none.astype(np.int64))
    return Cell(one, 1.0, starts, in_time)


def test_a_mixture_is_in_time_as_often_as_nothing_is_lost_where_the_deadline_leaves_room_for_no_loss() -> None:
    just = SETUP_HOURS + LOSSLESS
    mixture = Mixture(math.inf, 0.5, 0.0)
    assert mixture.chance(cell(just - 1e-6)) == 0
    assert mixture.chance(cell(just + 1e-6)) == pytest.approx(math.exp(-rate_of(1) * LOSSLESS), rel=1e-6)
    assert mixture.chance(cell(500.0)) > 0.999
    assert Mixture(1.0, 0.5, 0.0).chance(cell(just + 1e-6)) == pytest.approx(1 / (1 + rate_of(1) * LOSSLESS), rel=1e-6)


def test_the_likeliest_model_is_the_one_that_runs_were_drawn_from() -> None:
    true, grid = (
        Mixture(2.5, 1.0, 2.0),
        [Mixture(k, 1.0, spread) for k in (1.0, 2.5, math.inf) for spread in (1.0, 2.0, 4.0)],
    )
    drawn = [cell(hours, 10_000, round(10_000 * true.chance(cell(hours)))) for hours in (4.5, 5.0, 6.0, 8.0, 16.0)]
    assert likeliest(drawn, grid) == true
    plain = Lognormal(0.5, 7.0)
    drawn = [cell(hours, 10_000, round(10_000 * plain.chance(cell(hours)))) for hours in (4.5, 6.0, 16.0)]
    assert likeliest(drawn, [Lognormal(0.5, spread) for spread in (4.0, 7.0, 12.0)]) == plain
