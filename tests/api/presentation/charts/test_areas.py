"""Stacked areas: heights by value on one scale, steps where values change, and a target for each span."""

import re
from xml.etree import ElementTree as ET

import pytest

from gpuplan.api.presentation.charts.areas import AreaSpan, Layer, stacked_areas
from gpuplan.api.presentation.charts.drawing import Axis

LAYERS = tuple(Layer(name=name, style=style) for name, style in (("own", "s1"), ("commit", "s2"), ("rent", "s3")))
AXIS = Axis(title="", write=str)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*spans: AreaSpan, highest: float) -> list[ET.Element]:
    return list(ET.fromstring(f"<both>{stacked_areas('a', LAYERS, spans, AXIS, AXIS, highest=highest)}</both>"))


def a_span(begin: float, end: float, *values: float) -> AreaSpan:
    return AreaSpan(begin=begin, end=end, values=values, title=f"{begin} to {end}")


def _heights(svg: ET.Element) -> dict[str, list[float]]:
    """The heights in pixels of each layer's spans, from its outline: up along the top, back along the bottom."""
    heights = {}
    for path in svg.iter("path"):
        at = [float(value) for value in re.findall(r"V([-\d.]+)", path.attrib["d"])]
        tops, lows = at[: len(at) // 2], at[len(at) // 2 :]
        heights[path.attrib["class"]] = [low - top for low, top in zip(reversed(lows), tops, strict=True)]
    return heights


def test_areas_are_as_high_as_their_values_and_stand_on_each_other() -> None:
    for svg in drawn(a_span(0, 1, 10, 0, 20), a_span(1, 2.5, 10, 0, 70), highest=200):
        [[first, second], [low, high]] = _heights(svg).values()
        # What has no value anywhere has no area.
        assert list(_heights(svg)) == ["layer s1", "layer s3"]
        assert first == second
        assert low / first == pytest.approx(2, rel=0.05)
        assert high / first == pytest.approx(7, rel=0.05)
        assert [group.attrib["aria-label"] for group in svg.findall("g[@tabindex='0']")] == ["0 to 1", "1 to 2.5"]
        assert [words.text for words in svg.findall("text")] == ["rent"]


def test_what_has_no_area_is_refused() -> None:
    with pytest.raises(ValueError, match="no value below 0"):
        drawn(a_span(0, 1, -1, 0, 0), highest=1)
