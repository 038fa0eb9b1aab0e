"""HTTP routes of the catalogue: offers in cursor pages, accelerators, snapshots and model presets, with strong ETags."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.cursor_pages import Cursor, next_cursor, next_link, read_cursor, shown_at_cursor
from gpuplan.api.http.openapi_bodies import document_responses
from gpuplan.api.http.page_cache import Page, PageCache
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.http.response_caching import CSV, JSON, etag_of, json_or_csv, json_with_etag, to_csv, to_json
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.catalogue import Offers, Snapshots
from gpuplan.api.services.catalogue import OfferPage
from gpuplan.api.services.offer_listing import CSV_COLUMNS, OfferFilter
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire

router = APIRouter()

#: Shared by every service in this process: an ETag names its snapshot, machines and release.
_PAGES = PageCache()
#: The name of this listing in cursors.
_OFFERS = "offers"


class OfferQuery(BaseModel):
    """Filters of a listing, and which page of it."""

    provider: str | None = Field(None, description="A cloud", examples=["aws"])
    region: str | None = Field(None, description="A region or a glob", examples=["us-*"])
    accelerator: str | None = Field(None, description="A name or an alias", examples=["H100-80GB-SXM"])
    kind: str | None = Field(None, description="A kind of price", examples=["spot"])
    instance_type: str | None = Field(None, description="An instance type or a glob", examples=["p5*"])
    geography: str | None = Field(None, description=f"One of {', '.join(sorted(GEOGRAPHIES))}", examples=["eu"])
    snapshot: str | None = Field(None, description="Use the prices of this snapshot, not of the current one")
    limit: int = Field(1_000, ge=1, le=10_000, description="Most rows of a page")
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the previous page")

    def wanted(self) -> OfferFilter:
        """The filters without the paging."""
        return OfferFilter(**self.model_dump(exclude={"snapshot", "limit", "cursor"}))


@router.get(
    "/v1/offers",
    summary="List offers and their prices",
    responses=document_responses("Offers", 404, 406, 304, csv=True),
)
def offers(request: Request, query: Annotated[OfferQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """JSON, or CSV with fixed columns if `Accept` asks for it. All pages of one listing use the same snapshot."""
    media_type = json_or_csv(request)
    wanted = query.wanted()
    place = _place(query, wanted)
    # The page uses the snapshot that its ETag names, even if another becomes current meanwhile.
    with shown_at_cursor(place):
        snapshot = gpuplan.context.columns(place.snapshot_id if place else query.snapshot).snapshot_id
    start = place.index if place else 0
    version = gpuplan.catalogue.version(snapshot)
    etag = etag_of("offers", version, query.model_dump_json(), media_type)

    def page() -> Page:
        offers = gpuplan.catalogue.offers(wanted, snapshot=snapshot, start=start, limit=query.limit)
        cursor = next_cursor(offers.snapshot_id, _OFFERS, wanted.given(), offers.next_index)
        body = to_csv(CSV_COLUMNS, map(wire, offers.rows)) if media_type == CSV else _json(offers, cursor)
        return Page(body=body, media_type=media_type, headers=next_link(request, query, cursor))

    return _PAGES.answer(request, etag, page)


def _place(query: OfferQuery, wanted: OfferFilter) -> Cursor | None:
    """The position from the cursor, if there is one: it pins the snapshot and the first index of the page."""
    if query.cursor is None:
        return None
    cursor = read_cursor(query.cursor, _OFFERS, wanted.given())
    if query.snapshot not in {None, cursor.snapshot_id}:
        message = "is not the snapshot of the cursor; use the same value as on the previous page"
        raise UnusableInput.at("snapshot", message=message)
    return cursor


def _json(page: OfferPage, cursor: str | None) -> bytes:
    answer = Offers(snapshot_id=page.snapshot_id, total=page.total, offers=tuple(page.rows), next_cursor=cursor)
    return to_json(wire(answer))


def _as_page(answer: object) -> Page:
    return Page(body=to_json(wire(answer)), media_type=JSON, headers={})


@router.get(
    "/v1/accelerators",
    summary="List all accelerators with their specifications",
    responses=document_responses("Accelerators", 304),
)
def accelerators(request: Request, gpuplan: OurGpuplan) -> Response:
    """One row per device as a training framework sees it; unknown figures are null."""
    etag = etag_of("accelerators", gpuplan_version())
    return _PAGES.answer(request, etag, lambda: _as_page({"accelerators": gpuplan.catalogue.accelerators()}))


@router.get("/v1/presets", summary="List the model presets", responses=document_responses("Presets", 304))
def presets(request: Request, gpuplan: OurGpuplan) -> Response:
    """The values accepted by `workload: {kind: preset, model: ...}`."""
    etag = etag_of("presets", gpuplan_version())
    return _PAGES.answer(request, etag, lambda: _as_page({"presets": gpuplan.catalogue.presets()}))


@router.get("/v1/snapshots", summary="List the stored price snapshots", responses=document_responses("Snapshots", 304))
def snapshots(request: Request, gpuplan: OurGpuplan) -> Response:
    """Newest first, each with whether it is the one that plans rest on."""
    return json_with_etag(request, wire(Snapshots(snapshots=gpuplan.catalogue.snapshots())))
