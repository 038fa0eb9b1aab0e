"""Pictures of charts: a PNG that others read, with the marks where the drawing has them."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.charts.picture import PICTURE, png_of

GREEN = (18, 102, 74)


def picture(title: str = "A title", legend: tuple[LegendEntry, ...] = ()) -> Any:
    point = Point(x=5.0, y=5.0, title="here", style="s3")
    other = Point(x=9.0, y=9.0, title="there", style="s2", shape="diamond")
    drawing = chart(
        "t",
        [Series(name="s", kind="points", points=(point, other))],
        Axis(title="across", write=str),
        Axis(title="up", write=str),
        sizes=(PICTURE,),
    )
    png = png_of(Figure(title=title, drawing=drawing, columns=(), rows=(), legend=legend))
    return np.asarray(Image.open(BytesIO(png)))


def test_a_mark_lies_where_the_drawing_has_it_in_its_colour() -> None:
    entries = (LegendEntry(name="a vendor", style="s3"), LegendEntry(name="a kind", style="line", shape="square"))
    image = picture(legend=entries)
    height, width, _ = image.shape
    assert width == 2 * PICTURE.width
    below = image[height - int(2 * PICTURE.height) :]
    rows, columns = np.nonzero((below == GREEN).all(axis=2))
    # The point with the least values stands where the axes meet.
    assert abs(columns.mean() / 2 - PICTURE.left) < 1
    assert abs(rows.mean() / 2 - (PICTURE.height - PICTURE.bottom)) < 1
    assert (image == GREEN).all(axis=2).sum() > len(rows), "the legend shows the colour too"


@pytest.mark.parametrize("title", ["", "漢字 \N{SNOWMAN} <b>&amp;", "a long title " * 12])
def test_a_title_of_any_text_stays_within_the_picture(title: str) -> None:
    image = picture(title)
    assert (image[:, -2:] == 255).all(axis=2)[:10].all()
    assert image.shape[1] == 2 * PICTURE.width
