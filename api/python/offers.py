"""The answer of `gpuplan.offers`: rows of the catalogue, as a table in a notebook and as a data frame where asked."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from gpuplan.api.presentation.offer_tables import OFFER_TITLES, offer_cells
from gpuplan.api.presentation.sections import section, table
from gpuplan.api.presentation.text_tables import aligned
from gpuplan.api.python.cards import card
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.wire import wire

if TYPE_CHECKING:
    import pandas
    import polars

#: Rows that are shown; all of them are in the table.
SHOWN = 20
#: Columns whose text is a number or a time, which a data frame holds as such.
_NUMBERS = ("usd_per_hour",)
_TIMES = ("observed_at", "stale_since")
_PRICE_COLUMN = 5


class Offers(Sequence[JsonObject]):
    """Offers of one snapshot, a dict per row with the keys of `gpuplan offers --format json`; `usd_per_hour` is text."""

    __slots__ = ("_rows", "snapshot_id")

    def __init__(self, rows: Iterable[OfferRow], *, snapshot_id: str) -> None:
        self._rows = tuple(rows)
        self.snapshot_id = snapshot_id

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> JsonObject: ...
    @overload
    def __getitem__(self, at: slice) -> "Offers": ...
    def __getitem__(self, at: int | slice) -> "JsonObject | Offers":
        if isinstance(at, slice):
            return Offers(self._rows[at], snapshot_id=self.snapshot_id)
        row: JsonObject = wire(self._rows[at])
        return row

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas data frame: prices as float64, times as UTC. Raises `ImportError` without pandas."""
        return _library("pandas").DataFrame(self._typed_rows())

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a polars data frame: prices as Float64, times as UTC. Raises `ImportError` without polars."""
        frame: polars.DataFrame = _library("polars").DataFrame(self._typed_rows(), infer_schema_length=None)
        return frame

    def _typed_rows(self) -> list[JsonObject]:
        readers: dict[str, Callable[[str], object]] = dict.fromkeys(_NUMBERS, float)
        readers.update(dict.fromkeys(_TIMES, datetime.fromisoformat))
        return [
            {
                name: readers[name](value) if name in readers and value is not None else value
                for name, value in wire(row).items()
            }
            for row in self._rows
        ]

    def __repr__(self) -> str:
        lines = aligned(OFFER_TITLES, offer_cells(self._rows[:SHOWN]), right=(_PRICE_COLUMN,))
        return "\n".join([*(line.rstrip() for line in lines), "", self._count()])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The table that Jupyter shows."""
        cells = [tuple(map(str, row)) for row in offer_cells(self._rows[:SHOWN])]
        offers = section("offers", "", table(OFFER_TITLES, cells, figures=(_PRICE_COLUMN,)))
        return card([offers], footer=self._count(), is_wide=True)

    def _count(self) -> str:
        left = f"; the first {SHOWN} are shown" if len(self) > SHOWN else ""
        return f"{len(self):,} offers in snapshot {self.snapshot_id}{left}"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        message = f"to_{name} needs {name}, which is not installed: pip install {name}"
        raise ImportError(message, name=name) from error
