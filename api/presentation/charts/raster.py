"""Smooth lines and areas on pixels, and their PNG: enough for pictures of charts without a graphics library.

Coverage of a pixel is its distance to the shape's edge, cut to one pixel; a shape is drawn once, so that its joints are
not darker than its lines.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.presentation.charts.stroke_font import CAPITAL, advance, strokes
from gpuplan.catalog.snapshots.offer_columns import Floats

Colour = tuple[int, int, int]

#: Width of the lines of letters in shares of the height of a capital.
_LETTER_LINE = 0.135


@dataclass(frozen=True, slots=True)
class _Box:
    """A part of the picture: its rows and columns, and the centres of its pixels."""

    rows: slice
    columns: slice
    x: Floats
    y: Floats


class Raster:
    """A picture on a ground, in pixels from the upper left corner."""

    def __init__(self, width: int, height: int, ground: Colour) -> None:
        """A picture of one colour."""
        self.pixels = np.empty((height, width, 3))
        self.pixels[:] = ground

    def lines(self, lines: Sequence[Floats], width: float, colour: Colour) -> None:
        """Lines through points, shape (points, 2), with round ends."""
        lines = [points for points in lines if len(points) > 1]
        if not lines:
            return
        box = self._box(np.concatenate(lines), width)
        distance = np.sqrt(_squared_distance(lines, box, width / 2 + 1.0))
        self._blend(box, np.clip(width / 2 + 0.5 - distance, 0.0, 1.0), colour)

    def area(self, outline: Floats, colour: Colour, opacity: float = 1.0) -> None:
        """The inside of an outline, shape (points, 2), whose last point joins the first."""
        closed = np.concatenate([outline, outline[:1]])
        box = self._box(closed, 1.0)
        distance = np.sqrt(_squared_distance([closed], box, 1.0))
        signed = np.where(_is_inside(closed, box), -distance, distance)
        self._blend(box, opacity * np.clip(0.5 - signed, 0.0, 1.0), colour)

    def text(self, x: float, y: float, text: str, size: float, colour: Colour, *, anchor: str = "start") -> None:
        """A line of text whose capitals are `size` pixels high, from, around or up to x, on the baseline y."""
        scale = size / CAPITAL
        left = x - advance(text) * scale * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        placed = [points * np.array((scale, -scale)) + np.array((left, y)) for points in strokes(text)]
        self.lines(placed, size * _LETTER_LINE, colour)

    def png(self) -> bytes:
        """The picture as a PNG (RFC 2083) of 8 bits per colour."""
        height, width, _ = self.pixels.shape
        rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
        rows[:, 1:] = np.rint(self.pixels).astype(np.uint8).reshape(height, -1)
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)

    def _box(self, points: Floats, margin: float) -> _Box:
        """The part of the picture within `margin` pixels of the points."""
        height, width, _ = self.pixels.shape
        low, high = points.min(axis=0) - margin - 1, points.max(axis=0) + margin + 2
        left, top = (int(max(0, place)) for place in low)
        right, bottom = int(min(width, high[0])), int(min(height, high[1]))
        x, y = (np.arange(low, max(low, high), dtype=np.float64) + 0.5 for low, high in ((left, right), (top, bottom)))
        return _Box(slice(top, top + len(y)), slice(left, left + len(x)), x, y[:, None])

    def _blend(self, box: _Box, coverage: Floats, colour: Colour) -> None:
        part = self.pixels[box.rows, box.columns]
        part += coverage[..., None] * (np.array(colour) - part)


def _squared_distance(lines: Sequence[Floats], box: _Box, reach: float) -> Floats:
    """The squared distance of every pixel of the box to the nearest segment; infinite beyond `reach` pixels."""
    nearest = np.full((len(box.y), len(box.x)), np.inf)
    for points in lines:
        low, high = np.minimum(points[:-1], points[1:]) - reach, np.maximum(points[:-1], points[1:]) + reach
        columns = np.searchsorted(box.x, np.stack([low[:, 0], high[:, 0]], axis=1))
        rows = np.searchsorted(box.y[:, 0], np.stack([low[:, 1], high[:, 1]], axis=1))
        for (x1, y1), (x2, y2), (left, right), (top, bottom) in zip(
            points[:-1], points[1:], columns, rows, strict=True
        ):
            dx, dy = x2 - x1, y2 - y1
            x, y = box.x[left:right] - x1, box.y[top:bottom] - y1
            along = np.clip((x * dx + y * dy) / (dx * dx + dy * dy or 1.0), 0.0, 1.0)
            part = nearest[top:bottom, left:right]
            np.minimum(part, (x - along * dx) ** 2 + (y - along * dy) ** 2, out=part)
    return nearest


def _is_inside(closed: Floats, box: _Box) -> NDArray[np.bool_]:
    """Whether the centre of a pixel is inside the outline, by the even-odd rule."""
    inside = np.zeros((len(box.y), len(box.x)), dtype=bool)
    for (x1, y1), (x2, y2) in pairwise(closed):
        if y1 == y2:
            continue
        crosses = (box.y < y1) != (box.y < y2)
        inside ^= crosses & (box.x < x1 + (box.y - y1) / (y2 - y1) * (x2 - x1))
    return inside


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
