"""Which standbys are left out before pairs are priced: only those that one other beats in everything."""

from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns
from gpuplan.planner.strategies.standby.standby_pairs import worth_a_standby

Figures = tuple[int, int, int, int]


def _columns(figures: list[Figures]) -> PhaseColumns:
    """Standbys with these places, hours of work, USD by the step and hours of set-up."""
    place, work, usd, setup = np.array(figures).T
    ones = np.ones(len(figures))
    run = SimpleNamespace(
        nodes=ones,
        usd_per_node_hour=usd.astype(float),
        setup_hours=setup.astype(float),
        work_hours=work.astype(float),
        log_sigma=ones,
        billing_step_hours=ones,
        billing_minimum_hours=ones,
        storage_usd_per_hour=place.astype(float),
        power_usd_per_node_hour=0 * ones,
    )
    return cast(PhaseColumns, SimpleNamespace(run=run, place=place, migration_class=np.zeros(len(figures), np.int64)))


def test_a_standby_stays_that_two_faster_ones_beat_each_in_one_thing_alone() -> None:
    one_starts_late, other_is_dear, between = (0, 1, 1, 3), (0, 2, 3, 1), (0, 3, 2, 2)
    worthwhile = worth_a_standby(_columns([one_starts_late, other_is_dear, between]), np.arange(3))
    assert worthwhile.tolist() == [0, 1, 2]


@settings(deadline=None)
@given(
    figures=st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=12
    )
)
def test_what_is_left_out_is_beaten_by_one_that_is_kept_and_nothing_kept_is_beaten(figures: list[Figures]) -> None:
    worthwhile = worth_a_standby(_columns(figures), np.arange(len(figures))).tolist()

    def beats(one: int, other: int) -> bool:
        same_place = figures[one][0] == figures[other][0]
        return same_place and all(a <= b for a, b in zip(figures[one][1:], figures[other][1:], strict=True))

    for candidate in range(len(figures)):
        assert (candidate in worthwhile) != any(beats(other, candidate) for other in worthwhile if other != candidate)
