"""`/catalogue`: offers with filters, in any order, page by page; the same as CSV; and the table of accelerators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.catalogue import CSV_COLUMNS, offer_rows
from api.cheapest import priced_accelerators
from api.http.paging import next_cursor, read_cursor, told_at_cursor
from api.http.plans import OurGpuplan
from api.selection import FILTERS, Selection, memory_gb, read_selection, selected
from api.web.csv_file import csv_file
from api.web.pages import PageRoute, render
from catalog.accelerators import accelerators
from catalog.columns import Columns
from catalog.errors import Fault, UnusableInput
from catalog.regions import GEOGRAPHIES

router = APIRouter(route_class=PageRoute, include_in_schema=False)

ROWS_PER_PAGE = 50
#: Not that of `/v1/offers`, whose order is another.
_LISTING = "catalogue"
#: The columns that can be sorted: order, words, whether the figures align right.
COLUMNS = (
    ("instance_type", "Instance type", False),
    ("usd_per_hour", "USD/h", True),
    ("usd_per_accelerator", "per accelerator", True),
    ("accelerators", "Count", True),
    ("accelerator", "Accelerator", False),
    ("memory", "GB each", True),
    ("provider", "Provider", False),
    ("region", "Region", False),
    ("kind", "Kind", False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of offers: rows as templates show them, how many match, and where to go from here (None: nowhere)."""

    rows: list[dict[str, Any]]
    first: int
    total: int
    of: int
    previous_url: str | None
    next_url: str | None

    @property
    def last(self) -> int:
        """The number of the last row, counted from 1."""
        return self.first + len(self.rows) - 1


@router.get("/catalogue")
def catalogue(request: Request, gpuplan: OurGpuplan) -> Response:
    """The offers that match, 50 at a time. Pages of one listing rest on one snapshot, which their cursor names."""
    asked = _asked(request)
    cursor = asked.pop("cursor", None)
    listing: Listing | None = None
    faults: tuple[Fault, ...] = ()
    wanted = read_selection({})
    columns = gpuplan.columns_with_owned(None)
    try:
        wanted = read_selection(asked)
        place = None if not cursor else read_cursor(cursor, _LISTING, wanted.given())
        with told_at_cursor(place):
            columns = columns if place is None else gpuplan.columns_with_owned(place.snapshot_id)
        listing = _listing(columns, wanted, 0 if place is None else place.index)
    except UnusableInput as error:
        faults = error.faults
    context = {
        "section": "Catalogue",
        "asked": dict.fromkeys(FILTERS, "") | asked,
        "faults": {fault.field: fault.message for fault in faults},
        "listing": listing,
        "choices": choices(columns),
        "columns": [(*each, _sort_url(wanted, each[0])) for each in COLUMNS],
        "order": wanted.order,
        "csv_url": _url("/catalogue.csv", wanted.given() | {"snapshot": columns.snapshot_id}),
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "catalogue.html", context, status=422 if faults else 200)


@router.get("/catalogue.csv")
def catalogue_csv(request: Request, gpuplan: OurGpuplan) -> Response:
    """Every offer that matches, in the order of the page, with the columns of `gpuplan offers --format csv`."""
    asked = _asked(request)
    columns = gpuplan.columns_with_owned(asked.pop("snapshot", None))
    found = selected(columns, read_selection(asked))
    return csv_file(CSV_COLUMNS, offer_rows(columns, found.tolist()), "offers.csv")


@router.get("/catalogue/accelerators")
def accelerator_table(request: Request, gpuplan: OurGpuplan) -> Response:
    """Every accelerator with memory, peak and bandwidth, and what it costs at least."""
    order = _asked(request).get("order", "name")
    columns = gpuplan.columns()
    context = {
        "section": "Catalogue",
        "rows": priced_accelerators(columns, order=order),
        "order": order,
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "accelerators.html", context)


def choices(columns: Columns) -> dict[str, list[str]]:
    """What each field of the form may hold, as far as a list helps."""
    return {
        "provider": sorted({provider for provider, _ in columns.regions}),
        "geography": sorted(GEOGRAPHIES),
        "region": sorted({region for _, region in columns.regions}),
        "kind": [name for index, name in enumerate(columns.kinds) if (columns.kind_index == index).any()],
        "accelerator": [
            name for name in accelerators() if name in {each.accelerator for each in columns.instance_types}
        ],
    }


def _listing(columns: Columns, wanted: Selection, start: int) -> Listing:
    found = selected(columns, wanted)
    if start and start >= len(found):
        message = f"is beyond the {len(found)} offers of this listing; begin at its first page"
        raise UnusableInput.at("cursor", message=message)
    end = min(len(found), start + ROWS_PER_PAGE)
    indices = found[start:end].tolist()
    rows = [
        row | {"memory_gb": memory_gb(columns.instance_types[columns.type_index[index]])}
        for index, row in zip(indices, offer_rows(columns, indices), strict=True)
    ]
    given = wanted.given()

    def page(index: int | None) -> str | None:
        cursor = next_cursor(columns.snapshot_id, _LISTING, given, index)
        return None if cursor is None else _url("/catalogue", given | {"cursor": cursor})

    return Listing(
        rows=[row | {"history_url": history_url(row)} for row in rows],
        first=start + 1,
        total=len(found),
        of=len(columns),
        previous_url=page(max(0, start - ROWS_PER_PAGE)) if start else None,
        next_url=page(end) if end < len(found) else None,
    )


def history_url(row: Mapping[str, Any]) -> str:
    """Where the prices of a row's offer over time are shown."""
    names = {"instance_type": "instance_type", "provider": "provider", "region": "region", "price_kind": "kind"}
    return _url("/prices", {to: str(row[name]) for name, to in names.items()})


def _sort_url(wanted: Selection, order: str) -> str:
    """Where the listing is in this order; one that is so already is turned round."""
    turned = f"-{order}" if wanted.order == order else order
    return _url("/catalogue", replace(wanted, order=turned).given())


def _asked(request: Request) -> dict[str, str]:
    return dict(request.query_params)


def _url(path: str, given: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(given)}" if given else path
