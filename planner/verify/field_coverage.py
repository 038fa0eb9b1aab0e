"""The figures of a document, and which of them a check has covered."""

import math
import re
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

from gpuplan.catalog.model.money import usd_micros, usd_text
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.verification import Check, WrongFigure
from gpuplan.planner.verify.rules import RULES

Path = tuple[str | int, ...]

#: Relative tolerance: answers show nine significant digits, and the last may differ by one.
SHOWN = 1.5e-8
#: Micro-dollars by which rounding may move a sum, and the relative error of a sum of doubles.
ONE_MICRO = 0.501
SUMS = 1e-11
_MONEY = re.compile(r"-?[0-9]{1,15}\.[0-9]{2,6}")
#: Most wrong figures that are listed; further ones are only counted.
MOST_WRONG = 100

#: Longest list of a plan except the frontier, which may have a point per node count of its machines, up to 4,096 each.
MOST_ROWS, MOST_POINTS = 1000, 100_000


def closely(stated: float, expected: float, relative: float = SHOWN) -> bool:
    """Whether two floats differ by no more than this relative tolerance."""
    return stated == expected or abs(stated - expected) <= relative * max(abs(stated), abs(expected)) + 1e-15


class FieldCoverage:
    """Covered figures of one document by path, and the wrong ones.

    Every method that reads a figure raises `UnusableInput` at its path if it is missing or of another type.
    """

    def __init__(self, body: JsonObject, part: str) -> None:
        """Coverage of the document at `part` of an answer."""
        self._body = body
        self._part = part
        self._seen: set[Path] = set()
        self._trusted: list[Path] = []
        self._figures = dict.fromkeys((rule.name for rule in RULES), 0)
        self._wrong: list[WrongFigure] = []
        self._inner: tuple[Path, frozenset[str]] = ((), frozenset())

    def with_the_figures_at(self, *path: str | int) -> "FieldCoverage":
        """Coverage of the same document as if the figures of the mapping at the path stood in place of its own."""
        inner = {name: self.value(*path, name) for name in self.keys(*path)}
        other = copy(self)
        other._body = {**self._body, **inner}
        other._inner = (path, frozenset(inner))
        return other

    def _place(self, path: Path) -> Path:
        """Where the figure stands in the document."""
        at, names = self._inner
        return (*at, *path) if path and path[0] in names else path

    # --- reading ----------------------------------------------------------------------------------

    def has(self, *path: str | int) -> bool:
        """Whether the path exists."""
        value: Any = self._body
        for part in path:
            if not _is_in(part, value):
                return False
            value = value[part]
        return True

    def value(self, *path: str | int) -> Any:
        """The value at the path."""
        value: Any = self._body
        for depth, part in enumerate(path):
            if not _is_in(part, value):
                message = "is missing; a plan of this release has it, as `gpuplan plan --json` prints it"
                raise self.unusable(path[: depth + 1], message)
            value = value[part]
        return value

    def unusable(self, path: Path, message: str) -> UnusableInput:
        """The document cannot be read at the path."""
        return UnusableInput.at(self._part, *self._place(path), message=message)

    def size(self, *path: str | int) -> int:
        """Length of the list at the path."""
        value = self.value(*path)
        if not isinstance(value, list):
            raise self.unusable(path, f"{shown(value)} is not accepted; it is a list in a plan")
        most = MOST_POINTS if path == ("frontier",) else MOST_ROWS
        if len(value) > most:
            raise self.unusable(path, f"a list of {len(value)} entries is too long; plans have at most {most:,}")
        return len(value)

    def keys(self, *path: str | int) -> list[str]:
        """Keys of the mapping at the path."""
        value = self.value(*path)
        if not isinstance(value, dict):
            raise self.unusable(path, f"{shown(value)} is not accepted; it is a mapping in a plan")
        return list(value)

    def text(self, *path: str | int) -> str:
        """Text."""
        value = self.value(*path)
        if not isinstance(value, str):
            raise self.unusable(path, f"{shown(value)} is not accepted; it is text in a plan")
        return value

    def number(self, *path: str | int) -> float:
        """A finite number."""
        value = self.value(*path)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(_float(value)):
            raise self.unusable(path, f"{shown(value)} is not accepted; it is a finite number in a plan")
        return _float(value)

    def whole(self, *path: str | int, least: int = 0) -> int:
        """A whole number."""
        value = self.value(*path)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**9:
            raise self.unusable(path, f"{shown(value)} is not accepted; it is a whole number from {least} in a plan")
        return value

    def micros(self, *path: str | int) -> int:
        """Money as micro-dollars."""
        value = self.value(*path)
        if not isinstance(value, str) or not _MONEY.fullmatch(value):
            raise self.unusable(
                path, f"{shown(value)} is not accepted; it is dollars as text in a plan, such as '12.50'"
            )
        return usd_micros(value)

    # --- checking ------------------------------------------------------------------------------

    def is_number(self, check: str, path: Path, expected: float | None, why: str, *, relative: float = SHOWN) -> None:
        """Check that the number at the path is `expected`, or null where that is None."""
        value = self.value(*path)
        if value is None or expected is None:
            self.is_same(check, path, expected, why)
            return
        self._tick(check, path)
        if not closely(self.number(*path), expected, relative):
            self._add(check, path, value, float(f"{expected:.9g}"), why)

    def is_money(self, check: str, path: Path, expected: float | None, why: str, *, relative: float = SUMS) -> None:
        """Check that the money at the path is `expected` micro-dollars, or null where that is None; exactly if
        `relative` is 0. What follows from figures that are rounded themselves may be rounded to the next micro-dollar.
        """
        value = self.value(*path)
        if value is None or expected is None:
            self.is_same(check, path, None if expected is None else usd_text(round(expected)), why)
            return
        self._tick(check, path)
        error = relative * abs(expected)
        room = ONE_MICRO + (math.ceil(error) if relative > SUMS else error) if relative else 0.0
        if abs(self.micros(*path) - expected) > room:
            self._add(check, path, value, usd_text(round(expected)), why)

    def is_same(self, check: str, path: Path, expected: Any, why: str) -> None:
        """Check that the value at the path equals `expected` in type and value."""
        value = self.value(*path)
        self._tick(check, path)
        if type(value) is not type(expected) or value != expected:
            self._add(check, path, value, expected, why)

    def is_there(self, check: str, path: Path, expected: bool, why: str) -> bool:
        """Check that the path has a mapping if `expected`, else null; returns whether its figures can be checked."""
        if not expected:
            for inner, _ in leaves(self.value(*path), path):
                self._tick(check, inner)
            self.is_true(check, path, self.value(*path) is None, None, why)
            return False
        is_mapping = isinstance(self.value(*path), dict)
        self.is_true(check, path, is_mapping, "a mapping", why)
        if not is_mapping:
            self._tick(check, path)
        return is_mapping

    def is_true(self, check: str, path: Path, ok: bool, expected: Any, why: str) -> None:
        """Check a statement about the figure at the path."""
        self._figures[check] += 1
        if not ok:
            self._add(check, path, self.value(*path) if self.has(*path) else None, expected, why)

    def tick(self, check: str, *paths: Path) -> None:
        """Mark figures as covered that other checks use: an error in one of them shows there."""
        for path in paths:
            self._tick(check, path)

    def trust(self, *paths: Path) -> None:
        """Mark everything under these paths as taken on trust. Raises `UnusableInput` where one is missing."""
        for path in paths:
            self.value(*path)
        self._trusted += map(self._place, paths)

    def _tick(self, check: str, path: Path) -> None:
        self._figures[check] += 1
        self._seen.add(self._place(path))

    def _add(self, check: str, path: Path, stated: Any, expected: Any, why: str) -> None:
        expected = float(f"{expected:.9g}") if isinstance(expected, float) else expected
        self._wrong.append(
            WrongFigure(figure=Fault(self._place(path), "").field, check=check, stated=stated, found=expected, why=why)
        )

    # --- closing ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Report every figure that no check has covered as wrong."""
        for path, value in leaves(self._body):
            known = path in self._seen or any(path[: len(trusted)] == trusted for trusted in self._trusted)
            if not known:
                self._add("completeness", path, value, None, "no plan of this release has such a figure")
        self._figures["completeness"] += 1

    @property
    def wrong(self) -> tuple[WrongFigure, ...]:
        """Every wrong figure in the order of the checks, once per reason."""
        return tuple(self._wrong)

    def checks(self) -> tuple[Check, ...]:
        """Every rule that applied to at least one figure."""
        counts = [sum(wrong_figure.check == rule.name for wrong_figure in self._wrong) for rule in RULES]
        return tuple(
            Check(
                check=rule.name,
                says=rule.says,
                basis=rule.basis,
                passed=wrong == 0,
                figures=self._figures[rule.name],
                wrong=wrong,
            )
            for rule, wrong in zip(RULES, counts, strict=True)
            if self._figures[rule.name]
        )


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value except lists and mappings, with its path."""
    inner: Iterable[tuple[str | int, Any]]
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        yield path, value
        return
    for part, inner_value in inner:
        yield from leaves(inner_value, (*path, part))


def _is_in(part: str | int, outer: Any) -> bool:
    """Whether a mapping has the key, or a list the index."""
    if isinstance(part, str):
        return isinstance(outer, dict) and part in outer
    return isinstance(outer, list) and part < len(outer)


def _float(value: float) -> float:
    """The value as a float; too large an integer is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
