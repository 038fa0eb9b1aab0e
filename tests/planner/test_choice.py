"""The frontier of cost and time, against comparing all with all."""

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.configurations import Configurations
from planner.choice import pareto
from planner.cost.bill import Bill


def table_of(cost: np.ndarray, hours: np.ndarray) -> Configurations:
    """Configurations of these costs and hours; all else is zero."""
    zeros: Any = np.zeros(len(cost))
    bill = Bill(**{each.name: zeros for each in fields(Bill)} | {"cost_usd": cost, "hours_kept": hours})
    own: dict[str, Any] = {each.name: zeros for each in fields(Configurations)}
    return Configurations(**own | {"bill": bill})


@given(st.integers(0, 10**6), st.integers(0, 120), st.integers(2, 30))
@settings(max_examples=150, deadline=None)
def test_exactly_the_first_of_what_nothing_beats_in_cost_and_time_is_kept(seed: int, count: int, levels: int) -> None:
    draw = np.random.default_rng(seed)
    cost, hours = np.floor(draw.uniform(0, levels, (2, count)))
    among = draw.random(count) < 0.8
    points = [(hours[i], cost[i], i) for i in np.flatnonzero(among)]
    kept = [
        (h, c, i)
        for h, c, i in points
        if not any(a <= h and b <= c and ((a, b) != (h, c) or j < i) for a, b, j in points)
    ]
    assert pareto(table_of(cost, hours), among).tolist() == [i for _, _, i in sorted(kept)]
