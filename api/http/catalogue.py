"""The catalogue over HTTP: offers in cursor pages, accelerators, snapshots and known models, with strong ETags."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.app import OfferPage
from api.catalogue import CSV_COLUMNS, OfferFilter
from api.http.caching import CSV, JSON, etag_of, json_or_csv, json_with_etag, to_csv
from api.http.describe import document_responses
from api.http.kept_pages import KeptPages, Page
from api.http.paging import Cursor, next_cursor, next_link, read_cursor, told_at_cursor
from api.http.plans import OurGpuplan, to_json
from api.version import gpuplan_version
from catalog.errors import UnusableInput
from catalog.regions import GEOGRAPHIES

router = APIRouter()

#: Pages of every service in this process: an ETag names its snapshot, machines and release.
_PAGES = KeptPages()
#: What cursors of this listing say that they are of.
_OFFERS = "offers"


class OfferQuery(BaseModel):
    """Filters of a listing, and which page of it."""

    provider: str | None = Field(None, examples=["aws"])
    region: str | None = Field(None, description="A region or a glob", examples=["us-*"])
    accelerator: str | None = Field(None, examples=["H100-80GB-SXM"])
    kind: str | None = Field(None, examples=["spot"])
    instance_type: str | None = Field(None, description="An instance type or a glob", examples=["p5*"])
    geography: str | None = Field(None, description=f"One of {', '.join(sorted(GEOGRAPHIES))}", examples=["eu"])
    snapshot: str | None = Field(None, description="Prices of this snapshot, not the current")
    limit: int = Field(1_000, ge=1, le=10_000)
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the page before")

    def wanted(self) -> OfferFilter:
        """The filters without the paging."""
        return OfferFilter(
            provider=self.provider,
            region=self.region,
            accelerator=self.accelerator,
            kind=self.kind,
            instance_type=self.instance_type,
            geography=self.geography,
        )


@router.get(
    "/v1/offers",
    summary="The catalogue of prices, filtered",
    operation_id="offers",
    responses=document_responses("Offers", 404, 406, 503, csv=True) | {304: {"description": "Not Modified"}},
)
def offers(request: Request, query: Annotated[OfferQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """JSON, or CSV with fixed columns when asked for by `Accept`; pages of one listing share one snapshot."""
    media_type = json_or_csv(request)
    wanted = query.wanted()
    place = _place(query, wanted)
    # The page is made of the snapshot that its ETag names, also where another becomes the current one meanwhile.
    with told_at_cursor(place):
        snapshot = gpuplan.columns(place.snapshot_id if place else query.snapshot).snapshot_id
    start = place.index if place else 0
    version = gpuplan.catalogue_version(snapshot)
    etag = etag_of("offers", version, query.model_dump_json(), media_type)

    def page() -> Page:
        found = gpuplan.offers(wanted, snapshot=snapshot, start=start, limit=query.limit)
        cursor = next_cursor(found.snapshot_id, _OFFERS, wanted.given(), found.next_index)
        body = to_csv(CSV_COLUMNS, found.rows) if media_type == CSV else _json(found, cursor)
        return Page(body=body, media_type=media_type, headers=next_link(request, query, cursor))

    return _PAGES.answer(request, etag, page)


def _place(query: OfferQuery, wanted: OfferFilter) -> Cursor | None:
    """What the cursor says, if there is one: it pins the snapshot and the first index of the page."""
    if query.cursor is None:
        return None
    cursor = read_cursor(query.cursor, _OFFERS, wanted.given())
    if query.snapshot not in {None, cursor.snapshot_id}:
        message = "is not the snapshot of the cursor; leave it as it was on the page before"
        raise UnusableInput.at("snapshot", message=message)
    return cursor


def _json(page: OfferPage, cursor: str | None) -> bytes:
    answer = {"snapshot_id": page.snapshot_id, "total": page.total, "offers": list(page.rows), "next_cursor": cursor}
    return to_json(answer)


def _as_page(answer: object) -> Page:
    return Page(body=to_json(answer), media_type=JSON, headers={})


@router.get(
    "/v1/accelerators",
    summary="Every accelerator known, with what it can do",
    operation_id="accelerators",
    responses=document_responses("Accelerators") | {304: {"description": "Not Modified"}},
)
def accelerators(request: Request, gpuplan: OurGpuplan) -> Response:
    """One row per device as a training framework sees it; unknown figures are null."""
    etag = etag_of("accelerators", gpuplan_version())
    return _PAGES.answer(request, etag, lambda: _as_page({"accelerators": gpuplan.accelerators()}))


@router.get(
    "/v1/presets",
    summary="Models known by name",
    operation_id="presets",
    responses=document_responses("Presets") | {304: {"description": "Not Modified"}},
)
def presets(request: Request, gpuplan: OurGpuplan) -> Response:
    """What `workload: {kind: preset, model: ...}` understands."""
    etag = etag_of("presets", gpuplan_version())
    return _PAGES.answer(request, etag, lambda: _as_page({"presets": gpuplan.presets()}))


@router.get(
    "/v1/snapshots",
    summary="Snapshots of prices in the store",
    operation_id="snapshots",
    responses=document_responses("Snapshots", 503) | {304: {"description": "Not Modified"}},
)
def snapshots(request: Request, gpuplan: OurGpuplan) -> Response:
    """Newest first, each with whether it is the one that plans rest on."""
    return json_with_etag(request, {"snapshots": gpuplan.snapshots()})
