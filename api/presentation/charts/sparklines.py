"""Spark-lines: the prices of one offer as a small drawing in a row of a table.

A dot is a price that its source stated at that time. A line joins prices that every refresh between them confirmed; where
nothing was seen there is nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from gpuplan.api.presentation.text_formatting import usd_per_hour

WIDTH, HEIGHT, _MARGIN = 96.0, 22.0, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A price in dollars per hour that was observed at a time; `joined` to the one before if always confirmed between."""

    at: datetime
    usd: float
    joined: bool


def sparkline(seen: Sequence[Seen], *, begin: datetime, end: datetime) -> Markup:
    """The observations from `begin` to `end`, in order; words where there are none."""
    within = [one for one in seen if begin <= one.at <= end]
    if not within:
        words = f"last {seen[-1].at:%Y-%m-%d}" if seen else "no history"
        return Markup('<small class="quiet">{}</small>').format(words)
    low, high = min(one.usd for one in within), max(one.usd for one in within)
    span = max((end - begin).total_seconds(), 1.0)

    def across(moment: datetime) -> str:
        return f"{_MARGIN + (WIDTH - 2 * _MARGIN) * (moment - begin).total_seconds() / span:.1f}"

    def up(usd: float) -> str:
        share = (usd - low) / (high - low) if high > low else 0.5
        return f"{HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * share:.1f}"

    line, dots, height = "", "", ""
    for number, one in enumerate(within):
        x, y = across(one.at), up(one.usd)
        if one.joined and number:
            line += f"H{x}" if y == height else f"H{x}V{y}"
        else:
            line += f"M{x} {y}"
        dots += f"M{x} {y}h0"
        height = y
    label = (
        f"seen once, {usd_per_hour(round(low, 6))}"
        if len(within) == 1
        else f"seen {len(within)} times, {usd_per_hour(round(low, 6))} to {usd_per_hour(round(high, 6))}"
    )
    label += f", last on {within[-1].at:%Y-%m-%d}"
    return Markup(
        '<svg class="spark" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}"><title>{}</title><path d="{}"/><path class="dots" d="{}"/></svg>'
    ).format(WIDTH, HEIGHT, label, label, line, dots)
