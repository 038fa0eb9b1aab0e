"""The course of a search: changes alone are kept, and of very many every second one."""

from gpuplan.api.jobs.search_history import MOST_POINTS, SearchHistory
from gpuplan.catalog.parsing.json_object import JsonObject


def progress(seconds: float, objective: str | None, bound: str) -> JsonObject:
    return {"seconds": seconds, "objective_usd": objective, "bound_usd": bound, "stage": "any"}


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
    assert [(point["seconds"], point["objective_usd"], point["bound_usd"]) for point in points] == [
        (0, None, "0.00"),
        (1, "9.00", "0.00"),
        (3, "9.00", "5.00"),
    ]
    # A list that was handed out is another's to read meanwhile.
    assert len(first) == 1


def test_a_long_search_keeps_its_first_and_last_change_and_few_between() -> None:
    history = SearchHistory()
    for second in range(10 * MOST_POINTS):
        points = history.after(progress(second, "1.00", f"{second}.00"))
        assert len(points) <= MOST_POINTS
        assert points[0]["seconds"] == 0
        assert points[-1]["seconds"] == second
    assert [point["seconds"] for point in points] == sorted(point["seconds"] for point in points)
