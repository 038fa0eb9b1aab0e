"""`/portfolio`: many jobs over shared machines: pasted or uploaded, followed while they are planned, shown as a Gantt chart.

Works without scripts: a run's page asks the browser to look again; with them only its progress is exchanged.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from api.app import Document
from api.documents.portfolio import parse_portfolio
from api.http.access import needs
from api.http.plans import OurGpuplan, OurWorkers
from api.http.portfolios import LONGEST_SEARCH_SECONDS, PortfolioQuery, begin_portfolio
from api.http.runs import POLL_SECONDS, OurPool
from api.render.portfolio import render_portfolio, sureness
from api.web.charts.drawing import Figure
from api.web.charts.gantt import gantt
from api.web.forms import read_form
from api.web.once import new_number, once
from api.web.pages import EXPECTED, PageRoute, render
from api.web.pasted import refusal, sent_document, sent_text
from api.web.portfolio_example import EXAMPLE
from api.web.portfolio_view import MOST_BARS, Dates, in_order, job_lines, lanes
from api.web.told import sections, titled
from catalog.errors import UnusableInput
from catalog.runs import LIVE, Run
from catalog.snapshot_list import NotStored

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

USUAL_SECONDS = "30"
RunId = Annotated[str, Path(max_length=200)]


class FormQuery(BaseModel):
    """Whether the form is filled with the example."""

    model_config = ConfigDict(extra="forbid")

    example: bool = False


@router.get("/portfolio")
def portfolio_form(request: Request, query: Annotated[FormQuery, Query()]) -> Response:
    """The form, empty or with an example."""
    return _form(request, EXAMPLE if query.example else "", USUAL_SECONDS)


@router.post("/portfolio", dependencies=[Depends(needs("plan"))])
async def start(request: Request, gpuplan: OurGpuplan, workers: OurWorkers, pool: OurPool) -> Response:
    """Begin to plan and go to the run's own address; a document that cannot be used comes back as it was sent."""
    form = await read_form(request)
    seconds, text = form.texts.get("time_limit", [USUAL_SECONDS])[0], sent_text(form)
    try:
        document = sent_document(form, name="the portfolio")
        query = PortfolioQuery.model_validate({"time_limit": _seconds(seconds)})
        key = once(form, scope="POST /portfolio")
        begun = await workers.run(key.once, gpuplan, lambda: {"run": begin_portfolio(gpuplan, pool, document, query)})
    except EXPECTED as error:
        return _form(request, text, seconds, error)
    return RedirectResponse(f"/portfolio/{begun['run']}", status_code=303)


@router.get("/portfolio/{run_id}")
def portfolio(request: Request, run_id: RunId, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """How far the run is, or what came of it."""
    run = gpuplan.stored_run(run_id)
    if run.kind != "portfolio":
        raise NotStored.at("portfolio", message=f"no portfolio {run_id[:80]!r} is stored here; accepted: the id of one")
    pulse = pool.pulse(run_id)
    live = run.status in LIVE
    context = {
        "section": "Portfolio",
        "run": run,
        "live": live,
        "shareable": gpuplan.may_share("run", run.id),
        "poll_seconds": POLL_SECONDS,
        "progress": (pulse.progress if pulse is not None and live else run.progress) or None,
        "result": None if run.answer is None else _result(run, run.answer),
        "name": run.request["document"].get("name") or "Portfolio",
        "faults": _kept_faults(run),
        "seconds": (datetime.now(UTC) - run.created_at).total_seconds(),
    }
    return render(request, "portfolio_run.html", context, headers={"Cache-Control": "no-store"} if live else None)


@router.post("/portfolio/{run_id}/cancel", dependencies=[Depends(needs("plan"))])
def cancel(run_id: RunId, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """End the run, which keeps the best plan that it found, and go back to its page."""
    run = gpuplan.stored_run(run_id)
    if run.kind == "portfolio" and run.status in LIVE:
        gpuplan.cancel_run(run_id)
        pool.cancel(run_id)
    return RedirectResponse(f"/portfolio/{run_id}", status_code=303)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= LONGEST_SEARCH_SECONDS:
        message = f"{text[:80]!r} is not accepted; write seconds, up to {LONGEST_SEARCH_SECONDS:g}"
        raise UnusableInput.at("time_limit", message=message)
    return value


def _form(request: Request, text: str, seconds: str, error: Exception | None = None) -> Response:
    refused = None if error is None else refusal(error, text)
    found = [] if refused is None else refused.mending
    context = {
        "section": "Portfolio",
        "document": text,
        "once": new_number(),
        "seconds": seconds,
        "of_document": [each for each in found if each.field != "time_limit"],
        "of_seconds": [each.message for each in found if each.field == "time_limit"],
        "most_seconds": LONGEST_SEARCH_SECONDS,
    }
    if refused is None:
        return render(request, "portfolio.html", context)
    return render(request, "portfolio.html", context, status=refused.status, headers=refused.headers)


def _kept_faults(run: Run) -> list[str]:
    """Why a run failed, in words."""
    if run.error is None:
        return []
    return [str(run.error["detail"])]


def _result(run: Run, answer: Document) -> dict[str, Any]:
    """What the template shows of a portfolio that has been planned."""
    body = answer["portfolio"]
    dates = _dates(run, body)
    jobs = in_order(body["jobs"])
    found = job_lines(jobs, dates)
    told = sections(render_portfolio(answer))
    return {
        "body": body,
        "sureness": sureness(body),
        "jobs": found,
        "figure": _figure(body, jobs, dates) if jobs else None,
        "drawn": min(len(jobs), MOST_BARS),
        "finishes": max((each["finishes_by"] for each in jobs), default=None),
        "headline": told[0],
        "left_out": titled(told, "Left out"),
        "rest": [each for each in told[1:] if not each.title.startswith(("Who runs when", "Left out"))],
        "answer_url": f"/v1/portfolios/{run.id}",
    }


def _dates(run: Run, body: Document) -> dict[int, Dates]:
    """When each job may begin and must be done, by its number, as the document said."""
    try:
        asked = parse_portfolio(run.request["document"], now=run.created_at)
    except UnusableInput:
        # An older release took what this one does not: the answer stands, the dates are not known.
        return {}
    start = datetime.fromisoformat(body["start"])
    found = {}
    for number, each in enumerate(asked.jobs):
        release = start + timedelta(hours=each.release_hours)
        due = each.job.deadline_hours
        found[number] = Dates(
            release=release if each.release_hours > 0 else None,
            deadline=None if due is None else release + timedelta(hours=due),
        )
    return found


def _figure(body: Document, jobs: list[Any], dates: dict[int, Dates]) -> Figure:
    title = "When each job runs, and on what"
    drawn = lanes(jobs, dates)
    return Figure(
        title=title,
        drawing=gantt(title, drawn, starts=datetime.fromisoformat(body["start"])),
        columns=(),
        rows=(),
    )
