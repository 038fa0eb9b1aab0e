"""Least prices per accelerator-hour of regions or providers (rows) against accelerators (columns)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuplan.api.services.offer_selection import Shapes
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns

#: What a row is.
By = Literal["provider", "region"]
_ALL_BY: tuple[By, ...] = ("provider", "region")
#: Most columns: those sold in the most rows; a filter shows the others.
MOST_ACCELERATORS = 24
#: A price up to this many times the least of its column has the shade of that number.
SHADES = (1.0, 1.25, 2.0, 4.0)

#: A row's provider and region; an empty region stands for all of the provider's.
Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """The least price of an accelerator in a row, dollars per accelerator-hour, and its offer.

    `shade` is 1 for the least of the column to 5 for the dearest. `chance` is the highest probability, as read from what
    the cloud last said, of getting such a machine of the row; None if it was not asked.
    """

    usd_per_accelerator: float
    offer: Offer
    shade: int
    chance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMatrix:
    """The cells by row and accelerator; `accelerators` are the columns, the fastest first, and `others` how many are left out."""

    rows: tuple[Row, ...]
    accelerators: tuple[str, ...]
    others: int
    cells: Mapping[tuple[Row, str], MatrixCell]


def read_by(text: str) -> By:
    """What the rows are. Raises `UnusableInput` at `by`."""
    for by in _ALL_BY:
        if text == by:
            return by
    raise UnusableInput.at("by", message=f"{text[:80]!r} is not accepted; write one of {', '.join(_ALL_BY)}")


def price_matrix(
    columns: Columns, indices: NDArray[np.intp], by: By, answers: Iterable[CapacityAnswer] = ()
) -> PriceMatrix:
    """The matrix over these offers. Compared are whole prices of machines that can be had, as in the table of accelerators."""
    usable = indices[columns.plannable[indices] & columns.verified[indices]]
    prices = columns.usd_per_hour / Shapes.of(columns).accelerators[columns.type_index]
    least: dict[tuple[Row, str], int] = {}
    for index in usable[np.argsort(prices[usable], kind="stable")].tolist():
        provider, region = columns.regions[columns.region_index[index]]
        row = (provider, region if by == "region" else "")
        least.setdefault((row, columns.instance_types[columns.type_index[index]].accelerator), index)
    in_rows: dict[str, int] = {}
    for _, name in least:
        in_rows[name] = in_rows.get(name, 0) + 1
    most = sorted(in_rows, key=lambda name: (-in_rows[name], name))[:MOST_ACCELERATORS]
    chances = _chances(columns, by, answers)
    lowest: dict[str, float] = {}
    for (_, name), index in least.items():
        lowest[name] = min(lowest.get(name, np.inf), float(prices[index]))
    cells = {
        (row, name): MatrixCell(
            usd_per_accelerator=float(prices[index]),
            offer=columns.offer(index),
            shade=1 + sum(prices[index] > lowest[name] * (shade + 1e-9) for shade in SHADES),
            chance=chances.get((row, name)),
        )
        for (row, name), index in least.items()
        if name in most
    }
    return PriceMatrix(
        rows=tuple(sorted({row for row, _ in cells})),
        accelerators=tuple(sorted(most, key=lambda name: (-_peak(name), name))),
        others=len(in_rows) - len(most),
        cells=cells,
    )


def _chances(columns: Columns, by: By, answers: Iterable[CapacityAnswer]) -> dict[tuple[Row, str], float]:
    """The highest probability per row and accelerator, of the last answer about each machine and place."""
    accelerator = {(machine.provider, machine.name): machine.accelerator for machine in columns.instance_types}
    last = {(one.provider, one.region, one.zone, one.instance_type, one.price_kind, one.nodes): one for one in answers}
    highest: dict[tuple[Row, str], float] = {}
    for one in last.values():
        name = accelerator.get((one.provider, one.instance_type))
        if name is not None:
            key = ((one.provider, one.region if by == "region" else ""), name)
            highest[key] = max(highest.get(key, 0.0), one.probability)
    return highest


def _peak(name: str) -> float:
    row = accelerators().get(name)
    return 0.0 if row is None else row.bf16_tflops or row.fp32_tflops or 0.0
