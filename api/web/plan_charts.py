"""The two charts of a plan: cost against time, and what runs when."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from api.render.frontier import thinned
from api.render.machines import place, rented
from api.render.standby import is_standby
from api.render.text import chance, duration, usd, when
from api.web.charts.drawing import Axis, Figure
from api.web.charts.lines import Point, Series, chart
from api.web.charts.spans import Row, Span, timeline

Document = dict[str, Any]

#: Where an axis of hours may be marked: minutes, hours, days, weeks, months of 30 days, years.
HOURS = tuple(
    each / 60 if index < 3 else float(each)
    for index, each in enumerate(
        (1, 5, 20, 1, 3, 6, 12, 24, 48, 96, 168, 336, 720, 1440, 2880, 5760, 8760, 17520, 43800)
    )
)
#: From this ratio of the dearest to the cheapest on, a linear axis hides what the cheap ones differ in.
_WIDE = 6.0


def frontier_figure(plan: Document, links: str) -> Figure | None:
    """The best trades of cost against time, each point a link that plans with its deadline; None without a frontier.

    `links` is what comes before a point's number. The plan itself stands beside, since it may move between machines.
    """
    points = plan.get("frontier") or []
    if not points:
        return None
    shown = thinned(points)
    numbers = [next(n for n, each in enumerate(points) if each is point) for point in shown]
    trades = Series(
        name="best trades on one configuration",
        kind="step",
        points=tuple(
            Point(x=point["hours_confident"], y=float(point["cost_usd"]), title=_told(point), href=f"{links}{number}")
            for point, number in zip(shown, numbers, strict=True)
        ),
    )
    hours, cost = plan["hours"]["confident"], plan["cost_usd"]["expected"]
    own = Point(x=hours, y=float(cost), title=f"this plan: {usd(cost)} in {duration(hours)}", current=True)
    mine = Series(name="this plan", kind="points", style="s2", points=(own,))
    costs = [float(point["cost_usd"]) for point in shown] + [float(cost)]
    wide = min(costs) > 0 and max(costs) / min(costs) >= _WIDE
    deadline = (plan.get("job") or {}).get("deadline")
    drawing = chart(
        "Cost against time: each point plans with its deadline",
        [trades, mine],
        Axis(title="time at the asked confidence", write=duration, log=True, marks=HOURS),
        Axis(title="expected cost", write=short_usd, log=wide, zero=not wide),
        rules=(deadline,) if deadline else (),
    )
    columns = (("time at the asked confidence", True), ("expected", True), ("cost", True), ("machines", False))
    rows = tuple(
        (
            duration(point["hours_confident"]),
            duration(point["hours"]),
            usd(point["cost_usd"]),
            f"{rented(point)}, {place(point)}",
        )
        for point in shown
    )
    legend = (("best trades on one configuration", "s1"), ("this plan", "s2"))
    said = f"; dashed: the deadline, {duration(deadline)}" if deadline else ""
    return Figure(
        title=f"Expected cost against time at the asked confidence{said}",
        drawing=drawing,
        columns=columns,
        rows=rows,
        legend=legend,
    )


def _told(point: Mapping[str, Any]) -> str:
    return f"{usd(point['cost_usd'])} in {duration(point['hours_confident'])}: {rented(point)}, {place(point)}"


def short_usd(amount: float) -> str:
    """A sum as an axis writes it: $800, $12k, $1.5M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(amount) >= size:
            return f"${amount / size:.3g}{unit}"
    return f"${amount:.3g}"


def phases_figure(plan: Document) -> Figure:
    """What runs when; what only stands by, or is fallen back to, is faint and begins when it may be called."""
    switches = [phase for phase in plan["phases"] if is_standby(phase)]
    switches += [plan["fallback"]] if plan.get("fallback") else []
    planned = [phase for phase in plan["phases"] if not is_standby(phase)]
    rows = [_planned_row(number, phase) for number, phase in enumerate(planned)]
    rows += [_switch_row(number, phase) for number, phase in enumerate(switches, start=len(planned))]
    deadline = deadline_at(plan)
    drawing = timeline("What runs when", [row for row, _ in rows], rules=(deadline,) if deadline else ())
    columns = (("machines", False), ("from", False), ("to", False), ("costs", True))
    title = "What runs when (UTC)" + (f"; dashed: the deadline, {when(deadline.isoformat())}" if deadline else "")
    return Figure(title=title, drawing=drawing, columns=columns, rows=tuple(cells for _, cells in rows))


def deadline_at(plan: Document) -> datetime | None:
    """When the job of a plan has to be done; None without a deadline."""
    start, hours = plan.get("start"), (plan.get("job") or {}).get("deadline")
    return datetime.fromisoformat(start) + timedelta(hours=hours) if start and hours else None


def _planned_row(number: int, phase: Document) -> tuple[Row, tuple[str, ...]]:
    """A phase that surely runs, for as long as it takes on average."""
    began = datetime.fromisoformat(phase["starts_at"])
    name = f"{rented(phase)}, {place(phase)}"
    cost = (phase.get("cost_usd") or {}).get("expected")
    return _spanned(number, name, (began, began + timedelta(hours=phase["hours"])), usd(cost), faint=False)


def _switch_row(number: int, switch: Document) -> tuple[Row, tuple[str, ...]]:
    """Machines that are called if the run falls behind: from the last moment, for what may be left of the work then."""
    began = datetime.fromisoformat(switch["switch_by"])
    left = 1.0 - (switch.get("switch_share") or 0.0)
    hours = (switch.get("ready_hours") or 0.0) + left * switch["hours_with_goodput"]
    name = f"{rented(switch)}, {place(switch)}: if called ({chance(switch['probability'])} of runs)"
    cost = (switch.get("cost_usd") or {}).get("expected") or switch.get("extra_usd")
    costs = f"{usd(cost)} on average"
    return _spanned(number, name, (began, began + timedelta(hours=hours)), costs, faint=True)


def _spanned(
    number: int, name: str, span: tuple[datetime, datetime], cost: str, *, faint: bool
) -> tuple[Row, tuple[str, ...]]:
    began, ended = span
    style = f"s{number % 6 + 1}"
    cells = name, when(began.isoformat()), when(ended.isoformat()), cost
    said = f"{name}: {cells[1]} to {cells[2]}, {cost}"
    return Row(name=name, spans=(Span(starts=began, ends=ended, title=said, style=style, faint=faint),)), cells


def sorted_rows(rows: Sequence[Document], by: str) -> list[Document]:
    """Rows by a column's key, the smallest first, or with - before the name the largest first."""
    name = by.removeprefix("-")
    return sorted(rows, key=lambda row: row["keys"][name], reverse=by.startswith("-"))
