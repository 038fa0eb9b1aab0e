"""HTTP routes for price history and snapshot differences, in cursor pages with strong ETags."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.cursor_pages import next_cursor, next_link, read_cursor, shown_at_cursor
from gpuplan.api.http.openapi_bodies import document_responses
from gpuplan.api.http.path_ids import SnapshotId
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.http.response_caching import (
    CSV,
    JSON,
    cached_or,
    caching_headers,
    etag_of,
    json_or_csv,
    to_csv,
    to_json,
)
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.prices import Prices
from gpuplan.api.services.price_history import (
    DIFF_COLUMNS,
    HISTORY_COLUMNS,
    HistoryFilter,
    comparison,
    csv_rows,
    read_since,
)
from gpuplan.planner.model.wire import wire

router = APIRouter()
_PRICES, _DIFF = "prices", "diff"


class _Paged(BaseModel):
    """Which page of a listing."""

    limit: int = Field(1_000, ge=1, le=10_000, description="Most rows of a page")
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the previous page")


class PriceQuery(_Paged):
    """Filters of a price history, and which page of it."""

    instance_type: str = Field(min_length=1, examples=["p5.48xlarge"])
    provider: str | None = Field(None, description="A cloud", examples=["aws"])
    region: str | None = Field(None, description="A region or a glob", examples=["us-*"])
    zone: str | None = Field(None, description="A zone; empty for prices of a whole region", examples=["use1-az4"])
    kind: str | None = Field(None, description="A kind of price", examples=["spot"])
    since: str | None = Field(
        None, description="A date or ISO time: leave out prices that ended before", examples=["2026-11-01"]
    )

    def wanted(self) -> HistoryFilter:
        """The filters without the paging. Raises `UnusableInput` at `since`."""
        return HistoryFilter(**self.model_dump(exclude={"since", "limit", "cursor"}), since=read_since(self.since))


class DiffQuery(_Paged):
    """The snapshot to compare with, and which page of the changes."""

    against: str | None = Field(None, description="Id of a snapshot; default: the previous one")
    provider: str | None = Field(None, description="A cloud", examples=["aws"])


@router.get(
    "/v1/prices",
    summary="Price history of an instance type",
    responses=document_responses("Prices", 404, 406, 304, csv=True),
)
def prices(request: Request, query: Annotated[PriceQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """One row per price and offer, with the period in which it applied. All pages of one listing end at the same
    snapshot.
    """
    media_type = json_or_csv(request)
    wanted = query.wanted()
    cursor = read_cursor(query.cursor, _PRICES, wanted.given()) if query.cursor is not None else None
    # The page ends at the snapshot that its ETag names, even if another becomes current meanwhile.
    with shown_at_cursor(cursor):
        snapshot = gpuplan.price_history.last_snapshot(cursor.snapshot_id if cursor else None)
    etag = etag_of(gpuplan.price_history.version(snapshot), query.model_dump_json(), media_type)

    def make() -> Response:
        page = gpuplan.price_history.prices(
            wanted, snapshot=snapshot, start=cursor.index if cursor else 0, limit=query.limit
        )
        following = next_cursor(page.snapshot_id, _PRICES, wanted.given(), page.next_index)
        headers = caching_headers(etag) | next_link(request, query, following)
        if media_type == CSV:
            return Response(to_csv(HISTORY_COLUMNS, map(wire, page.rows)), media_type=CSV, headers=headers)
        answer = Prices(
            snapshot_id=page.snapshot_id,
            instance_type=page.instance_type,
            total=page.total,
            prices=tuple(page.rows),
            next_cursor=following,
        )
        return Response(to_json(wire(answer)), media_type=media_type, headers=headers)

    return cached_or(request, etag, make)


@router.get(
    "/v1/snapshots/{snapshot_id}/diff",
    summary="Compare a snapshot with another",
    operation_id="snapshot_diff",
    responses=document_responses("SnapshotDiff", 406, 304, csv=True),
)
def diff(
    request: Request, snapshot_id: SnapshotId, query: Annotated[DiffQuery, Query()], gpuplan: OurGpuplan
) -> Response:
    """The largest price changes first. The counts and instance types on every page cover the whole comparison."""
    media_type = json_or_csv(request)
    before, after = gpuplan.price_history.compared(query.against, snapshot_id)
    filters = {"before": before.id, "after": after.id, "provider": query.provider or ""}
    cursor = read_cursor(query.cursor, _DIFF, filters) if query.cursor is not None else None
    # Snapshots never change, so neither does this answer within one release.
    etag = etag_of(before.id, after.id, query.model_dump_json(), gpuplan_version(), media_type)
    start = cursor.index if cursor else 0

    def make() -> Response:
        page = gpuplan.price_history.diff(before, after, provider=query.provider, start=start, limit=query.limit)
        following = next_cursor(after.id, _DIFF, filters, page.next_index)
        headers = caching_headers(etag) | next_link(request, query, following)
        if media_type == CSV:
            return Response(to_csv(DIFF_COLUMNS, csv_rows(page.rows)), media_type=CSV, headers=headers)
        return Response(to_json(wire(comparison(page)) | {"next_cursor": following}), media_type=JSON, headers=headers)

    return cached_or(request, etag, make)
