"""`/prices`: what an instance type cost over time, per offer: when it was seen, its range, and what is not certain."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from api.app import Gpuplan
from api.history import HISTORY_COLUMNS, HistoryFilter, PricePage, read_since, unbroken
from api.http.plans import OurGpuplan
from api.render.text import percent, plain, usd_per_hour, when
from api.web.charts.drawing import Axis, Figure
from api.web.charts.steps import LETTERS, MOST_LINES, Seen, StepLine, steps_chart
from api.web.csv_file import csv_file
from api.web.pages import PageRoute, render
from api.web.price_view import Course, Stretch, courses
from catalog.errors import Fault, UnusableInput
from catalog.history import Observation

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
    found = courses(page.points, begin=wanted.since, end=end)
    seen = [each for each in found if each.seen]
    singles = [(course, stretch) for course in found for stretch in course.stretches]
    return {
        "instance_type": page.instance_type,
        "snapshot_id": page.snapshot_id,
        "offers": found[:MOST_OFFERS],
        "offer_urls": [_offer_url(each, wanted) for each in found[:MOST_OFFERS]],
        "total": len(found),
        "figure": figure(page.instance_type, seen, wanted) if seen else None,
        "seen": len(seen),
        "letter_of": {each.key: LETTERS[number] for number, each in enumerate(seen[:MOST_LINES])},
        "singles": singles[:MOST_PRICES],
        "prices": len(singles),
        "modelled": sum(bool(each.last["modelled"]) for each in found),
        "stale": sum(each.last["stale_since"] is not None for each in found),
        "lowest": min((each.lowest for each in found), default=None),
        "highest": max((each.highest for each in found), default=None),
    }


def figure(name: str, found: list[Course], wanted: HistoryFilter) -> Figure:
    """The chart of the offers whose last price is the lowest, with what was seen of each as a table."""
    drawn = found[:MOST_LINES]
    lines = [
        StepLine(
            name=f"{each.place}, {each.kind}",
            seen=tuple(
                Seen(at=one.at, value=stretch.usd, joined=one.joined, title=_said(each, stretch, one))
                for stretch, one in each.seen
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
            when(run[0].isoformat()),
            when(run[-1].isoformat()),
            f"{len(run):,}",
            usd_per_hour(round(one.usd, 6)),
        )
        for number, each in enumerate(drawn)
        for one in each.stretches[-MOST_PRICES // MOST_LINES :]
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
            (f"{LETTERS[number]}: {each.place}, {each.kind}", f"s{number + 1}") for number, each in enumerate(drawn)
        ),
    )


def _said(each: Course, stretch: Stretch, seen: Observation) -> str:
    """What a mark says; the first of a price also how far that is from the one before."""
    change = ""
    number = each.stretches.index(stretch)
    before = each.stretches[number - 1] if number else None
    if before is not None and before.usd and seen == stretch.seen[0]:
        share = stretch.usd / before.usd - 1
        change = f", {percent(abs(share), 1)} {'dearer' if share > 0 else 'cheaper'}"
    price = usd_per_hour(round(stretch.usd, 6))
    return f"{each.place}, {each.kind}: {price} per hour, seen {when(seen.at.isoformat())}{change}"


def _offer_url(each: Course, wanted: HistoryFilter) -> str:
    """The history of this offer alone, over the same span."""
    provider, region, zone, name, kind = each.key
    given = {"instance_type": name, "provider": provider, "region": region, "zone": zone, "kind": kind}
    return _url({key: text for key, text in (wanted.given() | given).items() if text})


def _url(given: dict[str, str]) -> str:
    return f"/prices?{urlencode(given)}"
