"""Pictures of charts: a PNG that others read, with the marks where the drawing has them."""

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.lines import Point, Series, chart
from gpuplan.api.presentation.charts.picture import PICTURE, png_of
from gpuplan.api.presentation.charts.raster import Raster
from gpuplan.api.presentation.charts.stroke_font import advance, strokes

GREEN, WHITE = (18, 102, 74), (255, 255, 255)


def pixels(png: bytes) -> Any:
    """The pixels of a PNG without filters, read by the letter of its standard."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length]) == (zlib.crc32(name + data),)
        chunks[name], at = data, at + 12 + length
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours) == (8, 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_mark_lies_where_the_drawing_has_it_in_its_colour() -> None:
    point = Point(x=5.0, y=5.0, title="here", style="s3")
    other = Point(x=9.0, y=9.0, title="there", style="s2", shape="diamond")
    drawing = chart(
        "t",
        [Series(name="s", kind="points", points=(point, other))],
        Axis(title="across", write=str),
        Axis(title="up", write=str),
        sizes=(PICTURE,),
    )
    entries = (LegendEntry(name="a vendor", style="s3"), LegendEntry(name="a kind", style="line", shape="square"))
    image = pixels(png_of(Figure(title="A title", drawing=drawing, columns=(), rows=(), legend=entries)))
    height, width, _ = image.shape
    assert width == 2 * PICTURE.width
    below = image[height - int(2 * PICTURE.height) :]
    rows, columns = np.nonzero((below == GREEN).all(axis=2))
    x, y = columns.mean() / 2, rows.mean() / 2
    # Half-way over the data, 5 of 5 to 9, stands at the start of the axis, and at the bottom.
    assert abs(x - PICTURE.left) < 1
    assert abs(y - (PICTURE.height - PICTURE.bottom)) < 1
    assert (image == GREEN).all(axis=2).sum() > len(rows), "the legend shows the colour too"


def test_an_area_covers_what_is_inside_and_half_of_what_its_edge_cuts() -> None:
    raster = Raster(20, 20, WHITE)
    raster.area(np.array([(5.0, 5.0), (15.5, 5.0), (15.5, 15.0), (5.0, 15.0)]), (0, 0, 0))
    image = pixels(raster.png())
    assert (image[10, 10] == 0).all()
    assert (image[10, 3] == 255).all()
    assert (image[10, 15] == 128).all()


@pytest.mark.parametrize("place", [(-50.0, -50.0), (50.0, 50.0), (-5.0, 10.0)])
def test_what_lies_outside_is_cut_off(place: tuple[float, float]) -> None:
    raster = Raster(20, 20, WHITE)
    raster.lines([np.array([place, (place[0] + 8, place[1])])], 2.0, (0, 0, 0))
    assert pixels(raster.png()).shape == (20, 20, 3)


def test_every_letter_is_drawn_within_its_advance_and_an_unknown_one_as_a_box() -> None:
    for letter in map(chr, range(33, 127)):
        points = np.concatenate(strokes(letter))
        assert points[:, 0].min() >= -0.1
        assert points[:, 0].max() <= advance(letter), letter
    assert len(strokes("漢")) == 1
    assert strokes(" ") == []
