"""`/costs`: planned and actual costs of a month, budgets of teams, and which plans count."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import TypeAdapter, ValidationError

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.presentation.charts.bars import BarRow, bars
from gpuplan.api.presentation.charts.drawing import Figure, LegendEntry
from gpuplan.api.presentation.costs import CSV_COLUMNS, csv_rows, over_budget, shown_name
from gpuplan.api.presentation.text_formatting import usd
from gpuplan.api.schemas.costs import BY, FIRST_YEAR, read_month
from gpuplan.api.schemas.costs_answer import Costs
from gpuplan.api.services.composition import Services
from gpuplan.api.services.costs import BudgetChanged
from gpuplan.api.services.service_context import Document
from gpuplan.api.web.csv_download import csv_file
from gpuplan.api.web.form_bodies import read_form
from gpuplan.api.web.page_rendering import HEADERS, PageRoute, render
from gpuplan.api.web.plan_comparison import recent_rows
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

FIELDS = ("month", "by")
#: Bars beyond these are only in the table.
MOST_BARS = 12
#: Plans that are offered for counting.
MOST_OFFERED = 10
#: The budgets that the form was made with, by team.
_SEEN = TypeAdapter(dict[str, int])


@router.get("/costs")
def costs(request: Request, gpuplan: OurGpuplan) -> Response:
    """Show a month as a table and a chart, the plans behind it, and forms for budgets and plans."""
    return _page(request, gpuplan, dict(request.query_params))


@router.get("/costs.csv")
def costs_csv(request: Request, gpuplan: OurGpuplan) -> Response:
    """The rows of the month as a file."""
    answer = gpuplan.costs.of_month(*_asked(dict(request.query_params)))
    return csv_file(CSV_COLUMNS, csv_rows(answer), f"costs-{answer.month}-{answer.by}.csv")


@router.get("/costs.focus.csv")
def costs_focus(request: Request, gpuplan: OurGpuplan) -> Response:
    """The planned charges of the month as a FOCUS dataset."""
    text = gpuplan.costs.focus(_asked(dict(request.query_params))[0])
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="costs.focus.csv"'}
    return Response(text.encode(), media_type="text/csv", headers=headers)


@router.post("/costs/plans", dependencies=[Depends(needs("plan"))])
async def adopt(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Count a plan."""
    given = await _form(request)
    return await workers.run(_done, request, gpuplan, given, lambda: gpuplan.costs.adopt(given.get("plan", "")))


@router.post("/costs/plans/drop", dependencies=[Depends(needs("plan"))])
async def drop(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Count a plan no longer."""
    given = await _form(request)
    return await workers.run(_done, request, gpuplan, given, lambda: gpuplan.costs.drop(given.get("plan", "")))


@router.post("/costs/budgets", dependencies=[Depends(needs("admin"))])
async def budget(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Set a team's budget; an empty amount removes it. If it was changed since the page was loaded, show it and store nothing."""
    given = await _form(request)
    document: Document = {name: given[name] for name in ("team", "usd") if name in given}
    seen = _seen_budgets(given.get("seen", ""))
    return await workers.run(_done, request, gpuplan, given, lambda: gpuplan.costs.replace_budget(document, seen))


def _seen_budgets(text: str) -> dict[str, int]:
    """The budgets, in micro-dollars, that stood when the page was loaded. Raises `UnusableInput` at `seen`."""
    try:
        return _SEEN.validate_json(text)
    except ValidationError:
        raise UnusableInput.at("seen", message="is not what the page sends; load the page again") from None


async def _form(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in (await read_form(request)).texts.items()}


def _done(request: Request, gpuplan: Services, given: dict[str, str], change: Any) -> Response:
    """The page of the same month after the change, or with its faults."""
    try:
        change()
    except BudgetChanged as error:
        return _page(request, gpuplan, given, error.faults, status=409)
    except UnusableInput as error:
        return _page(request, gpuplan, given, error.faults, status=422)
    query = urlencode({name: given[name] for name in FIELDS if name in given})
    return RedirectResponse(f"/costs?{query}", status_code=303, headers={"Cache-Control": "no-store"})


def _asked(asked: dict[str, str]) -> tuple[str | None, str | None]:
    return asked.get("month") or None, asked.get("by") or None


def _page(
    request: Request, gpuplan: Services, asked: dict[str, str], faults: tuple[Fault, ...] = (), *, status: int = 200
) -> Response:
    answer: Costs | None = None
    now = datetime.now(UTC)
    try:
        answer = gpuplan.costs.of_month(*_asked(asked), now=now)
    except UnusableInput as error:
        faults, status = (*faults, *error.faults), 422
    offered = gpuplan.costs.adoptable(MOST_OFFERED)
    context = {
        "section": "Costs",
        "asked": {name: asked.get(name, "") for name in (*FIELDS, "team", "usd")}
        | ({} if answer is None else {"month": answer.month, "by": answer.by}),
        "fields": (*FIELDS, "team", "usd"),
        "faults": {fault.field: fault.message for fault in faults},
        "groups": BY,
        "answer": answer,
        "over": [] if answer is None else over_budget(answer),
        "names": {} if answer is None else {row.name: shown_name(row.name, answer.by) for row in answer.rows},
        "chart": None if answer is None else _chart(answer),
        "months": dict.fromkeys(("before", "after"), "") if answer is None else _around(answer, now),
        "query": "" if answer is None else urlencode({"month": answer.month, "by": answer.by}),
        "seen": _SEEN.dump_json(dict(gpuplan.costs.budgets())).decode(),
        "offered": recent_rows(tuple(offered)),
    }
    return render(request, "costs.html", context, status=status)


def _around(answer: Costs, now: datetime) -> dict[str, str]:
    """The addresses of the month before and after."""
    month = read_month(answer.month, now)
    before, after = (month - timedelta(days=1)), (month + timedelta(days=32))
    return {
        name: f"/costs?{urlencode({'month': f'{moment:%Y-%m}', 'by': answer.by})}" if moment.year >= FIRST_YEAR else ""
        for name, moment in (("before", before), ("after", after))
    }


def _chart(answer: Costs) -> Figure | None:
    shown = [row for row in answer.rows if row.plans][:MOST_BARS]
    if not shown:
        return None
    title = f"Costs of {answer.month} by {answer.by}"
    rows = [
        BarRow(
            name=shown_name(row.name, answer.by),
            values=tuple((float(amount), usd(amount)) for amount in (row.planned_usd, row.actual_usd)),
            title=f"{shown_name(row.name, answer.by)}: {usd(row.planned_usd)} planned, {usd(row.actual_usd)} actual",
        )
        for row in shown
    ]
    return Figure(
        title=title,
        drawing=bars(title, rows),
        columns=((answer.by, False), ("planned", True), ("actual", True)),
        rows=tuple((row.name, *(words for _, words in row.values)) for row in rows),
        legend=(
            LegendEntry(name="planned", style="s1", shape="square"),
            LegendEntry(name="actual", style="s2", shape="square"),
        ),
    )
