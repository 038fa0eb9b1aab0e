"""The figures of a document, each ticked off by the check that speaks of it."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from catalog.errors import Fault, UnusableInput
from catalog.money import usd_micros, usd_text
from catalog.quantities import shown
from planner.verify.report import RULES, Check, Wrong

Path = tuple[str | int, ...]

#: Answers show nine significant digits: the last may be one off.
SHOWN = 1.5e-8
#: Half of a whole micro-dollar is rounded away, and sums of doubles differ in the last digits.
ONE_MICRO = 0.501
SUMS = 1e-11
_MONEY = re.compile(r"-?[0-9]{1,15}\.[0-9]{2,6}")
#: More than these help nobody; the others are counted.
MOST_WRONG = 100

#: No list of a plan is longer, but for a frontier: that has a point for most node counts of the machines on it, up to
#: 4,096 of each.
MOST_ROWS, MOST_POINTS = 1000, 100_000


def closely(stated: float, found: float, relative: float = SHOWN) -> bool:
    """Whether two floats differ by no more than this, relatively."""
    return stated == found or abs(stated - found) <= relative * max(abs(stated), abs(found)) + 1e-15


class Ledger:
    """Figures of one document by path, what was found for each, and which are wrong.

    Every `stated` raises `UnusableInput` at the figure's path if it is missing or of another kind.
    """

    def __init__(self, body: dict[str, Any], part: str) -> None:
        """For the document that stands at `part` of an answer."""
        self._body = body
        self._part = part
        self._seen: set[Path] = set()
        self._trusted: list[Path] = []
        self._figures = dict.fromkeys((rule.name for rule in RULES), 0)
        self._wrong: list[Wrong] = []

    # --- reading ----------------------------------------------------------------------------------

    def has(self, *path: str | int) -> bool:
        """Whether something stands at the path."""
        here: Any = self._body
        for part in path:
            if not _is_in(part, here):
                return False
            here = here[part]
        return True

    def value(self, *path: str | int) -> Any:
        """Whatever stands at the path."""
        here: Any = self._body
        for depth, part in enumerate(path):
            if not _is_in(part, here):
                message = "is missing; a plan of this release has it, as `gpuplan plan --json` prints it"
                raise self.unusable(path[: depth + 1], message)
            here = here[part]
        return here

    def unusable(self, path: Path, message: str) -> UnusableInput:
        """The document cannot be read at the path."""
        return UnusableInput.at(self._part, *path, message=message)

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

    # --- ticking off ------------------------------------------------------------------------------

    def is_number(self, check: str, path: Path, found: float | None, why: str, *, relative: float = SHOWN) -> None:
        """The number at the path is `found`, or null where that is None."""
        value = self.value(*path)
        if value is None or found is None:
            self.is_same(check, path, found, why)
            return
        self._tick(check, path)
        if not closely(self.number(*path), found, relative):
            self._add(check, path, value, float(f"{found:.9g}"), why)

    def is_money(self, check: str, path: Path, found: float | None, why: str, *, relative: float = SUMS) -> None:
        """The money at the path is `found` micro-dollars, or null where that is None; exactly so where `relative` is 0."""
        value = self.value(*path)
        if value is None or found is None:
            self.is_same(check, path, None if found is None else usd_text(round(found)), why)
            return
        self._tick(check, path)
        room = ONE_MICRO + relative * abs(found) if relative else 0.0
        if abs(self.micros(*path) - found) > room:
            self._add(check, path, value, usd_text(round(found)), why)

    def is_same(self, check: str, path: Path, found: Any, why: str) -> None:
        """What stands at the path is exactly `found`."""
        value = self.value(*path)
        self._tick(check, path)
        if type(value) is not type(found) or value != found:
            self._add(check, path, value, found, why)

    def is_there(self, check: str, path: Path, expected: bool, why: str) -> bool:
        """Whether a mapping stands at the path, which is null where it is not `expected`; its figures then follow."""
        if not expected:
            for inner, _ in leaves(self.value(*path), path):
                self._tick(check, inner)
            self.holds(check, path, self.value(*path) is None, None, why)
            return False
        there = isinstance(self.value(*path), dict)
        self.holds(check, path, there, "a mapping", why)
        if not there:
            self._tick(check, path)
        return there

    def holds(self, check: str, path: Path, ok: bool, found: Any, why: str) -> None:
        """Something is true of the figure at the path."""
        self._figures[check] += 1
        if not ok:
            self._add(check, path, self.value(*path) if self.has(*path) else None, found, why)

    def tick(self, check: str, *paths: Path) -> None:
        """These figures are what other checks start from: a change of one shows there."""
        for path in paths:
            self._tick(check, path)

    def trust(self, *paths: Path) -> None:
        """Everything under these paths is believed, if it is there: a document that lacks it was cut."""
        for path in paths:
            self.value(*path)
        self._trusted += paths

    def _tick(self, check: str, path: Path) -> None:
        self._figures[check] += 1
        self._seen.add(path)

    def _add(self, check: str, path: Path, stated: Any, found: Any, why: str) -> None:
        found = float(f"{found:.9g}") if isinstance(found, float) else found
        self._wrong.append(Wrong(figure=Fault(path, "").field, check=check, stated=stated, found=found, why=why))

    # --- closing ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Every figure left that no check spoke of is wrong: nobody knows what it says."""
        for path, value in leaves(self._body):
            known = path in self._seen or any(path[: len(trusted)] == trusted for trusted in self._trusted)
            if not known:
                self._add("completeness", path, value, None, "no plan of this release has such a figure")
        self._figures["completeness"] += 1

    @property
    def wrong(self) -> tuple[Wrong, ...]:
        """Every wrong figure, in the order of the checks; each figure once per reason."""
        return tuple(self._wrong)

    def checks(self) -> tuple[Check, ...]:
        """Every rule that some figure was held against."""
        counts = [sum(each.check == rule.name for each in self._wrong) for rule in RULES]
        return tuple(
            Check(rule=rule, figures=self._figures[rule.name], wrong=wrong)
            for rule, wrong in zip(RULES, counts, strict=True)
            if self._figures[rule.name]
        )


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no list and no mapping, with its path; empty ones hold nothing."""
    inner: Iterable[tuple[str | int, Any]]
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        yield path, value
        return
    for part, each in inner:
        yield from leaves(each, (*path, part))


def _is_in(part: str | int, outer: Any) -> bool:
    """Whether a mapping has the key, or a list the place."""
    if isinstance(part, str):
        return isinstance(outer, dict) and part in outer
    return isinstance(outer, list) and part < len(outer)


def _float(value: float) -> float:
    """As a float; an integer too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
