"""Data for the page of a procurement decision: its cost over the years, and where it turns."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from gpuplan.api.presentation.charts.areas import AreaSpan, Layer, stacked_areas
from gpuplan.api.presentation.charts.drawing import NARROW, WIDE, Axis, Figure, LegendEntry, Size
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.plan_charts import short_usd
from gpuplan.api.presentation.text_formatting import number, percent, plain, usd
from gpuplan.planner.model.procurement import ForecastSweep, ProcurementPlan, ScenarioYears, SweepStep, YearlyCost

#: Most decisions that have a colour of their own.
_STYLES = ("s1", "s2", "s3", "s4", "s5", "s6")
#: Own, commit and rent, from the bottom.
_LAYERS = (Layer(name="own", style="s1"), Layer(name="commit", style="s2"), Layer(name="rent", style="s3"))
#: A chart beside others.
_BESIDE = Size(name="wide", width=400.0, height=280.0, left=60.0, right=14.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class YearsView:
    """The cost over the years in one scenario: its name with its probability, and the chart."""

    name: str
    figure: Figure


def years_views(decision: ProcurementPlan) -> list[YearsView]:
    """The cost over the years in each scenario, all on one scale, so that they compare."""
    scenarios = decision.over_years
    highest = max((sum(_parts(years)) for scenario in scenarios for years in scenario.years), default=0.0)
    sizes = (WIDE if len(scenarios) == 1 else _BESIDE, NARROW)
    return [_years_view(scenario, highest, sizes) for scenario in scenarios] if highest > 0 else []


def _sums(years: YearlyCost) -> tuple[Decimal, ...]:
    """The cost of each of the layers."""
    return years.own_usd_per_year, years.commitments_usd_per_year, years.renting_usd_per_year


def _parts(years: YearlyCost) -> tuple[float, ...]:
    return tuple(map(float, _sums(years)))


def _years_view(scenario: ScenarioYears, highest: float, sizes: tuple[Size, ...]) -> YearsView:
    spans = tuple(
        AreaSpan(begin=years.from_year, end=years.until_year, values=_parts(years), title=_spent(years))
        for years in scenario.years
    )
    across = Axis(title="years from the start", write=number, marks=tuple(map(float, range(int(spans[-1].end) + 1))))
    up = Axis(title="USD a year", write=short_usd)
    title = f"Cost a year: {plain(scenario.name)}"
    drawing = stacked_areas(title, _LAYERS, spans, across, up, highest=highest, sizes=sizes)
    # What has no cost in any year of the scenario has no area, and no column.
    used = [place for place in range(len(_LAYERS)) if any(span.values[place] for span in spans)]
    columns = (("years", False), *((_LAYERS[place].name, True) for place in used), ("total", True))
    legend = tuple(LegendEntry(name=_LAYERS[place].name, style=_LAYERS[place].style, shape="square") for place in used)
    rows = tuple(
        (_span(years), *(usd(_sums(years)[place]) for place in used), usd(sum(_sums(years))))
        for years in scenario.years
    )
    name = (
        plain(scenario.name)
        if scenario.probability == 1
        else f"{plain(scenario.name)} ({percent(scenario.probability)})"
    )
    return YearsView(
        name=name, figure=Figure(title="Cost a year", drawing=drawing, columns=columns, rows=rows, legend=legend)
    )


def _spent(years: YearlyCost) -> str:
    """`Years 0 to 1: $9,000 a year, own $5,000, rent $4,000`."""
    sums = _sums(years)
    parts = [f"{layer.name} {usd(value)}" for layer, value in zip(_LAYERS, sums, strict=True) if value]
    return ", ".join([f"Years {_span(years)}: {usd(sum(sums))} a year", *parts])


def _span(years: YearlyCost) -> str:
    return f"{number(years.from_year)} to {number(years.until_year)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepView:
    """A sweep: its name, chart, the steps in words in order of the multiple, and the place of the step of the stated forecast."""

    key: str
    name: str
    figure: Figure
    steps: tuple[str, ...]
    stated: int


def sweep_views(decision: ProcurementPlan) -> list[SweepView]:
    """The sweeps of a decision that have solved steps."""
    sensitivity = decision.sensitivity
    sweeps = {"Runs": sensitivity.utilisation, "Price of electricity": sensitivity.electricity}
    return [view for name, sweep in sweeps.items() if sweep is not None and (view := _view(name, sweep)) is not None]


def _view(name: str, sweep: ForecastSweep) -> SweepView | None:
    turns = [turn for turn in (sweep.changes_below, sweep.changes_above) if turn is not None]
    by_multiple = {multiple(step): step for step in (*turns, *sweep.steps) if step.cost_usd is not None}
    steps = [by_multiple[at] for at in sorted(by_multiple)]
    if len(steps) < 2 or 1.0 not in by_multiple:
        return None
    return SweepView(
        key=name.split(maxsplit=1)[0].lower(),
        name=name,
        figure=_figure(name, steps),
        steps=tuple(f"{_words(step)}{' (where the decision turns)' if step in turns else ''}" for step in steps),
        stated=sorted(by_multiple).index(1.0),
    )


def multiple(step: SweepStep) -> float:
    """The multiple of the forecast's runs, or of its price of electricity."""
    value = step.times_the_runs if step.times_the_price is None else step.times_the_price
    if value is None:
        raise AssertionError("a step of a sweep has a multiple")
    return value


def _words(step: SweepStep) -> str:
    return f"{multiple(step):g} x: {plain(step.answer)}, {usd(step.cost_usd)}"


def _figure(name: str, steps: list[SweepStep]) -> Figure:
    """Cost against the multiple, a colour for each decision; a line joins neighbours with the same decision."""
    # The decision for the forecast itself has the same colour in every chart.
    stated = next(step.answer for step in steps if multiple(step) == 1.0)
    answers = list(dict.fromkeys([stated, *(step.answer for step in steps)]))
    style = {answer: _STYLES[min(number, len(_STYLES) - 1)] for number, answer in enumerate(answers)}
    series = [
        Series(
            name=answer,
            style=style[answer],
            points=tuple(
                Point(x=multiple(step), y=float(step.cost_usd or 0), title=_words(step), current=multiple(step) == 1.0)
                for step in same
            ),
        )
        for answer, same in groupby(steps, key=lambda step: step.answer)
    ]
    title = f"Present cost against the multiple of the {name[0].lower()}{name[1:]}"
    across = Axis(title="times the forecast", write=lambda value: f"{value:g} x", log=True)
    up = Axis(title="USD", write=lambda value: f"${value:,.0f}", zero=True)
    return Figure(
        title=title,
        drawing=chart(title, series, across, up),
        columns=(("times", True), ("decision", False), ("cost", True)),
        rows=tuple((f"{multiple(step):g}", plain(step.answer), usd(step.cost_usd)) for step in steps),
        legend=tuple(LegendEntry(name=plain(answer, limit=80), style=style[answer]) for answer in answers),
    )
