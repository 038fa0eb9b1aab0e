"""The table of the catalogue: its columns, the page of offers that is shown, and the rows of any other page of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gpuplan.api.http.cursor_pages import next_cursor
from gpuplan.api.presentation.charts.sparklines import Seen, sparkline
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.schemas.prices import OfferChangeRow
from gpuplan.api.services.offer_listing import offer_rows
from gpuplan.api.services.offer_selection import Selection, memory_gb, node_memory_gb, pflops
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.price_points import Key
from gpuplan.catalog.store.store import Store

ROWS_PER_PAGE = 50
#: Of the table that scrolls, so few that laying them out never takes 50 ms; a page without scripts is some of these.
ROWS_PER_FETCH = 25
#: Not the cursor of `/v1/offers`, whose order differs.
LISTING = "catalogue"
#: The time that a spark-line covers, up to the snapshot.
SPARK_DAYS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table: `label` in its head and `name` in words; `width` is that of its style, in rem.

    `sorts` if the listing can be ordered by it, `usual` if it is shown unless the reader chooses others.
    """

    key: str
    label: str
    name: str
    width: int
    is_figure: bool = True
    sorts: bool = True
    usual: bool = True


#: All columns but the first, the instance type, which is always shown.
COLUMNS = (
    Column(key="usd_per_hour", label="USD/h", name="USD per hour", width=6),
    Column(key="kind", label="Kind", name="Kind", width=7, is_figure=False),
    Column(key="provider", label="Provider", name="Provider", width=6, is_figure=False),
    Column(key="region", label="Place", name="Place", width=13, is_figure=False),
    Column(key="accelerator", label="Accelerator", name="Accelerator", width=9, is_figure=False),
    Column(key="accelerators", label="Count", name="Accelerators", width=5),
    Column(key="memory", label="GB each", name="GB each", width=6),
    Column(key="usd_per_accelerator", label="per GPU-h", name="Per accelerator-hour", width=7),
    Column(key="usd_per_pflop", label="per PFLOP-h", name="Per PFLOP-hour", width=8),
    Column(key="usd_per_gb", label="per GB-h", name="Per GB-hour", width=6),
    Column(key="history", label=f"{SPARK_DAYS} days", name="Prices over time", width=9, is_figure=False, sorts=False),
    Column(key="vcpus", label="vCPUs", name="vCPUs", width=5, sorts=False, usual=False),
    Column(key="ram", label="RAM GiB", name="RAM in GiB", width=6, sorts=False, usual=False),
    Column(key="network", label="Gbit/s", name="Network in Gbit/s", width=6, sorts=False, usual=False),
    Column(key="read", label="Read", name="Price read on", width=7, is_figure=False, sorts=False, usual=False),
    Column(key="notes", label="Notes", name="Notes", width=14, is_figure=False, sorts=False),
)
_BY_KEY = {column.key: column for column in COLUMNS}
_USUAL = tuple(column for column in COLUMNS if column.usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffer:
    """An offer with its derived figures (None if unknown), the address of its price history, and its spark-line."""

    number: int
    offer: OfferRow
    memory_gb: float | None
    usd_per_accelerator: float
    usd_per_pflop: float | None
    usd_per_gb: float | None
    history_url: str
    history: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of offers: rows for the template, number of matches, and addresses of the next and previous page or None."""

    rows: list[ListedOffer]
    first: int
    total: int
    of: int
    previous_url: str | None
    next_url: str | None

    @property
    def last(self) -> int:
        """The number of the last row, counted from 1."""
        return self.first + len(self.rows) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a reader looks at: the offers `wanted` and the chosen columns."""

    wanted: Selection
    columns: tuple[Column, ...]

    def given(self) -> dict[str, str]:
        """The query of this view; what is usual is left out."""
        chosen = {} if self.columns == _USUAL else {"columns": " ".join(column.key for column in self.columns)}
        return self.wanted.given() | chosen

    def sorted_by(self, key: str) -> str:
        """The address of this view in the order of a column; reversed if it already has that order."""
        turned = f"-{key}" if self.wanted.order == key else key
        return catalogue_url(replace(self, wanted=replace(self.wanted, order=turned)).given())

    def toggled(self) -> list[tuple[Column, bool, str]]:
        """Per column whether it is shown, and the address of the view with it hidden or shown."""
        choices = []
        for column in COLUMNS:
            has = column in self.columns
            others = tuple(other for other in COLUMNS if (other in self.columns) != (other == column))
            choices.append((column, has, catalogue_url(replace(self, columns=others).given())))
        return choices


def read_columns(text: str) -> tuple[Column, ...]:
    """The columns named in a query, in the order of the table; those that are usual if there is no text.

    Raises `UnusableInput` at `columns` for an unknown one.
    """
    asked = text.split()
    unknown = [key for key in asked if key not in _BY_KEY]
    if unknown:
        accepted = " ".join(_BY_KEY)
        raise UnusableInput.at(
            "columns", message=f"{unknown[0][:80]!r} is no column; accepted, with spaces: {accepted}"
        )
    return tuple(column for column in COLUMNS if column.key in asked) if asked else _USUAL


def listing(store: Store, columns: Columns, shown: Shown, matching: NDArray[np.intp], start: int) -> Listing:
    """The page of the matching offers that begins at the `start`-th.

    Raises `UnusableInput` at `cursor` for a page beyond the last.
    """
    if start and start >= len(matching):
        message = f"is beyond the {len(matching)} offers of this listing; start at its first page"
        raise UnusableInput.at("cursor", message=message)
    end = min(len(matching), start + ROWS_PER_PAGE)
    filters = shown.wanted.given()

    def page(index: int | None) -> str | None:
        cursor = next_cursor(columns.snapshot_id, LISTING, filters, index)
        return None if cursor is None else catalogue_url(shown.given() | {"cursor": cursor})

    return Listing(
        rows=listed_offers(store, columns, shown, matching[start:end].tolist(), start),
        first=start + 1,
        total=len(matching),
        of=len(columns),
        previous_url=page(max(0, start - ROWS_PER_PAGE)) if start else None,
        next_url=page(end) if end < len(matching) else None,
    )


def listed_offers(store: Store, columns: Columns, shown: Shown, indices: list[int], start: int) -> list[ListedOffer]:
    """The rows of these offers, the first of which is the `start`-th of its listing."""
    rows = list(offer_rows(columns, indices))
    histories = _histories(store, columns, rows) if _BY_KEY["history"] in shown.columns else {}
    listed = []
    for number, (index, row) in enumerate(zip(indices, rows, strict=True), start + 1):
        machine, usd = columns.instance_types[int(columns.type_index[index])], float(columns.usd_per_hour[index])
        peak, memory = pflops(machine), node_memory_gb(machine)
        listed.append(
            ListedOffer(
                number=number,
                offer=row,
                memory_gb=memory_gb(machine),
                usd_per_accelerator=usd / float(machine.accelerator_count),
                usd_per_pflop=None if peak is None else usd / peak,
                usd_per_gb=None if memory is None else usd / memory,
                history_url=history_url(row),
                history=histories.get(_key(row), Markup("")),
            )
        )
    return listed


def _histories(store: Store, columns: Columns, rows: Sequence[OfferRow]) -> dict[Key, Markup]:
    """The spark-lines of these offers."""
    begin, end = columns.observed_at - timedelta(days=SPARK_DAYS), columns.observed_at
    keys = [_key(row) for row in rows]
    seen: defaultdict[Key, list[Seen]] = defaultdict(list)
    for point in store.price_points_of(keys, columns.snapshot_id, since=begin):
        usd = point.usd_micros_per_hour / 1e6
        seen[point.key] += [Seen(at=one.at, usd=usd, joined=one.joined) for one in point.observations]
    return {key: sparkline(seen[key], begin=begin, end=end) for key in keys}


def _key(row: OfferRow) -> Key:
    return (row.provider, row.region, row.zone, row.instance_type, row.price_kind)


def history_url(row: OfferRow | OfferChangeRow) -> str:
    """The address of the price history of a row's offer."""
    named = {"instance_type": row.instance_type, "provider": row.provider, "region": row.region}
    return f"/prices?{urlencode(named | {'kind': row.price_kind})}"


def catalogue_url(given: Mapping[str, str], path: str = "/catalogue") -> str:
    """The address of a view of the catalogue with this query."""
    return f"{path}?{urlencode(given)}" if given else path
