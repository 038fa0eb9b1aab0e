"""The course of a search: changes alone are kept, and of very many every second one."""

from decimal import Decimal

import pytest

from gpuplan.api.jobs.search_history import MOST_POINTS, SearchHistory, SearchProgress, read_progress
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire


def progress(seconds: float, objective: str | None, bound: str) -> SearchProgress:
    return SearchProgress(
        seconds=seconds,
        objective_usd=None if objective is None else Decimal(objective),
        bound_usd=Decimal(bound),
        gap=None,
        jobs_planned=0,
        jobs_seen=1,
        jobs=1,
        stage="any",
    )


def test_only_changes_of_the_plan_or_the_bound_are_kept_with_the_time_of_each() -> None:
    history = SearchHistory()
    first = history.after(progress(0, None, "0.00"))
    for seconds, objective, bound in (
        (1, "9.00", "0.00"),
        (2, "9.00", "0.00"),
        (3, "9.00", "5.00"),
        (4, "9.00", "5.00"),
    ):
        points = history.after(progress(seconds, objective, bound))
    assert wire(points) == [
        {"seconds": 0, "objective_usd": None, "bound_usd": "0.00"},
        {"seconds": 1, "objective_usd": "9.00", "bound_usd": "0.00"},
        {"seconds": 3, "objective_usd": "9.00", "bound_usd": "5.00"},
    ]
    # What was handed out is another's to read meanwhile.
    assert len(first) == 1


def test_a_long_search_keeps_its_first_and_last_change_and_few_between() -> None:
    history = SearchHistory()
    for second in range(10 * MOST_POINTS):
        points = history.after(progress(second, "1.00", f"{second}.00"))
        assert len(points) <= MOST_POINTS
        assert points[0].seconds == 0
        assert points[-1].seconds == second
    assert [point.seconds for point in points] == sorted(point.seconds for point in points)


def test_stored_progress_is_read_as_it_was_written_also_that_of_earlier_versions() -> None:
    written = wire(progress(3, "9.00", "5.00"))
    assert wire(read_progress(written)) == written
    earlier = {"seconds": 0.2, "bound_usd": "14.384444", "gap": 0.0, "jobs_planned": 1, "jobs_seen": 1, "jobs": 1}
    read = read_progress(earlier | {"best_usd": "14.384444", "stage": "done"})
    assert read is not None
    assert (read.seconds, read.cost_usd, read.history) == (0.2, None, ())
    assert read_progress({}) is None
    with pytest.raises(UnusableInput, match="stage"):
        read_progress(earlier)
