"""`/changes`: what a refresh changed, how refreshes went, and how old each provider's prices are."""

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response

from api.app import Gpuplan
from api.changed import MOVES, WHAT, changed
from api.http.access import needs
from api.http.paging import next_cursor, read_cursor
from api.http.plans import OurGpuplan
from api.questions.opened import days_between
from api.web.catalogue import history_url
from api.web.pages import PageRoute, render
from catalog.errors import Fault, UnusableInput
from catalog.snapshot_list import NotStored

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

FIELDS = ("before", "after", "provider", "what", "instance_type")
ROWS_PER_PAGE = 50
_LISTING = "changes"
#: Snapshots to choose from, and refreshes that are listed: two months of nights, and two weeks.
MOST_SNAPSHOTS = 60
MOST_REFRESHES = 14
#: Instance types whose facts differ; more of them come with a new release's table, and are told by the interface.
MOST_TYPES = 200


@router.get("/changes")
def changes(request: Request, gpuplan: OurGpuplan) -> Response:
    """The difference between two snapshots (the current one and the one before), and how refreshes went."""
    asked = dict(request.query_params)
    snapshots = gpuplan.snapshots()
    diff: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = ()
    only = len(snapshots) < 2 and not any(asked.get(name) for name in FIELDS)
    try:
        diff = None if only else _diff(gpuplan, asked)
    except UnusableInput as error:
        faults = error.faults
    now = datetime.now(UTC)
    context = {
        "section": "What changed",
        "asked": dict.fromkeys(FIELDS, "") | asked,
        "fields": FIELDS,
        "faults": {fault.field: fault.message for fault in faults},
        "diff": diff,
        "what": WHAT,
        "moves": MOVES,
        "filtered": any(asked.get(name) for name in ("provider", "what", "instance_type")),
        "snapshots": snapshots[:MOST_SNAPSHOTS],
        "providers": sorted({provider for provider, _ in gpuplan.columns().regions}),
        "refreshes": gpuplan.refreshes()["refreshes"][:MOST_REFRESHES],
        "ages": [
            {
                "of": each,
                "newest_days": days_between(now, each.newest_at),
                "oldest_days": days_between(now, each.oldest_at),
            }
            for each in request.app.state.figures.prices()
        ],
    }
    return render(request, "changes.html", context, status=422 if faults else 200)


@router.get("/changes/refreshes/{refresh_id}")
def refresh(request: Request, refresh_id: Annotated[str, Path(max_length=200)], gpuplan: OurGpuplan) -> Response:
    """What one refresh did, provider by provider, with every row that was set aside and why."""
    report = gpuplan.refresh_report(refresh_id)
    return render(request, "refresh.html", {"section": "What changed", "report": report})


def _diff(gpuplan: Gpuplan, asked: dict[str, str]) -> dict[str, Any]:
    """The page of the difference that is asked for. Raises `UnusableInput` at the fields of the form."""
    given = {name: text.strip() for name, text in asked.items() if text.strip()}
    text = given.pop("cursor", None)
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise UnusableInput(*(Fault((name[:80],), f"unknown field; accepted: {', '.join(FIELDS)}") for name in unknown))
    what = given.get("what")
    if what is not None and what not in WHAT:
        raise UnusableInput.at("what", message=f"{what[:80]!r} is not accepted; write one of {', '.join(WHAT)}")
    try:
        before, after = gpuplan.compared(given.get("before"), given.get("after"), field="before")
    except NotStored as error:
        raise UnusableInput.at("after", message=error.faults[0].message) from None
    page = gpuplan.diff(before, after, provider=given.get("provider"))
    found = changed(page.rows, what=what, instance_type=given.get("instance_type"))
    pinned = given | {"before": before.id, "after": after.id}
    start = 0 if text is None else read_cursor(text, _LISTING, pinned).index
    if start and start >= len(found.rows):
        message = f"is beyond the {len(found.rows)} changes of this list; begin at its first page"
        raise UnusableInput.at("cursor", message=message)
    end = min(len(found.rows), start + ROWS_PER_PAGE)

    def at(index: int | None) -> str | None:
        cursor = next_cursor(after.id, _LISTING, pinned, index)
        return None if cursor is None else f"/changes?{urlencode(pinned | {'cursor': cursor})}"

    shown = [{**row, "history_url": history_url(row)} for row in found.rows[start:end]]
    return {
        "before": before,
        "after": after,
        "rows": shown,
        "first": start + 1,
        "last": end,
        "found": len(found.rows),
        "total": page.total,
        "moved": found.moved,
        "counts": found.counts,
        "all": found.total,
        "what_urls": {word: f"/changes?{urlencode(pinned | {'what': word})}" for word in WHAT},
        "instance_types": page.instance_types[:MOST_TYPES],
        "instance_types_total": len(page.instance_types),
        "previous_url": at(max(0, start - ROWS_PER_PAGE)) if start else None,
        "next_url": at(end) if end < len(found.rows) else None,
    }
