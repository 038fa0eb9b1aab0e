"""The Pareto frontier of cost and time, as a table and a text chart."""

from collections.abc import Sequence

from gpuplan.api.presentation.phrases import offer
from gpuplan.api.presentation.sections import Block, Chart, Heading
from gpuplan.api.presentation.text_formatting import duration, usd
from gpuplan.api.presentation.text_tables import chart, heading, listing
from gpuplan.planner.model.shared import Configuration

#: Most rows of the table; the chart and `--json` show all points.
MOST_ROWS = 25


def render_frontier(points: Sequence[Configuration]) -> list[Block | Heading]:
    """The frontier from fastest to cheapest: no other choice is both cheaper and faster than a point on it."""
    rows = [
        (duration(point.hours_confident), duration(point.hours), usd(point.cost_usd), offer(point))
        for point in thinned(points)
    ]
    table = listing(("time at requested confidence", "expected", "cost", "machines"), rows, right=(0, 1, 2))
    return [
        heading(
            f"Cost against time ({len(points)} Pareto-optimal {'point' if len(points) == 1 else 'points'})", "frontier"
        ),
        table,
        *plot(points),
    ]


def thinned[Point: Configuration](points: Sequence[Point]) -> list[Point]:
    """At most `MOST_ROWS` points, evenly spaced, including the first and the last."""
    if len(points) <= MOST_ROWS:
        return list(points)
    step = (len(points) - 1) / (MOST_ROWS - 1)
    return [points[round(step * place)] for place in range(MOST_ROWS)]


def plot(points: Sequence[Configuration]) -> list[Chart]:
    """One bar per point; its length is the cost relative to the highest cost."""
    shown = thinned(points)
    dearest = max((float(point.cost_usd) for point in shown), default=0.0)
    if dearest <= 0 or len(shown) < 2:
        return []
    return [chart((duration(point.hours_confident), float(point.cost_usd), usd(point.cost_usd)) for point in shown)]
