"""`/catalogue`: offers with filters, sorting and paging, also as CSV; and the table of accelerators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.cursor_pages import next_cursor, read_cursor, shown_at_cursor
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.schemas.prices import OfferChangeRow
from gpuplan.api.services.accelerator_prices import priced_accelerators
from gpuplan.api.services.offer_listing import CSV_COLUMNS, offer_rows
from gpuplan.api.services.offer_selection import FILTERS, Selection, memory_gb, read_selection, selected
from gpuplan.api.web.csv_download import csv_file
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.wire import wire

router = APIRouter(route_class=PageRoute, include_in_schema=False)

ROWS_PER_PAGE = 50
#: Not the cursor of `/v1/offers`, whose order differs.
_LISTING = "catalogue"
#: Sortable columns: key, label, whether right-aligned.
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
class ListedOffer:
    """An offer, the memory of one of its accelerators, and the address of its price history."""

    offer: OfferRow
    memory_gb: float | None
    history_url: str


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


@router.get("/catalogue")
def catalogue(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show the matching offers, 50 per page. All pages of a listing use one snapshot, named by the cursor."""
    asked = _asked(request)
    cursor = asked.pop("cursor", None)
    listing: Listing | None = None
    faults: tuple[Fault, ...] = ()
    wanted = read_selection({})
    columns = gpuplan.context.columns_with_owned(None)
    try:
        wanted = read_selection(asked)
        place = None if not cursor else read_cursor(cursor, _LISTING, wanted.given())
        with shown_at_cursor(place):
            columns = columns if place is None else gpuplan.context.columns_with_owned(place.snapshot_id)
        listing = _listing(columns, wanted, 0 if place is None else place.index)
    except UnusableInput as error:
        faults = error.faults
    context = {
        "section": "Catalogue",
        "asked": dict.fromkeys(FILTERS, "") | asked,
        "faults": {fault.field: fault.message for fault in faults},
        "listing": listing,
        "choices": choices(columns),
        "columns": [(*column, _sort_url(wanted, column[0])) for column in COLUMNS],
        "order": wanted.order,
        "csv_url": _url("/catalogue.csv", wanted.given() | {"snapshot": columns.snapshot_id}),
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "catalogue.html", context, status=422 if faults else 200)


@router.get("/catalogue.csv")
def catalogue_csv(request: Request, gpuplan: OurGpuplan) -> Response:
    """Download all matching offers in the order of the page, with the columns of `gpuplan offers --format csv`."""
    asked = _asked(request)
    columns = gpuplan.context.columns_with_owned(asked.pop("snapshot", None))
    indices = selected(columns, read_selection(asked))
    return csv_file(CSV_COLUMNS, map(wire, offer_rows(columns, indices.tolist())), "offers.csv")


@router.get("/catalogue/accelerators")
def accelerator_table(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show all accelerators with memory, peak, bandwidth and lowest price."""
    order = _asked(request).get("order", "name")
    columns = gpuplan.context.columns()
    context = {
        "section": "Catalogue",
        "rows": priced_accelerators(columns, order=order),
        "order": order,
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "accelerators.html", context)


def choices(columns: Columns) -> dict[str, list[str]]:
    """Choices and suggestions of the form's fields."""
    return {
        "provider": sorted({provider for provider, _ in columns.regions}),
        "geography": sorted(GEOGRAPHIES),
        "region": sorted({region for _, region in columns.regions}),
        "kind": [name for index, name in enumerate(columns.kinds) if (columns.kind_index == index).any()],
        "accelerator": [
            name
            for name in accelerators()
            if name in {instance_type.accelerator for instance_type in columns.instance_types}
        ],
    }


def _listing(columns: Columns, wanted: Selection, start: int) -> Listing:
    matching = selected(columns, wanted)
    if start and start >= len(matching):
        message = f"is beyond the {len(matching)} offers of this listing; start at its first page"
        raise UnusableInput.at("cursor", message=message)
    end = min(len(matching), start + ROWS_PER_PAGE)
    indices = matching[start:end].tolist()
    rows = [
        ListedOffer(
            offer=row,
            memory_gb=memory_gb(columns.instance_types[columns.type_index[index]]),
            history_url=history_url(row),
        )
        for index, row in zip(indices, offer_rows(columns, indices), strict=True)
    ]
    given = wanted.given()

    def page(index: int | None) -> str | None:
        cursor = next_cursor(columns.snapshot_id, _LISTING, given, index)
        return None if cursor is None else _url("/catalogue", given | {"cursor": cursor})

    return Listing(
        rows=rows,
        first=start + 1,
        total=len(matching),
        of=len(columns),
        previous_url=page(max(0, start - ROWS_PER_PAGE)) if start else None,
        next_url=page(end) if end < len(matching) else None,
    )


def history_url(row: OfferRow | OfferChangeRow) -> str:
    """The address of the price history of a row's offer."""
    named = {"instance_type": row.instance_type, "provider": row.provider, "region": row.region}
    return _url("/prices", named | {"kind": row.price_kind})


def _sort_url(wanted: Selection, order: str) -> str:
    """The address of the listing in this order; reversed if it already has this order."""
    turned = f"-{order}" if wanted.order == order else order
    return _url("/catalogue", replace(wanted, order=turned).given())


def _asked(request: Request) -> dict[str, str]:
    return dict(request.query_params)


def _url(path: str, given: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(given)}" if given else path
