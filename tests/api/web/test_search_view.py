"""The chart of a search: from stored points alone, up to its last report."""

import re
from typing import Any

from gpuplan.api.jobs.search_history import SearchProgress, read_progress
from gpuplan.api.web.search_view import search_figure


def point(seconds: float, objective: str | None, bound: str) -> dict[str, Any]:
    return {"seconds": seconds, "objective_usd": objective, "bound_usd": bound}


def progress(seconds: float, history: list[dict[str, Any]]) -> SearchProgress:
    counts = {"gap": None, "jobs_planned": 1, "jobs_seen": 1, "jobs": 1, "stage": "any"}
    read = read_progress({"seconds": seconds, "bound_usd": "0.00", "history": history} | counts)
    assert read is not None
    return read


POINTS = [point(0, None, "0.00"), point(1, "200.00", "0.00"), point(2, "200.00", "90.00"), point(4, "100.00", "99.00")]


def test_a_search_is_drawn_from_its_first_bound_to_its_last_report() -> None:
    figure = search_figure(progress(8.0, POINTS), live=False)
    assert figure is not None
    assert figure.rows == (
        ("2 s", "$200.00", "$90.00", "55.00 %"),
        ("4 s", "$100.00", "$99.00", "1.00 %"),
        ("8 s", "$100.00", "$99.00", "1.00 %"),
    )
    # Both drawings, for desks and phones: a mark for each row, and two lines of steps.
    assert figure.drawing.count('class="mark"') == 2 * 3
    assert [len(re.findall("H", path)) for path in re.findall(r'class="path s\d" d="([^"]+)"', figure.drawing)] == [
        2
    ] * 4
    live = search_figure(progress(8.0, POINTS), live=True)
    assert live is not None
    assert "tabindex" not in live.drawing


def test_a_search_without_plan_and_bound_or_of_a_run_that_kept_none_is_not_drawn() -> None:
    for history in ([], POINTS[:1], POINTS[:2]):
        assert search_figure(progress(8.0, history), live=True) is None
    assert search_figure(progress(2.0, POINTS[:3]), live=True) is None
