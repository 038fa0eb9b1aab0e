"""`/catalogue`: offers with filters, sorting and paging, also as CSV."""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.cursor_pages import read_cursor, shown_at_cursor
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.services.offer_listing import CSV_COLUMNS, offer_rows
from gpuplan.api.services.offer_selection import FILTERS, read_selection, selected
from gpuplan.api.web.catalogue_table import (
    LISTING,
    ROWS_PER_FETCH,
    SPARK_DAYS,
    Listing,
    Shown,
    catalogue_url,
    listed_offers,
    listing,
    read_columns,
)
from gpuplan.api.web.csv_download import csv_file
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.wire import wire

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/catalogue")
def catalogue(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show the matching offers, 50 per page. All pages of a listing use one snapshot, named by the cursor."""
    asked = _asked(request)
    cursor = asked.pop("cursor", None)
    offers: Listing | None = None
    faults: tuple[Fault, ...] = ()
    shown = _shown({})
    columns = gpuplan.context.columns_with_owned(None)
    try:
        shown = _shown(asked)
        place = None if not cursor else read_cursor(cursor, LISTING, shown.wanted.given())
        with shown_at_cursor(place):
            columns = columns if place is None else gpuplan.context.columns_with_owned(place.snapshot_id)
        matching = selected(columns, shown.wanted)
        offers = listing(gpuplan.store, columns, shown, matching, 0 if place is None else place.index)
    except UnusableInput as error:
        faults = error.faults
    pinned = shown.given() | {"snapshot": columns.snapshot_id}
    context = {
        "section": "Catalogue",
        "asked": dict.fromkeys(FILTERS, "") | asked,
        "faults": {fault.field: fault.message for fault in faults},
        "listing": offers,
        "choices": choices(columns),
        "shown": shown,
        "csv_url": catalogue_url(shown.wanted.given() | {"snapshot": columns.snapshot_id}, "/catalogue.csv"),
        "rows_url": catalogue_url(pinned, "/catalogue/rows"),
        "per_fetch": ROWS_PER_FETCH,
        "spark_days": SPARK_DAYS,
        "snapshot_id": columns.snapshot_id,
        "observed_at": columns.observed_at.isoformat(),
    }
    return render(request, "catalogue.html", context, status=422 if faults else 200)


@router.get("/catalogue/rows")
def catalogue_rows(request: Request, gpuplan: OurGpuplan) -> Response:
    """Only the next rows of a listing from the `start`-th offer on, for the table that scrolls."""
    asked = _asked(request)
    start = _start(asked.pop("start", "0"))
    columns = gpuplan.context.columns_with_owned(asked.pop("snapshot", None))
    shown = _shown(asked)
    indices = selected(columns, shown.wanted)[start : start + ROWS_PER_FETCH].tolist()
    context = {"rows": listed_offers(gpuplan.store, columns, shown, indices, start), "shown": shown}
    return render(request, "catalogue_rows.html", context)


def _start(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UnusableInput.at(
            "start", message=f"{text[:80]!r} is not accepted; write the number of rows before the first"
        )
    return int(text)


def _shown(asked: Mapping[str, str]) -> Shown:
    """The view in a query. Raises `UnusableInput` naming every field that is unknown or cannot be read."""
    filters = {name: value for name, value in asked.items() if name != "columns"}
    return Shown(wanted=read_selection(filters), columns=read_columns(asked.get("columns", "")))


@router.get("/catalogue.csv")
def catalogue_csv(request: Request, gpuplan: OurGpuplan) -> Response:
    """Download all matching offers in the order of the page, with the columns of `gpuplan offers --format csv`."""
    asked = _asked(request)
    columns = gpuplan.context.columns_with_owned(asked.pop("snapshot", None))
    indices = selected(columns, read_selection(asked))
    return csv_file(CSV_COLUMNS, map(wire, offer_rows(columns, indices.tolist())), "offers.csv")


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


def _asked(request: Request) -> dict[str, str]:
    return dict(request.query_params)
