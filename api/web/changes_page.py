"""`/changes`: differences between snapshots, recent refreshes, and the age of prices by provider."""

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.cursor_pages import next_cursor, read_cursor
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.observability.telemetry_settings import telemetry_settings
from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.stacked import StackedBar, StackedPart, stacked_bars
from gpuplan.api.presentation.text_formatting import number, when
from gpuplan.api.services.composition import Services
from gpuplan.api.services.offer_changes import MOVES, WHAT, changed
from gpuplan.api.services.price_freshness import ProviderFreshness, provider_freshness
from gpuplan.api.web.catalogue_table import history_url
from gpuplan.api.web.page_rendering import Context, PageRoute, render
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.price_history import GROUPS, SnapshotChanges, change_counts
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

FIELDS = ("before", "after", "provider", "what", "instance_type")
ROWS_PER_PAGE = 50
_LISTING = "changes"
#: Snapshots to choose from (two months of nights) and refreshes listed (two weeks).
MOST_SNAPSHOTS = 60
MOST_REFRESHES = 14
#: Most instance types listed whose facts differ; a release with a new table can change more, shown by the HTTP API.
MOST_TYPES = 200
STYLES = dict(zip(GROUPS, ("s2", "s3", "s1", "s4"), strict=True))
#: Most refreshes that are drawn: a month of nights.
MOST_BARS = 30


@router.get("/changes")
def changes(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show the difference between two snapshots (by default the current and the previous one) and recent refreshes."""
    asked = dict(request.query_params)
    snapshots = gpuplan.catalogue.snapshots()
    diff: Context | None = None
    faults: tuple[Fault, ...] = ()
    only = len(snapshots) < 2 and not any(asked.get(name) for name in FIELDS)
    try:
        diff = None if only else _diff(gpuplan, asked)
    except UnusableInput as error:
        faults = error.faults
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
        "providers": sorted({provider for provider, _ in gpuplan.context.columns().regions}),
        "refreshes": gpuplan.refreshes.listed().refreshes[:MOST_REFRESHES],
        "ages": _ages(request),
        "has_chart": len(snapshots) > 1,
    }
    return render(request, "changes.html", context, status=422 if faults else 200)


@router.get("/changes/ages")
def ages(request: Request) -> Response:
    """Only the freshness of each provider, for a page that stays open."""
    return render(request, "ages.html", {"ages": _ages(request)})


@router.get("/changes/chart")
def chart(request: Request, gpuplan: OurGpuplan) -> Response:
    """Only the chart of what the last refreshes changed, which takes longer than the rest of the page."""
    figure = changes_figure(gpuplan.store)
    return render(request, "changes_chart.html", {"section": "What changed", "chart": figure})


@router.get("/changes/refreshes/{refresh_id}")
def refresh(request: Request, refresh_id: Annotated[str, Path(max_length=200)], gpuplan: OurGpuplan) -> Response:
    """Show one refresh by provider, with all quarantined rows and their reasons."""
    report = gpuplan.refreshes.report(refresh_id)
    return render(request, "refresh.html", {"section": "What changed", "report": report})


def _ages(request: Request) -> list[ProviderFreshness]:
    limit = telemetry_settings().stale_after_hours
    return provider_freshness(request.app.state.figures.prices(), now=datetime.now(UTC), limit_hours=limit)


def _diff(gpuplan: Services, asked: dict[str, str]) -> Context:
    """The requested page of differences. Raises `UnusableInput` at the fields of the form."""
    given = {name: text.strip() for name, text in asked.items() if text.strip()}
    text = given.pop("cursor", None)
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise UnusableInput(*(Fault((name[:80],), f"unknown field; accepted: {', '.join(FIELDS)}") for name in unknown))
    what = given.get("what")
    if what is not None and what not in WHAT:
        raise UnusableInput.at("what", message=f"{what[:80]!r} is not accepted; write one of {', '.join(WHAT)}")
    try:
        before, after = gpuplan.price_history.compared(given.get("before"), given.get("after"), field="before")
    except NotStored as error:
        raise UnusableInput.at("after", message=error.faults[0].message) from None
    page = gpuplan.price_history.diff(before, after, provider=given.get("provider"))
    changes = changed(page.rows, what=what, instance_type=given.get("instance_type"))
    pinned = given | {"before": before.id, "after": after.id}
    start = 0 if text is None else read_cursor(text, _LISTING, pinned).index
    if start and start >= len(changes.rows):
        message = f"is beyond the {len(changes.rows)} changes of this list; start at its first page"
        raise UnusableInput.at("cursor", message=message)
    end = min(len(changes.rows), start + ROWS_PER_PAGE)

    def at(index: int | None) -> str | None:
        cursor = next_cursor(after.id, _LISTING, pinned, index)
        return None if cursor is None else f"/changes?{urlencode(pinned | {'cursor': cursor})}"

    shown = [(change, history_url(change.row)) for change in changes.rows[start:end]]
    return {
        "before": before,
        "after": after,
        "rows": shown,
        "first": start + 1,
        "last": end,
        "matching": len(changes.rows),
        "total": page.total,
        "moved": changes.moved,
        "counts": changes.counts,
        "all": changes.total,
        "what_urls": {word: f"/changes?{urlencode(pinned | {'what': word})}" for word in WHAT},
        "instance_types": page.instance_types[:MOST_TYPES],
        "instance_types_total": len(page.instance_types),
        "previous_url": at(max(0, start - ROWS_PER_PAGE)) if start else None,
        "next_url": at(end) if end < len(changes.rows) else None,
    }


def changes_figure(store: Store) -> Figure | None:
    """The chart of the newest snapshots against those that they followed; None if none followed another."""
    current = store.current_snapshot_id()
    changes = store.read(lambda connection: change_counts(connection, current, MOST_BARS))
    if not changes:
        return None
    bars = [
        StackedBar(
            at=one.observed_at,
            parts=tuple(StackedPart(value=one.counts[group], style=style) for group, style in STYLES.items()),
            title=f"{when(one.observed_at.isoformat())}: {_words(one)}",
            href=f"/changes?before={one.before}&after={one.snapshot_id}",
        )
        for one in changes
    ]
    title = "Offers that each refresh changed"
    return Figure(
        title=title,
        drawing=stacked_bars(title, bars, Axis(title="offers", write=lambda value: f"{value:,.0f}")),
        columns=(("prices of", False), *((group, True) for group in GROUPS)),
        rows=tuple(
            (when(one.observed_at.isoformat()), *(f"{one.counts[group]:,}" for group in GROUPS))
            for one in changes[::-1]
        ),
        legend=tuple(LegendEntry(name=group, style=STYLES[group], shape="square") for group in GROUPS),
    )


def _words(changes: SnapshotChanges) -> str:
    return ", ".join(f"{number(count)} {group}" for group, count in changes.counts.items() if count) or "no change"
