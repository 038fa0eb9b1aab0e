"""The charts of a plan: cost against time, also with carbon, and the schedule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import NARROW, WIDE, Axis, Figure, LegendEntry, Size
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.charts.picture import PICTURE, png_of
from gpuplan.api.presentation.charts.spans import Row, Span, timeline
from gpuplan.api.presentation.frontier import thinned
from gpuplan.api.presentation.phrases import deadline_at, offer
from gpuplan.api.presentation.text_formatting import chance, duration, number, usd, when
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.model.explanation import FrontierPoint
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Configuration, ContingencyStandby, Phase, Usd

#: Tick values of an axis of hours: minutes, hours, days, weeks, months of 30 days, years.
HOURS = tuple(
    count / 60 if index < 3 else float(count)
    for index, count in enumerate(
        (1, 5, 20, 1, 3, 6, 12, 24, 48, 96, 168, 336, 720, 1440, 2880, 5760, 8760, 17520, 43800)
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KindShape:
    """How marks of a group of price kinds are drawn, and what a legend calls them."""

    shape: str
    name: str
    tag: str


#: Colours of marks by vendor of the accelerator.
_VENDOR_STYLES = {"NVIDIA": "s3", "AMD": "s2", "Google": "s1", "AWS": "s5", "Intel": "s4"}
_OTHER_VENDOR = "s6"
_SPOT = _KindShape(shape="circle", name="spot", tag="kind-spot")
_ON_DEMAND = _KindShape(shape="square", name="on demand", tag="kind-on-demand")
_BOOKED = _KindShape(shape="diamond", name="reserved or booked", tag="kind-booked")
_OWNED = _KindShape(shape="triangle", name="your own", tag="kind-owned")
#: Points of the chart of cost, time and carbon.
MOST_CARBON_POINTS = 40
#: Above this ratio of the highest to the lowest cost the axis is logarithmic, to keep low costs distinguishable.
_LOG_RATIO = 6.0
#: The axis of time of both charts of cost.
_TIME = Axis(title="time at requested confidence", write=duration, log=True, marks=HOURS)


def frontier_figure(plan: Plan, links: str | None, sizes: Sequence[Size] = (WIDE, NARROW)) -> Figure | None:
    """The Pareto frontier of cost and time; a point links to a plan with its deadline. None without a frontier.

    `links` is the prefix of a point's number; None for points without links. Colours stand for vendors, shapes for price
    kinds, the band for costs up to that of 95 % of runs. The plan is a separate point, because it may migrate between
    machines.
    """
    points = plan.frontier or ()
    if not points:
        return None
    shown = thinned(points)
    numbers = [next(n for n, candidate in enumerate(points) if candidate is point) for point in shown]
    trades = Series(
        name="frontier of single configurations",
        kind="step",
        style="line",
        points=tuple(
            _frontier_point(point, None if links is None else f"{links}{number}")
            for point, number in zip(shown, numbers, strict=True)
        ),
        upper=tuple(float(point.cost_p95_usd) for point in shown),
    )
    mine = _this_plan(plan)
    deadline, budget = plan.job.get("deadline"), plan.job.get("budget_usd")
    drawing = chart(
        "Cost against time" if links is None else "Cost against time: a point links to a plan with its deadline",
        [trades, mine],
        _TIME,
        _cost_axis([*(point.cost_usd for point in shown), plan.cost_usd.expected]),
        rules=(deadline,) if deadline else (),
        levels=(float(budget),) if budget else (),
        sizes=sizes,
    )
    columns = (("time at requested confidence", True), ("expected", True), ("cost", True), ("machines", False))
    rows = tuple(
        (
            duration(point.hours_confident),
            duration(point.hours),
            usd(point.cost_usd),
            offer(point),
        )
        for point in shown
    )
    return Figure(
        title=f"Expected cost against time at requested confidence{_key(deadline, budget, drawing)}",
        drawing=drawing,
        columns=columns,
        rows=rows,
        legend=(*_legend(shown), _legend_of_plan(plan.phases[0])),
    )


def _this_plan(plan: Plan) -> Series:
    """The plan as a point beside the frontier."""
    hours, cost, first = plan.hours.confident, plan.cost_usd.expected, plan.phases[0]
    point = Point(
        x=hours,
        y=float(cost),
        title=f"this plan: {usd(cost)} in {duration(hours)}",
        current=True,
        style=_style(first.accelerator),
        shape=_shape(first.price_kind).shape,
    )
    return Series(name="this plan", kind="points", points=(point,))


def _key(deadline: float | None, budget: str | None, drawing: Markup) -> str:
    """What the lines and the band of the frontier mean; the chart has no line for a budget beyond its costs."""
    note = f"; dashed: the deadline, {duration(deadline)}" if deadline else ""
    if budget:
        is_drawn = 'class="rule budget"' in drawing
        note += (
            f"; across: the budget, {usd(budget)}" if is_drawn else f"; the budget, {usd(budget)}, is beyond the chart"
        )
    return f"{note}; shaded: up to 95 % of runs"


def carbon_figure(points: Sequence[FrontierPoint]) -> Figure:
    """Choices that no other beats in cost, time and carbon: the area of a mark is its carbon, `points` not empty.

    At most `MOST_CARBON_POINTS` points, evenly spaced in time, with the one of least carbon.
    """
    ordered = sorted(points, key=lambda point: point.hours_confident)
    step = max(1, math.ceil(len(ordered) / MOST_CARBON_POINTS))
    least, most = (extreme(ordered, key=lambda point: point.carbon_kg) for extreme in (min, max))
    shown = [point for number, point in enumerate(ordered) if number % step == 0 or point is least]
    heaviest = most.carbon_kg or 1.0
    # Large marks first, so that small ones are not covered.
    drawn = [
        replace(
            _frontier_point(point, None),
            title=f"{_point_title(point)}, {_kg(point)}",
            size=max(0.7, 2.6 * math.sqrt(point.carbon_kg / heaviest)),
        )
        for point in sorted(shown, key=lambda point: -point.carbon_kg)
    ]
    drawing = chart(
        "Cost, time and carbon",
        [Series(name="choices", kind="points", points=tuple(drawn))],
        _TIME,
        _cost_axis([point.cost_usd for point in shown]),
    )
    rows = tuple(
        (
            duration(point.hours_confident),
            usd(point.cost_usd),
            _kg(point),
            offer(point),
        )
        for point in shown
    )
    return Figure(
        title=f"Area: carbon of the run, from {_kg(least)} to {_kg(most)}; no choice is better in all three",
        drawing=drawing,
        columns=(("time at requested confidence", True), ("cost", True), ("carbon", True), ("machines", False)),
        rows=rows,
        legend=_legend(shown),
    )


def _kg(point: FrontierPoint) -> str:
    return f"{number(point.carbon_kg)} kg CO2e"


def frontier_picture(plan: Plan) -> bytes | None:
    """The chart of cost against time as a PNG; None without a frontier."""
    figure = frontier_figure(plan, None, (PICTURE,))
    return None if figure is None else png_of(figure)


def _frontier_point(point: Configuration, href: str | None) -> Point:
    shape = _shape(point.price_kind)
    return Point(
        x=point.hours_confident,
        y=float(point.cost_usd),
        title=_point_title(point),
        href=href,
        style=_style(point.accelerator),
        shape=shape.shape,
        tags=(_vendor_tag(_vendor(point.accelerator)), shape.tag),
    )


def _style(accelerator: str) -> str:
    return _VENDOR_STYLES.get(_vendor(accelerator), _OTHER_VENDOR)


def _vendor(accelerator: str) -> str:
    """The vendor; `other` for an accelerator of a saved plan that the table no longer has."""
    chip = accelerators().get(accelerator)
    return "other" if chip is None else chip.vendor


def _vendor_tag(vendor: str) -> str:
    return f"vendor-{vendor.lower()}"


def _shape(price_kind: str) -> _KindShape:
    kind = price_kinds()[price_kind]
    if kind.owned:
        return _OWNED
    if kind.interruptible:
        return _SPOT
    return _ON_DEMAND if kind.is_plain else _BOOKED


def _cost_axis(costs: Sequence[Usd]) -> Axis:
    """An axis for these costs: from 0, or logarithmic where they are far apart."""
    is_log = min(costs) > 0 and float(max(costs) / min(costs)) >= _LOG_RATIO
    return Axis(title="expected cost", write=short_usd, log=is_log, zero=not is_log)


def _legend(shown: Sequence[Configuration]) -> tuple[LegendEntry, ...]:
    """Vendors by colour and price kinds by shape, as far as they occur, each a filter."""
    vendors = dict.fromkeys(_vendor(point.accelerator) for point in shown)
    shapes = dict.fromkeys(_shape(point.price_kind) for point in shown)
    return (
        *(
            LegendEntry(name=vendor, style=_VENDOR_STYLES.get(vendor, _OTHER_VENDOR), filters=_vendor_tag(vendor))
            for vendor in vendors
        ),
        *(LegendEntry(name=one.name, style="line", shape=one.shape, filters=one.tag) for one in shapes),
    )


def _legend_of_plan(first: Phase) -> LegendEntry:
    shape = _shape(first.price_kind).shape
    return LegendEntry(name="this plan (ringed)", style=_style(first.accelerator), shape=shape)


def _point_title(point: Configuration) -> str:
    return f"{usd(point.cost_usd)} in {duration(point.hours_confident)}: {offer(point)}"


def short_usd(amount: float) -> str:
    """A sum in short form: $800, $12k, $1.5M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(amount) >= size:
            return f"${amount / size:.3g}{unit}"
    return f"${amount:.3g}"


def phases_figure(plan: Plan) -> Figure:
    """The schedule. Standbys are faint and start when they may take over."""
    switches: list[Phase | ContingencyStandby] = [phase for phase in plan.phases if phase.is_standby]
    switches += [plan.fallback] if plan.fallback else []
    planned = [phase for phase in plan.phases if not phase.is_standby]
    rows = [_planned_row(number, phase) for number, phase in enumerate(planned)]
    rows += [_switch_row(number, phase) for number, phase in enumerate(switches, start=len(planned))]
    deadline = deadline_at(plan)
    drawing = timeline("Schedule", [row for row, _ in rows], rules=(deadline,) if deadline else ())
    columns = (("machines", False), ("from", False), ("to", False), ("costs", True))
    title = "Schedule (UTC)" + (f"; dashed: the deadline, {when(deadline)}" if deadline else "")
    return Figure(title=title, drawing=drawing, columns=columns, rows=tuple(cells for _, cells in rows))


def _planned_row(number: int, phase: Phase) -> tuple[Row, tuple[str, ...]]:
    """A planned phase with its average duration."""
    span = phase.starts_at, phase.starts_at + timedelta(hours=phase.hours)
    return _spanned(number, offer(phase), span, usd(phase.cost_usd.expected), faint=False)


def _switch_row(number: int, switch: Phase | ContingencyStandby) -> tuple[Row, tuple[str, ...]]:
    """A standby, from the latest switch time, for the work that may be left then."""
    left = (1.0 - (switch.switch_share or 0.0)) * switch.hours_with_goodput
    if isinstance(switch, Phase):
        began, ready, cost = switch.switch_by or switch.starts_at, 0.0, switch.cost_usd.expected
    else:
        began, ready, cost = switch.switch_by, switch.ready_hours, switch.extra_usd
    name = f"{offer(switch)}: standby ({chance(switch.probability)} of runs)"
    span = began, began + timedelta(hours=ready + left)
    return _spanned(number, name, span, f"{usd(cost)} on average", faint=True)


def _spanned(
    number: int, name: str, span: tuple[datetime, datetime], cost: str, *, faint: bool
) -> tuple[Row, tuple[str, ...]]:
    began, ended = span
    style = f"s{number % 6 + 1}"
    cells = name, when(began), when(ended), cost
    title = f"{name}: {cells[1]} to {cells[2]}, {cost}"
    return Row(name=name, spans=(Span(starts=began, ends=ended, title=title, style=style, faint=faint),)), cells
