"""The fitted and published constants of the time model, read once from `planner/performance/calibration/constants.csv`.

A row is one constant, or its value for one `key`: an accelerator, "architecture X", "vendor X", a class of work or of
software. Each row has a unit, bounds, a source ("fitted", or the publication) and the number of measured runs that
identify it. `python -m tools.fitting.fit` rewrites the values.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gpuplan.catalog.model.accelerators import Accelerator

Key = tuple[str, str]
FITTED = "fitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One row. `prior` is the value expected without runs, from literature or from related constants.

    `spread` is the relative standard deviation of the prior in the fit (None: not fitted). `runs` counts the measured
    runs whose prediction moves by a hundredth or more when the constant moves by a tenth.
    """

    name: str
    key: str
    value: float
    prior: float
    unit: str
    low: float
    high: float
    spread: float | None
    runs: int | None
    source: str
    meaning: str


@cache
def table() -> dict[Key, Constant]:
    """Every row by (name, key), in the order of the file."""
    with (files("gpuplan.planner.performance.calibration") / "constants.csv").open(encoding="utf-8") as file:
        rows = [_constant(row) for row in csv.DictReader(file)]
    return {(row.name, row.key): row for row in rows}


def _constant(row: dict[str, str]) -> Constant:
    return Constant(
        name=row["name"],
        key=row["key"],
        value=float(row["value"]),
        prior=float(row["prior"]),
        unit=row["unit"],
        low=float(row["low"]),
        high=float(row["high"]),
        spread=float(row["spread"]) if row["spread"] else None,
        runs=int(row["runs"]) if row["runs"] else None,
        source=row["source"],
        meaning=row["meaning"],
    )


_VALUES: dict[Key, float] = {}


def value(name: str, *keys: str) -> float:
    """The value for the first of `keys` that has a row, else the value without a key. Raises KeyError without either."""
    if not _VALUES:
        _VALUES.update((key, row.value) for key, row in table().items())
    for key in keys:
        keyed_value = _VALUES.get((name, key))
        if keyed_value is not None:
            return keyed_value
    return _VALUES[name, ""]


def is_listed(name: str, *keys: str) -> bool:
    """Whether any of `keys` has a row of its own."""
    return any((name, key) in table() for key in keys)


def keys_of(name: str) -> tuple[str, ...]:
    """Every key of a constant, in the order of the file."""
    return tuple(key for other, key in table() if other == name and key)


def places(chip: Accelerator) -> tuple[str, str, str]:
    """Keys under which the constants of a chip are looked up, in this order: its name, its architecture, its vendor."""
    return chip.name, f"architecture {chip.architecture}", f"vendor {chip.vendor}"


@contextmanager
def trying(values: Mapping[Key, float]) -> Iterator[None]:
    """Use other values within the context, for the fit. Callers must clear caches that depend on them."""
    value(next(iter(table()))[0], next(iter(table()))[1])
    before = dict(_VALUES)
    _VALUES.update(values)
    try:
        yield
    finally:
        _VALUES.clear()
        _VALUES.update(before)
