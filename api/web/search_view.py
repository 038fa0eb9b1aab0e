"""The course of a search as a chart: the best plan and the lower bound over time, from what its run stored."""

from gpuplan.api.jobs.search_history import SearchProgress
from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.plan_charts import short_usd
from gpuplan.api.presentation.text_formatting import duration, percent, usd
from gpuplan.planner.portfolio.search_progress import gap

TITLE = "Best plan and lower bound over the search: the band between them is the gap"


def search_figure(progress: SearchProgress, *, live: bool) -> Figure | None:
    """The chart of a run's `progress`; None before two points have a plan and a bound.

    A search that goes on is drawn without points to reach, because the drawing is replaced again and again.
    """
    known = [
        (point.seconds, float(point.objective_usd), float(point.bound_usd))
        for point in progress.history
        if point.objective_usd is not None and point.bound_usd > 0
    ]
    if not known:
        return None
    if progress.seconds > known[-1][0]:
        # The values of the last change still hold at the last report.
        known.append((progress.seconds, *known[-1][1:]))
    if len(known) < 2:
        return None
    titles = [
        f"{duration(seconds / 3600)}: best plan {usd(objective)}, lower bound {usd(bound)}, gap {percent(gap(objective, bound), 2)}"
        for seconds, objective, bound in known
    ]
    plans = tuple(Point(x=row[0], y=row[1], title=title) for row, title in zip(known, titles, strict=True))
    bounds = tuple(Point(x=row[0], y=row[2], title=title) for row, title in zip(known, titles, strict=True))
    series = [
        Series(
            name="lower bound",
            kind="step",
            style="s2",
            points=bounds,
            marks=False,
            upper=tuple(row[1] for row in known),
        ),
        Series(name="best plan", kind="step", style="s1", points=plans, marks=not live),
    ]
    across = Axis(title="time of the search", write=lambda seconds: duration(seconds / 3600))
    return Figure(
        title=TITLE,
        drawing=chart(TITLE, series, across, Axis(title="USD", write=short_usd)),
        columns=(("after", True), ("best plan", True), ("lower bound", True), ("gap", True)),
        rows=tuple(
            (duration(seconds / 3600), usd(objective), usd(bound), percent(gap(objective, bound), 2))
            for seconds, objective, bound in known
        ),
        legend=(LegendEntry(name="best plan", style="s1"), LegendEntry(name="lower bound", style="s2")),
    )
