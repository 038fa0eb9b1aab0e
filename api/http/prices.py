"""Prices over time and what snapshots changed over HTTP, in cursor pages with strong ETags."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.history import DIFF_COLUMNS, HISTORY_COLUMNS, HistoryFilter, csv_rows, diff_document, read_since
from api.http.caching import CSV, JSON, caching_headers, etag_of, json_or_csv, kept_or, to_csv
from api.http.describe import document_responses
from api.http.paging import next_cursor, next_link, read_cursor, told_at_cursor
from api.http.plans import OurGpuplan, to_json
from api.version import gpuplan_version

router = APIRouter()
_PRICES, _DIFF = "prices", "diff"


class _Paged(BaseModel):
    """Which page of a listing."""

    limit: int = Field(1_000, ge=1, le=10_000)
    cursor: str | None = Field(None, max_length=512, description="`next_cursor` of the page before")


class PriceQuery(_Paged):
    """Filters of a history, and which page of it."""

    instance_type: str = Field(min_length=1, examples=["p5.48xlarge"])
    provider: str | None = Field(None, examples=["aws"])
    region: str | None = Field(None, description="A region or a glob", examples=["us-*"])
    zone: str | None = Field(None, description="A zone; empty for prices of a whole region", examples=["use1-az4"])
    kind: str | None = Field(None, examples=["spot"])
    since: str | None = Field(
        None, description="A date or ISO time: leave out what ended before", examples=["2026-11-01"]
    )

    def wanted(self) -> HistoryFilter:
        """The filters without the paging. Raises `UnusableInput` at `since`."""
        return HistoryFilter(
            instance_type=self.instance_type,
            provider=self.provider,
            region=self.region,
            zone=self.zone,
            kind=self.kind,
            since=read_since(self.since),
        )


class DiffQuery(_Paged):
    """What to compare with, and which page of the changes."""

    against: str | None = Field(None, description="A snapshot's id; default: the one that this snapshot followed")
    provider: str | None = Field(None, examples=["aws"])


@router.get(
    "/v1/prices",
    summary="Prices of one instance type over time",
    operation_id="prices",
    responses=document_responses("Prices", 404, 406, 503, csv=True) | {304: {"description": "Not Modified"}},
)
def prices(request: Request, query: Annotated[PriceQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """A row per price and offer, from when to when; pages of one listing share one snapshot as their end."""
    media_type = json_or_csv(request)
    wanted = query.wanted()
    cursor = read_cursor(query.cursor, _PRICES, wanted.given()) if query.cursor is not None else None
    # The page ends with the snapshot that its ETag names, also where another becomes the current one meanwhile.
    with told_at_cursor(cursor):
        snapshot = gpuplan.end_of_history(cursor.snapshot_id if cursor else None)
    etag = etag_of(gpuplan.history_version(snapshot), query.model_dump_json(), media_type)

    def make() -> Response:
        page = gpuplan.prices(wanted, snapshot=snapshot, start=cursor.index if cursor else 0, limit=query.limit)
        following = next_cursor(page.snapshot_id, _PRICES, wanted.given(), page.next_index)
        headers = caching_headers(etag) | next_link(request, query, following)
        if media_type == CSV:
            return Response(to_csv(HISTORY_COLUMNS, page.rows), media_type=CSV, headers=headers)
        answer = {"snapshot_id": page.snapshot_id, "instance_type": page.instance_type, "total": page.total}
        answer |= {"prices": list(page.rows), "next_cursor": following}
        return Response(to_json(answer), media_type=media_type, headers=headers)

    return kept_or(request, etag, make)


@router.get(
    "/v1/snapshots/{snapshot_id}/diff",
    summary="What a snapshot changed against another",
    operation_id="snapshot_diff",
    responses=document_responses("SnapshotDiff", 404, 406, 503, csv=True) | {304: {"description": "Not Modified"}},
)
def diff(request: Request, snapshot_id: str, query: Annotated[DiffQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """The largest moves of a price first; counts and instance types are those of the whole, on every page."""
    media_type = json_or_csv(request)
    before, after = gpuplan.compared(query.against, snapshot_id)
    filters = {"before": before.id, "after": after.id, "provider": query.provider or ""}
    cursor = read_cursor(query.cursor, _DIFF, filters) if query.cursor is not None else None
    # What two snapshots say never changes, so neither does this answer under one release.
    etag = etag_of(before.id, after.id, query.model_dump_json(), gpuplan_version(), media_type)
    start = cursor.index if cursor else 0

    def make() -> Response:
        page = gpuplan.diff(before, after, provider=query.provider, start=start, limit=query.limit)
        following = next_cursor(after.id, _DIFF, filters, page.next_index)
        headers = caching_headers(etag) | next_link(request, query, following)
        if media_type == CSV:
            return Response(to_csv(DIFF_COLUMNS, csv_rows(page.rows)), media_type=CSV, headers=headers)
        return Response(to_json(diff_document(page) | {"next_cursor": following}), media_type=JSON, headers=headers)

    return kept_or(request, etag, make)
