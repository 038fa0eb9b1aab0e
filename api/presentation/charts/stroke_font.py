"""Letters as lines and curves, for pictures of charts: a service needs no font file and no library for them.

A letter is an advance and a path over a grid with the baseline at 0, the height of small letters at 5 and that of
capitals at 7, upwards. Paths have moves (M), lines (L) and quadratic curves (Q), all absolute.
"""

import re
from functools import cache

import numpy as np

from gpuplan.catalog.snapshots.offer_columns import Floats

#: Distance from the baseline to the top of a capital, on the grid.
CAPITAL = 7.0
#: Points of a curve.
_CURVE_POINTS = 7
_COMMAND = re.compile(r"([MLQ])([^MLQ]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+")

#: Advance and path by letter. A letter outside is drawn as its replacement, a box.
_LETTERS = {
    " ": (3.0, ""),
    "!": (2.6, "M1.3 7L1.3 2.4M1.3 .3L1.3 0"),
    "$": (5.8, "M5 5.2Q4.8 6.2 2.9 6.2Q.8 6.2 .8 4.8Q.8 3.7 2.9 3.5Q5.1 3.3 5.1 2Q5.1 .6 2.9 .6Q.9 .6 .7 1.7M2.9 7.4L2.9 -.6"),
    "%": (7.6, "M6.2 7L1.4 0M.8 5.4Q.8 3.9 2 3.9Q3.2 3.9 3.2 5.4Q3.2 7 2 7Q.8 7 .8 5.4M4.4 1.5Q4.4 0 5.6 0Q6.8 0 6.8 1.5Q6.8 3.1 5.6 3.1Q4.4 3.1 4.4 1.5"),
    "&": (6.6, "M6 0L1.9 4.8Q1.2 5.6 1.4 6.2Q1.8 7 2.7 7Q4 7 4 5.8Q4 4.8 2.4 3.9Q.7 3 .7 1.8Q.7 0 2.7 0Q5 0 5.7 3"),
    "'": (2.0, "M1 7L1 5.2"),
    "(": (3.2, "M2.5 7.6Q.8 5.6 .8 3.1Q.8 .6 2.5 -1.4"),
    ")": (3.2, "M.7 7.6Q2.4 5.6 2.4 3.1Q2.4 .6 .7 -1.4"),
    "*": (4.6, "M2.3 6.6L2.3 3.4M.9 5.8L3.7 4.2M.9 4.2L3.7 5.8"),
    "+": (5.8, "M2.9 5.2L2.9 1M.8 3.1L5 3.1"),
    ",": (2.6, "M1.4 .3L1.4 0Q1.4 -.8 .7 -1.4"),
    "-": (4.2, "M.8 2.9L3.4 2.9"),
    ".": (2.6, "M1.3 .3L1.3 0"),
    "/": (4.0, "M3.4 7.4L.6 -.8"),
    "0": (5.8, "M2.9 0Q.8 0 .8 3.5Q.8 7 2.9 7Q5 7 5 3.5Q5 0 2.9 0"),
    "1": (5.8, "M1.2 5.6L3.2 7L3.2 0"),
    "2": (5.8, "M.9 5.3Q1 7 2.9 7Q4.8 7 4.8 5.2Q4.8 4 3.6 2.8L.9 0L5 0"),
    "3": (5.8, "M.9 5.8Q1.3 7 2.9 7Q4.7 7 4.7 5.4Q4.7 3.8 2.4 3.8Q5 3.8 5 1.9Q5 0 2.9 0Q1 0 .8 1.5"),
    "4": (5.8, "M4 0L4 7L.6 2L5.2 2"),
    "5": (5.8, "M4.7 7L1.4 7L1.1 3.9Q1.8 4.4 2.9 4.4Q5 4.4 5 2.2Q5 0 2.8 0Q1 0 .8 1.4"),
    "6": (5.8, "M4.7 6.2Q4.2 7 3.1 7Q.9 7 .9 3.1Q.9 0 2.9 0Q5 0 5 2.2Q5 4.3 3 4.3Q1.2 4.3 .9 2.5"),
    "7": (5.8, "M.8 7L5 7L2.2 0"),
    "8": (5.8, "M2.9 3.8Q1 3.8 1 5.4Q1 7 2.9 7Q4.8 7 4.8 5.4Q4.8 3.8 2.9 3.8Q.7 3.8 .7 1.9Q.7 0 2.9 0Q5.1 0 5.1 1.9Q5.1 3.8 2.9 3.8"),
    "9": (5.8, "M1.1 .8Q1.6 0 2.7 0Q4.9 0 4.9 3.9Q4.9 7 2.9 7Q.8 7 .8 4.8Q.8 2.7 2.8 2.7Q4.6 2.7 4.9 4.5"),
    ":": (2.6, "M1.3 4.6L1.3 4.3M1.3 .3L1.3 0"),
    ";": (2.6, "M1.3 4.6L1.3 4.3M1.4 .3L1.4 0Q1.4 -.8 .7 -1.4"),
    "<": (5.8, "M4.8 5.2L1 3.1L4.8 1"),
    "=": (5.8, "M.8 4L5 4M.8 2.2L5 2.2"),
    ">": (5.8, "M1 5.2L4.8 3.1L1 1"),
    "A": (6.6, "M.5 0L3.3 7L6.1 0M1.4 2.2L5.2 2.2"),
    "B": (6.2, "M1 0L1 7L3.2 7Q5.1 7 5.1 5.4Q5.1 3.8 3.2 3.8L1 3.8M3.2 3.8Q5.5 3.8 5.5 1.9Q5.5 0 3.2 0L1 0"),
    "C": (6.8, "M6.1 1.4Q5.3 0 3.6 0Q.8 0 .8 3.5Q.8 7 3.6 7Q5.3 7 6.1 5.6"),
    "D": (6.8, "M1 0L1 7L2.8 7Q6 7 6 3.5Q6 0 2.8 0L1 0"),
    "E": (5.8, "M5.1 0L1 0L1 7L5.1 7M1 3.7L4.6 3.7"),
    "F": (5.6, "M1 0L1 7L5 7M1 3.6L4.5 3.6"),
    "G": (7.0, "M6 5.6Q5.2 7 3.6 7Q.8 7 .8 3.5Q.8 0 3.6 0Q6.2 0 6.2 3.2L3.9 3.2"),
    "H": (7.0, "M1 0L1 7M6 0L6 7M1 3.6L6 3.6"),
    "I": (2.8, "M1.4 0L1.4 7"),
    "J": (5.0, "M4 7L4 2Q4 0 2.3 0Q.8 0 .6 1.4"),
    "K": (6.2, "M1 0L1 7M5.6 7L1 2.6M2.6 4.1L5.8 0"),
    "L": (5.4, "M1 7L1 0L5 0"),
    "M": (8.2, "M1 0L1 7L4.1 2L7.2 7L7.2 0"),
    "N": (7.0, "M1 0L1 7L6 0L6 7"),
    "O": (7.4, "M3.7 0Q.8 0 .8 3.5Q.8 7 3.7 7Q6.6 7 6.6 3.5Q6.6 0 3.7 0"),
    "P": (6.0, "M1 0L1 7L3.2 7Q5.4 7 5.4 5Q5.4 3 3.2 3L1 3"),
    "Q": (7.4, "M3.7 0Q.8 0 .8 3.5Q.8 7 3.7 7Q6.6 7 6.6 3.5Q6.6 0 3.7 0M4.4 1.8L6.6 -.6"),
    "R": (6.2, "M1 0L1 7L3.2 7Q5.4 7 5.4 5.1Q5.4 3.2 3.2 3.2L1 3.2M3.4 3.2L5.7 0"),
    "S": (6.0, "M5.2 5.8Q4.8 7 3 7Q.9 7 .9 5.3Q.9 3.9 3 3.6Q5.3 3.3 5.3 1.8Q5.3 0 3 0Q1 0 .7 1.4"),
    "T": (6.0, "M3 0L3 7M.5 7L5.5 7"),
    "U": (6.8, "M1 7L1 2.6Q1 0 3.4 0Q5.8 0 5.8 2.6L5.8 7"),
    "V": (6.4, "M.5 7L3.2 0L5.9 7"),
    "W": (9.0, "M.6 7L2.5 0L4.5 6.4L6.5 0L8.4 7"),
    "X": (6.2, "M.7 7L5.5 0M5.5 7L.7 0"),
    "Y": (6.2, "M.5 7L3.1 3.3L5.7 7M3.1 3.3L3.1 0"),
    "Z": (6.0, "M.8 7L5.2 7L.8 0L5.2 0"),
    "_": (5.0, "M.3 -1L4.7 -1"),
    "a": (5.4, "M1 4.2Q1.5 5 2.7 5Q4.5 5 4.5 3.3L4.5 0M4.5 2.9Q.7 3.1 .7 1.4Q.7 0 2.2 0Q4 0 4.5 1.7"),
    "b": (5.8, "M1 7L1 0M1 2.5Q1 5 3 5Q5.1 5 5.1 2.5Q5.1 0 3 0Q1 0 1 2.5"),
    "c": (5.0, "M4.6 1.1Q4 0 2.8 0Q.7 0 .7 2.5Q.7 5 2.8 5Q4 5 4.6 3.9"),
    "d": (5.8, "M4.8 7L4.8 0M4.8 2.5Q4.8 0 2.8 0Q.7 0 .7 2.5Q.7 5 2.8 5Q4.8 5 4.8 2.5"),
    "e": (5.4, "M.8 2.6L4.8 2.6Q4.8 5 2.8 5Q.7 5 .7 2.5Q.7 0 2.9 0Q4.2 0 4.7 1"),
    "f": (3.4, "M3.2 7Q1.4 7.3 1.4 5.4L1.4 0M.3 5L2.9 5"),
    "g": (5.8, "M4.8 5L4.8 .2Q4.8 -2 2.7 -2Q1.4 -2 .9 -1.1M4.8 2.5Q4.8 0 2.8 0Q.7 0 .7 2.5Q.7 5 2.8 5Q4.8 5 4.8 2.5"),
    "h": (5.6, "M1 7L1 0M1 2.9Q1.3 5 3 5Q4.7 5 4.7 3.1L4.7 0"),
    "i": (2.4, "M1.2 5L1.2 0M1.2 7L1.2 6.8"),
    "j": (2.4, "M1.3 5L1.3 -.6Q1.3 -2 0 -2M1.3 7L1.3 6.8"),
    "k": (5.0, "M1 7L1 0M4.4 5L1 1.9M2.2 3L4.7 0"),
    "l": (2.6, "M1.1 7L1.1 1Q1.1 0 2.1 0"),
    "m": (8.2, "M1 5L1 0M1 3Q1.3 5 2.7 5Q4.1 5 4.1 3.2L4.1 0M4.1 3Q4.4 5 5.8 5Q7.2 5 7.2 3.2L7.2 0"),
    "n": (5.6, "M1 5L1 0M1 2.9Q1.3 5 3 5Q4.7 5 4.7 3.1L4.7 0"),
    "o": (5.6, "M2.8 0Q.7 0 .7 2.5Q.7 5 2.8 5Q4.9 5 4.9 2.5Q4.9 0 2.8 0"),
    "p": (5.8, "M1 5L1 -2M1 2.5Q1 5 3 5Q5.1 5 5.1 2.5Q5.1 0 3 0Q1 0 1 2.5"),
    "q": (5.8, "M4.8 5L4.8 -2M4.8 2.5Q4.8 0 2.8 0Q.7 0 .7 2.5Q.7 5 2.8 5Q4.8 5 4.8 2.5"),
    "r": (3.8, "M1 5L1 0M1 2.8Q1.3 5 3.3 4.9"),
    "s": (4.8, "M4.1 4.1Q3.7 5 2.4 5Q.8 5 .8 3.7Q.8 2.8 2.4 2.5Q4.2 2.3 4.2 1.3Q4.2 0 2.4 0Q1 0 .6 1"),
    "t": (3.6, "M1.5 6.6L1.5 1.4Q1.5 0 3 .1M.3 5L3 5"),
    "u": (5.6, "M.9 5L.9 1.9Q.9 0 2.6 0Q4.3 0 4.6 2.1M4.6 5L4.6 0"),
    "v": (5.0, "M.5 5L2.5 0L4.5 5"),
    "w": (7.4, "M.6 5L2.1 0L3.7 4.6L5.3 0L6.8 5"),
    "x": (5.0, "M.7 5L4.3 0M4.3 5L.7 0"),
    "y": (5.0, "M.5 5L2.5 0M4.5 5L2.5 0Q1.8 -2 .5 -2"),
    "z": (4.8, "M.8 5L4 5L.8 0L4 0"),
}  # fmt: skip
_REPLACEMENT = (5.8, "M1 0L1 7L4.8 7L4.8 0L1 0")


def advance(text: str) -> float:
    """The width of a line of text on the grid."""
    return sum(_letter(letter)[0] for letter in text)


def strokes(text: str) -> list[Floats]:
    """The lines of a text from the origin: arrays of points, shape (points, 2), on the grid, upwards."""
    lines, at = [], 0.0
    for letter in text:
        width, drawn = _letter(letter)
        lines += [points + np.array((at, 0.0)) for points in drawn]
        at += width
    return lines


@cache
def _letter(letter: str) -> tuple[float, tuple[Floats, ...]]:
    width, path = _LETTERS.get(letter, _REPLACEMENT)
    lines: list[list[tuple[float, float]]] = []
    for command, texts in _COMMAND.findall(path):
        x, y, *end = map(float, _NUMBER.findall(texts))
        if command == "M":
            lines.append([(x, y)])
        elif command == "L":
            lines[-1].append((x, y))
        else:
            lines[-1] += _curve(lines[-1][-1], (x, y), (end[0], end[1]))
    return width, tuple(np.array(line) for line in lines)


def _curve(
    start: tuple[float, float], control: tuple[float, float], end: tuple[float, float]
) -> list[tuple[float, float]]:
    """Points of a quadratic curve, without its start."""
    shares = [number / _CURVE_POINTS for number in range(1, _CURVE_POINTS + 1)]
    (x0, y0), (x1, y1), (x2, y2) = start, control, end
    return [
        ((1 - t) ** 2 * x0 + 2 * (1 - t) * t * x1 + t**2 * x2, (1 - t) ** 2 * y0 + 2 * (1 - t) * t * y1 + t**2 * y2)
        for t in shares
    ]
