"""Jobs over machines and time: bars inside the drawing, dates marked, names harmless."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from gpuplan.api.presentation.charts.gantt import Bar, Lane
from gpuplan.api.presentation.charts.gantt_board import gantt, tracks_of, usage

START = datetime(2026, 11, 22, 8, tzinfo=UTC)


def hours(count: float) -> datetime:
    return START + timedelta(hours=count)


def bar(name: str = "a", **changes: object) -> Bar:
    given: dict[str, object] = {
        "name": name,
        "title": f"{name} in words",
        "href": "#job-0",
        "starts": START,
        "ends": hours(4),
        "reserved_until": hours(5),
    }
    return Bar(**given | changes)  # type: ignore[arg-type]


def drawn(*lanes: Lane) -> list[ET.Element]:
    """The rows of the wide drawing, and the narrow one."""
    both = ET.fromstring(f"<both>{gantt('jobs', lanes, starts=START)}</both>")
    return [svg for svg in both.iter("svg") if svg.get("class") in {"wide", "narrow"}]


def test_a_bar_is_a_link_to_its_line_and_says_itself_in_words() -> None:
    for svg in drawn(Lane(name="aws", style=0, bars=(bar(),))):
        [link] = svg.findall("a")
        assert (link.attrib["href"], link.attrib["aria-label"]) == ("#job-0", "a in words")
        reserved, run = link.findall("rect")
        assert (reserved.attrib["class"], run.attrib["class"]) == ("reserved", "bar")
        # Four of five hours run, the fifth is kept.
        assert float(run.attrib["width"]) == pytest.approx(4 * float(reserved.attrib["width"]), rel=0.01)
        assert float(reserved.attrib["x"]) == pytest.approx(
            float(run.attrib["x"]) + float(run.attrib["width"]), abs=0.2
        )


def test_providers_differ_by_colour_and_by_pattern() -> None:
    lanes = [Lane(name=str(style), style=style, bars=(bar(),)) for style in (0, 1, 2)]
    wide, narrow = drawn(*lanes)
    overlays = [[rect.get("fill") for rect in link.findall("rect") if rect.get("fill")] for link in wide.findall("a")]
    assert overlays == [[], ["url(#gantt-wide-slanted)"], ["url(#gantt-wide-dotted)"]]
    assert [link.get("class") for link in wide.findall("a")] == ["s1", "s2", "s3"]
    ids = [pattern.attrib["id"] for svg in (wide, narrow) for pattern in svg.iter("pattern")]
    assert len(ids) == len(set(ids))


def test_dates_are_marked_and_one_far_off_stands_at_the_edge() -> None:
    near = bar(release=hours(1), deadline=hours(6))
    far = bar(deadline=hours(5000))
    wide, _ = drawn(Lane(name="aws", style=0, bars=(near, far)))
    first, second = wide.findall("a")
    assert [line.attrib["class"] for line in first.findall("line")] == ["release", "due"]
    due = float(second.findall("line")[0].attrib["x1"])
    assert due == 920 - 12
    run = next(rect for rect in second.findall("rect") if rect.attrib["class"] == "bar")
    assert float(run.attrib["width"]) > 400


def test_nothing_lies_outside_the_drawing() -> None:
    early = bar(release=hours(-3), starts=hours(-1))
    for svg in drawn(
        Lane(name="aws", style=4, bars=(early, bar(deadline=hours(90)))), Lane(name="b", style=7, bars=(bar(),))
    ):
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        for rect in svg.iter("rect"):
            assert 0 <= float(rect.attrib["x"]) <= float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
            assert 0 <= float(rect.attrib["y"]) <= float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height
        for line in svg.iter("line"):
            assert all(0 <= float(line.attrib[name]) <= width for name in ("x1", "x2"))


def test_a_name_that_is_markup_stays_a_name() -> None:
    hostile = "</text><script>alert(1)</script>\"'&"
    wide, narrow = drawn(Lane(name=hostile, style=0, bars=(bar(hostile),)))
    assert not list(narrow.iter("script"))
    assert [label.text for label in narrow.findall("text")].count(hostile) == 2
    assert [label.text for label in wide.findall("text")] == [hostile]


def test_jobs_at_the_same_time_on_the_same_machines_stand_below_each_other() -> None:
    first, second, third = (
        bar(name, starts=hours(begin), ends=hours(begin + 1), reserved_until=hours(end), accelerators=8.0)
        for name, begin, end in (("a", 0, 2), ("b", 1, 3), ("c", 2, 4))
    )
    assert tracks_of([third, second, first]) == [[first, third], [second]]
    assert usage([first, second, third]) == [
        (hours(0), 8),
        (hours(1), 16),
        (hours(2), 16),
        (hours(3), 8),
        (hours(4), 0),
    ]
    chart = str(gantt("jobs", [Lane(name="aws: p5", style=0, bars=(first, second, third))], starts=START, zoom=4))
    assert 'aria-label="Accelerators reserved over time: at most 16, first at 2026-11-22 09:00 UTC"' in chart
    assert 'viewBox="0 0 3680 ' in chart


def test_no_bar_is_no_chart() -> None:
    with pytest.raises(ValueError, match="at least one"):
        gantt("jobs", [Lane(name="aws", style=0, bars=())], starts=START)
