"""`/prices`: the price history of an instance type by offer: observations, ranges and notes."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.presentation.charts.drawing import Axis, Figure, LegendEntry
from gpuplan.api.presentation.charts.steps import LETTERS, MOST_LINES, PriceObservation, StepLine, steps_chart
from gpuplan.api.presentation.text_formatting import percent, plain, usd_per_hour, when
from gpuplan.api.services.composition import Services
from gpuplan.api.services.price_history import HISTORY_COLUMNS, HistoryFilter, PricePage, read_since, unbroken
from gpuplan.api.web.csv_download import csv_file
from gpuplan.api.web.page_rendering import Context, PageRoute, render
from gpuplan.api.web.price_history_view import PriceSeries, Stretch, price_series
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.price_history import Observation
from gpuplan.planner.model.wire import wire

router = APIRouter(route_class=PageRoute, include_in_schema=False)

FIELDS = ("instance_type", "provider", "region", "zone", "kind", "since", "until")
#: Most matching names shown.
MOST_NAMES = 60
#: Most rows of the table of prices; the CSV file has all.
MOST_PRICES = 200
#: Most rows of the table of offers.
MOST_OFFERS = 200


@router.get("/prices")
def prices(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show the history of one instance type, or the instance types whose names contain the text."""
    asked = dict(request.query_params)
    history: Context | None = None
    names: list[dict[str, str]] = []
    faults: dict[str, str] = {}
    try:
        wanted, until = read_prices(asked)
        if wanted is not None:
            page = gpuplan.price_history.prices(wanted)
            history = _shown(gpuplan, page, wanted, until or datetime.now(UTC))
    except UnusableInput as error:
        names = _names(gpuplan, asked) if any(fault.path == ("instance_type",) for fault in error.faults) else []
        faults = {} if names else {fault.field: fault.message for fault in error.faults}
    context = {
        "section": "Prices",
        "names": names or None,
        "history": history,
        "faults": faults,
        "asked": dict.fromkeys(FIELDS, "") | asked,
        "fields": FIELDS,
        "kinds": _kinds(gpuplan),
        "csv_url": f"/prices.csv?{urlencode({name: text for name, text in asked.items() if text})}",
    }
    return render(request, "prices.html", context, status=422 if faults else 200)


@router.get("/prices.csv")
def prices_csv(request: Request, gpuplan: OurGpuplan) -> StreamingResponse:
    """Download all matching prices with the columns of `gpuplan history --format csv`."""
    wanted, until = read_prices(dict(request.query_params))
    if wanted is None:
        raise UnusableInput.at("instance_type", message="is missing; give the name of an instance type")
    page = gpuplan.price_history.prices(wanted)
    rows = (wire(row) for row in page.rows if until is None or datetime.fromisoformat(row.from_) <= until)
    return csv_file(HISTORY_COLUMNS, rows, "prices.csv")


def read_prices(asked: dict[str, str]) -> tuple[HistoryFilter | None, datetime | None]:
    """The filter and the end of the span of a form; no filter without an instance type.

    Raises `UnusableInput` naming every unknown field and invalid date.
    """
    given = {name: text.strip() for name, text in asked.items() if text.strip()}
    faults = [
        Fault((name[:80],), f"unknown field; accepted: {', '.join(FIELDS)}") for name in given if name not in FIELDS
    ]
    times: dict[str, datetime | None] = {"since": None, "until": None}
    for name in times:
        try:
            times[name] = read_since(given.get(name))
        except UnusableInput as error:
            faults.append(Fault((name,), error.faults[0].message))
    until = times["until"]
    if until is not None and len(given["until"]) == len("2026-11-01"):
        until += timedelta(days=1)  # includes the whole day
    since = times["since"]
    if since is not None and until is not None and until <= since:
        faults.append(Fault(("until",), f"is not after {given['since']}, the start of the span"))
    if faults:
        raise UnusableInput(*faults)
    if "instance_type" not in given:
        return None, until
    texts = {name: given[name] for name in FIELDS[:5] if name in given}
    return HistoryFilter(since=since, **texts), until


def _names(gpuplan: Services, asked: dict[str, str]) -> list[dict[str, str]]:
    """Instance types whose names contain the text, with the addresses of their histories."""
    typed = asked.get("instance_type", "").strip().casefold()
    columns = gpuplan.context.columns_with_owned(None)
    accelerator = {instance_type.name: instance_type.accelerator for instance_type in columns.instance_types}
    known = sorted(name for name in gpuplan.store.priced_types() if typed and typed in name.casefold())
    rest = {name: text for name, text in asked.items() if text and name in FIELDS}
    return [
        {"name": name, "accelerator": accelerator.get(name, ""), "url": _url(rest | {"instance_type": name})}
        for name in known[:MOST_NAMES]
    ]


def _kinds(gpuplan: Services) -> list[str]:
    columns = gpuplan.context.columns()
    return [name for index, name in enumerate(columns.kinds) if (columns.kind_index == index).any()]


def _shown(gpuplan: Services, page: PricePage, wanted: HistoryFilter, end: datetime) -> Context:
    """The template's data of a history up to `end`."""
    all_series = price_series(page.points, begin=wanted.since, end=end)
    seen = [series for series in all_series if series.seen]
    singles = [(series, stretch) for series in all_series for stretch in series.stretches]
    return {
        "instance_type": page.instance_type,
        "snapshot_id": page.snapshot_id,
        "offers": all_series[:MOST_OFFERS],
        "offer_urls": [_offer_url(series, wanted) for series in all_series[:MOST_OFFERS]],
        "total": len(all_series),
        "figure": figure(page.instance_type, seen, wanted) if seen else None,
        "seen": len(seen),
        "letter_of": {series.key: LETTERS[number] for number, series in enumerate(seen[:MOST_LINES])},
        "singles": singles[:MOST_PRICES],
        "prices": len(singles),
        "modelled": sum(bool(series.last.modelled) for series in all_series),
        "stale": sum(series.last.stale_since is not None for series in all_series),
        "lowest": min((series.lowest for series in all_series), default=None),
        "highest": max((series.highest for series in all_series), default=None),
    }


def figure(name: str, all_series: list[PriceSeries], wanted: HistoryFilter) -> Figure:
    """The chart of the offers with the lowest last prices, with their observations as a table."""
    drawn = all_series[:MOST_LINES]
    lines = [
        StepLine(
            name=f"{series.place}, {series.kind}",
            seen=tuple(
                PriceObservation(
                    at=one.at, value=stretch.usd, joined=one.joined, title=_mark_text(series, stretch, one)
                )
                for stretch, one in series.seen
            ),
            title=f"{series.place}, {series.kind}: {usd_per_hour(round(series.lowest, 6))} to {usd_per_hour(round(series.highest, 6))} per hour",
            href=_offer_url(series, wanted),
        )
        for series in drawn
    ]
    rows = [
        (
            LETTERS[number],
            series.place,
            series.kind,
            when(run[0].isoformat()),
            when(run[-1].isoformat()),
            f"{len(run):,}",
            usd_per_hour(round(one.usd, 6)),
        )
        for number, series in enumerate(drawn)
        for one in series.stretches[-MOST_PRICES // MOST_LINES :]
        for run in unbroken(one.seen)
    ]
    title = f"USD per hour of {plain(name)} over time"
    up = Axis(title="USD per hour", write=lambda value: f"${value:,.4g}", zero=True)
    return Figure(
        title=title,
        drawing=steps_chart(title, lines, up),
        columns=(
            ("", False),
            ("place", False),
            ("kind", False),
            ("first seen", False),
            ("last seen", False),
            ("times", True),
            ("per hour", True),
        ),
        rows=tuple(rows),
        legend=tuple(
            LegendEntry(name=f"{LETTERS[number]}: {series.place}, {series.kind}", style=f"s{number + 1}")
            for number, series in enumerate(drawn)
        ),
    )


def _mark_text(price_series: PriceSeries, stretch: Stretch, seen: Observation) -> str:
    """The text of a mark; the first of a price includes the change from the previous price."""
    change = ""
    number = price_series.stretches.index(stretch)
    before = price_series.stretches[number - 1] if number else None
    if before is not None and before.usd and seen == stretch.seen[0]:
        share = stretch.usd / before.usd - 1
        change = f", {percent(abs(share), 1)} {'dearer' if share > 0 else 'cheaper'}"
    price = usd_per_hour(round(stretch.usd, 6))
    return f"{price_series.place}, {price_series.kind}: {price} per hour, observed {when(seen.at.isoformat())}{change}"


def _offer_url(price_series: PriceSeries, wanted: HistoryFilter) -> str:
    """The address of this offer's history over the same span."""
    provider, region, zone, name, kind = price_series.key
    given = {"instance_type": name, "provider": provider, "region": region, "zone": zone, "kind": kind}
    return _url({key: text for key, text in (wanted.given() | given).items() if text})


def _url(given: dict[str, str]) -> str:
    return f"/prices?{urlencode(given)}"
