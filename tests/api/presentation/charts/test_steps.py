"""Prices as steps: gaps stay gaps, marks say their figures, and many changes are reached as one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from gpuplan.api.presentation.charts.drawing import Axis
from gpuplan.api.presentation.charts.steps import MOST_LINES, MOST_MARKS, PriceObservation, StepLine, steps_chart

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
UP = Axis(title="USD per hour", write=lambda value: f"${value:g}", zero=True)
SVG = "{http://www.w3.org/2000/svg}"


def seen(hour: int, value: float, *, joined: bool = True) -> PriceObservation:
    return PriceObservation(at=BEGIN + timedelta(hours=hour), value=value, joined=joined, title=f"{value} at {hour}")


def drawn(*lines: StepLine) -> list[ET.Element]:
    return list(ET.fromstring(f"<both>{steps_chart('prices', lines, UP)}</both>"))


def a_line(name: str, *times: PriceObservation, href: str | None = "/prices?x=1&y=2") -> StepLine:
    return StepLine(name=name, seen=times, title=f"all of {name}", href=href)


def test_a_line_joins_observations_and_a_gap_is_not_drawn_over() -> None:
    wide, narrow = drawn(a_line("a", seen(0, 5), seen(2, 7), seen(4, 7), seen(6, 5, joined=False), seen(9, 5)))
    for svg in (wide, narrow):
        [path] = svg.findall("path")
        path_data = path.attrib["d"]
        assert (path_data.count("M"), path_data.count("H")) == (2, 3)
        assert len(svg.findall(".//circle[@class='mark']")) == 5


def test_a_single_observation_is_a_mark_without_any_line() -> None:
    for svg in drawn(a_line("a", seen(3, 5)), a_line("b", seen(0, 2), seen(9, 2, joined=False))):
        assert svg.findall("path") == []
        assert len(svg.findall(".//circle[@class='mark']")) == 3


def test_a_line_ends_where_a_price_was_last_seen() -> None:
    wide, _ = drawn(a_line("a", seen(0, 5), seen(2, 5)), a_line("b", seen(0, 7), seen(9, 7)))
    short, long = (path.attrib["d"] for path in wide.findall("path"))
    ends = [float(path_data.split("H")[1].split("V")[0]) for path_data in (short, long)]
    assert ends[0] < ends[1]


def test_each_observation_is_reached_says_its_figures_and_leads_on() -> None:
    wide, _ = drawn(a_line("a", seen(0, 5), seen(2, 7)))
    links = wide.findall("a")
    assert [link.attrib["aria-label"] for link in links] == ["5 at 0", "7 at 2"]
    assert {link.attrib["href"] for link in links} == {"/prices?x=1&y=2"}
    assert [link.findtext("title") for link in links] == ["5 at 0", "7 at 2"]


def test_a_line_with_many_observations_is_reached_as_a_whole() -> None:
    observations = [seen(hour, hour % 7 + 1) for hour in range(MOST_MARKS + 1)]
    wide, _ = drawn(a_line("a", *observations), a_line("b", seen(0, 2), seen(9, 2), href=None))
    assert [link.attrib["aria-label"] for link in wide.findall("a")] == ["all of a"]
    assert [group.attrib["aria-label"] for group in wide.findall("g[@tabindex='0']")] == ["all of b"]
    assert len(wide.findall(".//circle[@class='mark']")) == len(observations) + 2


def test_lines_are_told_apart_by_letters_that_never_lie_on_each_other() -> None:
    wide, _ = drawn(*(a_line(str(number), seen(0, 5), seen(9, 5)) for number in range(MOST_LINES)))
    letters = [label for label in wide.findall("text") if label.get("class") == "strong"]
    assert [letter.text for letter in letters] == ["A", "B", "C", "D", "E", "F"]
    heights = [float(letter.attrib["y"]) for letter in letters]
    assert min(second - first for first, second in pairwise(heights)) >= 12
    assert len({path.attrib["class"] for path in wide.findall("path")}) == MOST_LINES


def test_letters_are_moved_apart_evenly_so_that_none_stands_at_the_line_of_another() -> None:
    wide, _ = drawn(
        *(a_line(str(price), seen(0, price), seen(9, price)) for price in (10.2, 11.2, 11.5, 11.9, 12.6, 12.9))
    )
    letters = [float(label.attrib["y"]) - 4 for label in wide.findall("text") if label.get("class") == "strong"]
    ends = [float(path.attrib["d"].split("H")[0].rpartition(" ")[2]) for path in wide.findall("path")]
    assert letters == sorted(letters, reverse=True)
    assert sum(letters) == pytest.approx(sum(ends), abs=1)
    assert min(first - second for first, second in pairwise(letters)) >= 12


def test_one_moment_and_one_price_can_be_drawn() -> None:
    assert len(drawn(a_line("a", seen(0, 0.0)))) == 2


def test_what_cannot_be_told_apart_or_has_nothing_to_show_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 6"):
        drawn(*(a_line(str(number), seen(0, 5), seen(9, 5)) for number in range(MOST_LINES + 1)))
    with pytest.raises(ValueError, match="at least one"):
        drawn(a_line("a"))
