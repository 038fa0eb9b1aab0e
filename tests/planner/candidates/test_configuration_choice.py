"""The Pareto frontier of cost and time, compared with a check of all pairs."""

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.candidates.configuration_choice import pareto
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.cost.cost_breakdown import CostBreakdown


def table_of(cost: np.ndarray, hours: np.ndarray) -> Configurations:
    """Configurations of these costs and hours; all else is zero."""
    zeros: Any = np.zeros(len(cost))
    cost_breakdown = CostBreakdown(
        **{field.name: zeros for field in fields(CostBreakdown)} | {"cost_usd": cost, "hours_at_confidence": hours}
    )
    arrays: dict[str, Any] = {field.name: zeros for field in fields(Configurations)}
    return Configurations(**arrays | {"cost_breakdown": cost_breakdown})


@given(st.integers(0, 10**6), st.integers(0, 120), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_exactly_the_first_of_what_nothing_beats_in_cost_and_time_is_kept(seed: int, count: int, levels: int) -> None:
    draw = np.random.default_rng(seed)
    cost, hours = np.floor(draw.uniform(0, levels, (2, count)))
    among = draw.random(count) < 0.8
    points = [(hours[i], cost[i], i) for i in np.flatnonzero(among)]
    front = [
        (h, c, i)
        for h, c, i in points
        if not any(a <= h and b <= c and ((a, b) != (h, c) or j < i) for a, b, j in points)
    ]
    assert pareto(table_of(cost, hours), among).tolist() == [i for _, _, i in sorted(front)]
