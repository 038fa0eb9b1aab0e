"""The best trades of cost against time, as a table and as a plot in text."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from api.render.machines import place, rented
from api.render.tables import cell, heading, listing
from api.render.text import duration, usd

PLOT_COLUMNS = 40
#: Points of a table that one still reads; the plot and `--json` hold them all.
MOST_ROWS = 25


def render_frontier(points: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """From the fastest to the cheapest: no other choice is both cheaper and faster than one of these."""
    rows = [
        (duration(each["hours_confident"]), duration(each["hours"]), usd(each["cost_usd"]), _machines(each))
        for each in thinned(points)
    ]
    table = listing(("time at the asked confidence", "expected", "cost", "machines"), rows, right=(0, 1, 2))
    return [
        heading(f"Cost against time ({len(points)} best {'trade' if len(points) == 1 else 'trades'})"),
        table,
        *plot(points),
    ]


def _machines(point: Mapping[str, Any]) -> str:
    return f"{rented(point)}, {place(point)}"


def thinned(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most `MOST_ROWS` of the points, evenly, the first and the last among them."""
    if len(points) <= MOST_ROWS:
        return list(points)
    step = (len(points) - 1) / (MOST_ROWS - 1)
    return [points[round(step * place)] for place in range(MOST_ROWS)]


def plot(points: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """One bar per point, as long as its cost is of the dearest."""
    shown = thinned(points)
    dearest = max((float(each["cost_usd"]) for each in shown), default=0.0)
    if dearest <= 0 or len(shown) < 2:
        return []
    lines = []
    for each in shown:
        length = max(1, round(PLOT_COLUMNS * float(each["cost_usd"]) / dearest))
        lines.append(
            cell("").append(f"  {duration(each['hours_confident']):>10} {'#' * length} {usd(each['cost_usd'])}")
        )
    return [cell(""), *lines]
