"""`/prices`: what an instance type cost over time, per offer: a chart of steps, its range, and what is not certain."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from api.app import Gpuplan
from api.history import HISTORY_COLUMNS, HistoryFilter, PricePage, read_since
from api.http.plans import OurGpuplan
from api.render.text import percent, plain, usd_per_hour, when
from api.web.charts.drawing import Axis, Figure
from api.web.charts.steps import LETTERS, MOST_LINES, Step, StepLine, steps_chart
from api.web.csv_file import csv_file
from api.web.pages import PageRoute, render
from api.web.price_view import Course, courses
from catalog.errors import Fault, UnusableInput

router = APIRouter(route_class=PageRoute, include_in_schema=False)

FIELDS = ("instance_type", "provider", "region", "zone", "kind", "since", "until")
#: Names shown where several match what was typed.
MOST_NAMES = 60
#: Lines of the table of single prices; the file has all.
MOST_PRICES = 200
#: Offers that the table of offers shows.
MOST_OFFERS = 200


@router.get("/prices")
def prices(request: Request, gpuplan: OurGpuplan) -> Response:
    """The history of one instance type, or those whose names hold what was typed."""
    asked = dict(request.query_params)
    context: dict[str, Any] = {"names": None, "history": None, "faults": {}}
    try:
        wanted, until = read_prices(asked)
        if wanted is not None:
            page = gpuplan.prices(wanted)
            context["history"] = _shown(gpuplan, page, wanted, until or datetime.now(UTC))
    except UnusableInput as error:
        names = _names(gpuplan, asked) if any(fault.path == ("instance_type",) for fault in error.faults) else []
        context["names"] = names or None
        context["faults"] = {} if names else {fault.field: fault.message for fault in error.faults}
    context |= {
        "section": "Prices",
        "asked": dict.fromkeys(FIELDS, "") | asked,
        "fields": FIELDS,
        "kinds": _kinds(gpuplan),
        "csv_url": f"/prices.csv?{urlencode({name: text for name, text in asked.items() if text})}",
    }
    return render(request, "prices.html", context, status=422 if context["faults"] else 200)


@router.get("/prices.csv")
def prices_csv(request: Request, gpuplan: OurGpuplan) -> StreamingResponse:
    """Every price that matches, with the columns of `gpuplan history --format csv`."""
    wanted, until = read_prices(dict(request.query_params))
    if wanted is None:
        raise UnusableInput.at("instance_type", message="is needed; accepted: the name of an instance type")
    page = gpuplan.prices(wanted)
    rows = (row for row in page.rows if until is None or datetime.fromisoformat(row["from"]) <= until)
    return csv_file(HISTORY_COLUMNS, rows, "prices.csv")


def read_prices(asked: dict[str, str]) -> tuple[HistoryFilter | None, datetime | None]:
    """The filter and the end of the span that a form asks for; no filter without an instance type.

    Raises `UnusableInput` naming every field that is unknown or is no date.
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
        until += timedelta(days=1)  # a day is meant whole
    since = times["since"]
    if since is not None and until is not None and until <= since:
        faults.append(Fault(("until",), f"is not after {given['since']}, where the span begins"))
    if faults:
        raise UnusableInput(*faults)
    if "instance_type" not in given:
        return None, until
    texts = {name: given[name] for name in FIELDS[:5] if name in given}
    return HistoryFilter(since=since, **texts), until


def _names(gpuplan: Gpuplan, asked: dict[str, str]) -> list[dict[str, str]]:
    """The priced instance types whose names hold what was typed, each with where its prices are."""
    typed = asked.get("instance_type", "").strip().casefold()
    columns = gpuplan.columns_with_owned(None)
    accelerator = {each.name: each.accelerator for each in columns.instance_types}
    known = sorted(name for name in gpuplan.store.priced_types() if typed and typed in name.casefold())
    rest = {name: text for name, text in asked.items() if text and name in FIELDS}
    return [
        {"name": name, "accelerator": accelerator.get(name, ""), "url": _url(rest | {"instance_type": name})}
        for name in known[:MOST_NAMES]
    ]


def _kinds(gpuplan: Gpuplan) -> list[str]:
    columns = gpuplan.columns()
    return [name for index, name in enumerate(columns.kinds) if (columns.kind_index == index).any()]


def _shown(gpuplan: Gpuplan, page: PricePage, wanted: HistoryFilter, end: datetime) -> dict[str, Any]:
    """What the template shows of a history up to `end`."""
    found = courses(page.rows, begin=wanted.since, end=end)
    singles = [(course, stretch) for course in found for stretch in course.stretches]
    return {
        "instance_type": page.instance_type,
        "snapshot_id": page.snapshot_id,
        "offers": found[:MOST_OFFERS],
        "offer_urls": [_offer_url(each, wanted) for each in found[:MOST_OFFERS]],
        "total": len(found),
        "figure": figure(page.instance_type, found, wanted) if found else None,
        "drawn": min(len(found), MOST_LINES),
        "letters": LETTERS,
        "singles": singles[:MOST_PRICES],
        "prices": len(singles),
        "modelled": sum(bool(each.last["modelled"]) for each in found),
        "stale": sum(each.last["stale_since"] is not None for each in found),
        "lowest": min((each.lowest for each in found), default=None),
        "highest": max((each.highest for each in found), default=None),
    }


def figure(name: str, found: list[Course], wanted: HistoryFilter) -> Figure:
    """The chart of the offers whose last price is the lowest, with every one of its steps as a table."""
    drawn = found[:MOST_LINES]
    lines = [
        StepLine(
            name=f"{each.place}, {each.kind}",
            steps=tuple(
                Step(starts=one.starts, ends=one.ends, value=one.usd, title=_said(each, one.usd, one.starts))
                for one in each.stretches
            ),
            title=f"{each.place}, {each.kind}: {usd_per_hour(round(each.lowest, 6))} to {usd_per_hour(round(each.highest, 6))} per hour",
            href=_offer_url(each, wanted),
        )
        for each in drawn
    ]
    rows = [
        (
            LETTERS[number],
            each.place,
            each.kind,
            when(one.starts.isoformat()),
            when(one.ends.isoformat()),
            usd_per_hour(round(one.usd, 6)),
        )
        for number, each in enumerate(drawn)
        for one in each.stretches[-MOST_PRICES // MOST_LINES :]
    ]
    title = f"USD per hour of {plain(name)} over time"
    up = Axis(title="USD per hour", write=lambda value: f"${value:,.4g}", zero=True)
    return Figure(
        title=title,
        drawing=steps_chart(title, lines, up),
        columns=(("", False), ("place", False), ("kind", False), ("from", False), ("until", False), ("per hour", True)),
        rows=tuple(rows),
        legend=tuple(
            (f"{LETTERS[number]}: {each.place}, {each.kind}", f"s{number + 1}") for number, each in enumerate(drawn)
        ),
    )


def _said(each: Course, price: float, since: datetime) -> str:
    change = ""
    before = [one for one in each.stretches if one.starts < since]
    if before and before[-1].usd:
        share = price / before[-1].usd - 1
        change = f", {percent(abs(share), 1)} {'dearer' if share > 0 else 'cheaper'}"
    return f"{each.place}, {each.kind}: {usd_per_hour(round(price, 6))} per hour from {when(since.isoformat())}{change}"


def _offer_url(each: Course, wanted: HistoryFilter) -> str:
    """The history of this offer alone, over the same span."""
    provider, region, zone, name, kind = each.key
    given = {"instance_type": name, "provider": provider, "region": region, "zone": zone, "kind": kind}
    return _url({key: text for key, text in (wanted.given() | given).items() if text})


def _url(given: dict[str, str]) -> str:
    return f"/prices?{urlencode(given)}"
