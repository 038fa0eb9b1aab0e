"""Charts: every figure lies where its axis says, axes are marked at round figures, and words are escaped."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.presentation.charts.drawing import Axis
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.charts.scale import Scale
from gpuplan.api.presentation.charts.spans import Row, Span, marks, timeline
from gpuplan.api.presentation.plan_charts import HOURS, frontier_figure, phases_figure, short_usd
from gpuplan.planner.model.plan import Plan, PlannedAnswer
from tests.api.presentation.test_plan import PLAN
from tests.partial_answers import answer_of

FIGURES = st.lists(st.floats(1e-6, 1e12, allow_nan=False), min_size=1, max_size=20)
START = datetime(2026, 11, 22, 12, tzinfo=UTC)


@settings(deadline=None)
@given(FIGURES, st.booleans(), st.booleans())
def test_every_value_lies_within_its_scale_in_its_order(values: list[float], log: bool, zero: bool) -> None:
    scale = Scale.over(values, start=10.0, end=510.0, log=log, zero=zero and not log)
    places = [scale.at(value) for value in sorted(values)]
    assert all(9.9 <= place <= 510.1 for place in places)
    assert places == sorted(places)
    ticks = scale.ticks(5)
    assert 1 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))
    assert all(scale.low * (1 - 1e-9) - 1e-9 <= tick <= scale.high * (1 + 1e-9) + 1e-9 for tick in ticks)


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_a_scale_of_nothing_or_of_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        Scale.over(values, start=0, end=1)


def test_a_logarithm_has_no_place_for_nothing() -> None:
    with pytest.raises(ValueError, match="0 or less"):
        Scale.over([0.0, 1.0], start=0, end=1, log=True)


def test_a_chart_has_a_title_at_every_point_and_escapes_it() -> None:
    points = (
        Point(x=1, y=2, title='<b>&"x"', href="/plans/a?b=1&c=2"),
        Point(x=3, y=5, title="here", current=True),
    )
    series = [Series(name="s", points=points, kind="step")]
    drawn = chart("A < B", series, Axis(title="h", write=str), Axis(title="$", write=short_usd), rules=(2.0,))
    wide, narrow = ET.fromstring(f"<both>{drawn}</both>")
    for svg in (wide, narrow):
        assert svg.get("aria-label") == "A < B"
        link = svg.find(".//a")
        assert link is not None
        assert (link.get("href"), link.findtext("title")) == ("/plans/a?b=1&c=2", '<b>&"x"')
        assert len(svg.findall(".//*[@tabindex]")) == 1
        assert svg.find(".//line[@class='rule deadline']") is not None
        assert "style" not in ET.tostring(svg, encoding="unicode")
        path = svg.find(".//path")
        assert path is not None
        assert "H" in (path.get("d") or "")


def test_spans_lie_from_start_to_end_and_what_may_not_happen_is_faint() -> None:
    spans = (
        Span(starts=START, ends=START + timedelta(hours=10), title="a"),
        Span(starts=START + timedelta(hours=10), ends=START + timedelta(hours=20), title="b", faint=True),
    )
    drawn = timeline("t", [Row(name="r" * 200, spans=spans)])
    wide, _ = ET.fromstring(f"<both>{drawn}</both>")
    first, second = wide.findall(".//rect")
    assert float(first.get("x", 0)) + float(first.get("width", 0)) == pytest.approx(float(second.get("x", 0)), abs=0.2)
    assert float(first.get("width", 0)) == pytest.approx(float(second.get("width", 0)), abs=0.2)
    assert len(wide.findall(".//g[@class='point s1 faint']")) == 1
    with pytest.raises(ValueError, match="at least one"):
        timeline("t", [])


@settings(deadline=None)
@given(st.floats(0.02, 24 * 365 * 9), st.integers(3, 8))
def test_an_axis_of_time_is_marked_a_few_times_at_round_moments(hours: float, most: int) -> None:
    axis_marks = marks(START, START + timedelta(hours=hours), most)
    assert len(axis_marks) <= most + 1
    assert all(START <= moment <= START + timedelta(hours=hours) for moment in axis_marks)
    if hours > 24 * most:
        assert all((moment.hour, moment.minute) == (0, 0) for moment in axis_marks)


def test_sums_on_an_axis_are_short() -> None:
    assert [short_usd(amount) for amount in (0.5, 800, 12_000, 1_500_000, 2e9)] == [
        "$0.5",
        "$800",
        "$12k",
        "$1.5M",
        "$2B",
    ]
    assert list(HOURS) == sorted(HOURS)


def test_what_may_be_called_is_faint_and_lasts_as_long_as_what_is_left_then() -> None:
    where = {"provider": "aws", "region": "us-east-1", "zone": "", "instance_type": "p5", "nodes": 2}
    spot = where | {"price_kind": "spot", "starts_at": "2026-11-22T00:00:00Z", "hours": 100.0, "role": "planned"}
    back = where | {
        "price_kind": "on_demand",
        "switch_by": "2026-11-25T00:00:00Z",
        "switch_share": 0.6,
        "hours_with_goodput": 50.0,
        "ready_hours": 4.0,
        "probability": 0.05,
        "extra_usd": "12.00",
    }
    plan = {"start": "2026-11-22T00:00:00Z", "job": {"deadline": 96.0}, "phases": [spot], "fallback": back}
    figure = phases_figure(answer_of(Plan, plan))
    assert figure.rows[1][1:] == ("2026-11-25 00:00 UTC", "2026-11-26 00:00 UTC", "$12.00 on average")
    wide, _ = ET.fromstring(f"<both>{figure.drawing}</both>")
    assert len(wide.findall(".//rect")) == 2
    assert len(wide.findall(".//g[@class='point s2 faint']")) == 1
    assert "5.0 %" in figure.rows[1][0]


@pytest.mark.parametrize(
    ("budget", "words", "lines"),
    [("1600", "; across: the budget, $1,600.00;", 1), ("90000", "; the budget, $90,000.00, is beyond the chart;", 0)],
)
def test_the_words_of_a_chart_name_the_line_of_a_budget_only_if_there_is_one(
    budget: str, words: str, lines: int
) -> None:
    plan = answer_of(PlannedAnswer, PLAN).plan
    figure = frontier_figure(replace(plan, job=plan.job | {"budget_usd": budget}), None)
    assert figure is not None
    assert words in figure.title
    wide, _ = ET.fromstring(f"<both>{figure.drawing}</both>")
    assert len(wide.findall(".//line[@class='rule budget']")) == lines
