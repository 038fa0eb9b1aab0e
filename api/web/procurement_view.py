"""Data for the page of a procurement decision: how it turns as the runs or the price of electricity move."""

from dataclasses import dataclass
from itertools import groupby

from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.text_formatting import plain, usd
from gpuplan.planner.model.procurement import ForecastSweep, ProcurementPlan, SweepStep

#: Most decisions that have a colour of their own.
_STYLES = ("s1", "s2", "s3", "s4", "s5", "s6")


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
