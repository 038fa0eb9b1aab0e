"""The law of lognormal lost hours that is compared with the lognormal of a plan."""

import math

import numpy as np
import pytest

from tools.benchmarks.runs_without_loss import Cell, Lognormal, Shifted, likeliest
from tools.fitting.spot_waits import SETUP_HOURS, Attempts, rate_of

#: Hours of 4 h of work with their checkpoints at the best interval of the rate without a published one.
LOSSLESS = 4 * (1 + 1 / 60 / math.sqrt(2 / 60 / rate_of(1)))


def cell(deadline_hours: float, starts: int = 100, in_time: int = 0) -> Cell:
    none = np.zeros(0)
    one = Attempts(nodes=1, work_hours=4.0, deadline_hours=deadline_hours, in_time=none > 0, days=none.astype(np.int64))
    return Cell(one, 1.0, starts, in_time)


def test_no_run_ends_before_the_hours_that_it_takes_without_a_loss() -> None:
    just, law = SETUP_HOURS + LOSSLESS, Shifted(0.5, 2.0)
    assert law.chance(cell(just - 1e-6)) == 0
    assert law.chance(cell(just + 1e-6)) < 0.01
    assert law.chance(cell(5000.0)) > 0.999


def test_lost_hours_keep_the_mean_of_a_plan_where_zones_do_not_differ() -> None:
    law, end = Shifted(0.5, 0.0), SETUP_HOURS + LOSSLESS
    beyond = np.linspace(0.0, 60.0, 6001)
    late = np.array([1 - law.chance(cell(end + hours)) for hours in beyond])
    mean = float(np.sum((late[1:] + late[:-1]) / 2 * np.diff(beyond)))
    # Each loss costs half an hour away, a quarter to restart, and half of the 0.57 h to the end of the next checkpoint; a
    # tenth of them hits what is done again.
    assert mean == pytest.approx(rate_of(1) * LOSSLESS * (0.5 + 0.25 + 0.57 / 2), rel=0.1)


def test_the_likeliest_model_is_the_one_that_runs_were_drawn_from() -> None:
    true = Shifted(0.5, 2.0)
    grid = [Shifted(share, spread) for share in (0.25, 0.5, 1.0) for spread in (1.0, 2.0, 4.0)]
    drawn = [cell(hours, 10_000, round(10_000 * true.chance(cell(hours)))) for hours in (4.5, 5.0, 6.0, 8.0, 16.0)]
    assert likeliest(drawn, grid) == true
    plain = Lognormal(0.5, 7.0)
    drawn = [cell(hours, 10_000, round(10_000 * plain.chance(cell(hours)))) for hours in (4.5, 6.0, 16.0)]
    assert likeliest(drawn, [Lognormal(0.5, spread) for spread in (4.0, 7.0, 12.0)]) == plain
