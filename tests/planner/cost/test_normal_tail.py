"""The upper tail of the normal distribution is that of the C library, to the last digits."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.planner.cost.normal_tail import upper_tail


def exact(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


@given(st.floats(-60.0, 37.0))
def test_any_tail_is_right_to_a_few_units_of_the_last_digit(z: float) -> None:
    assert abs(upper_tail(np.array([z]))[0] / exact(z) - 1.0) < 4e-15


def test_tails_are_right_on_either_side_of_where_the_formulas_change() -> None:
    ends = np.array([0.46875, 4.0]) * math.sqrt(2)
    z = np.concatenate([ends * (1 + part) for part in (-1e-12, 0.0, 1e-12)])
    z = np.concatenate((z, -z))
    np.testing.assert_allclose(upper_tail(z), [exact(value) for value in z.tolist()], rtol=4e-15)


def test_nothing_is_left_beyond_what_a_float_can_hold() -> None:
    assert upper_tail(np.array([60.0, np.inf, -60.0, -np.inf])).tolist() == [0.0, 0.0, 1.0, 1.0]
