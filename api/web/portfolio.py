"""`/portfolio`: submit many jobs, follow the search, and see the plan as a Gantt chart.

Works without scripts: the page of a run reloads itself. With scripts only its progress is updated.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.portfolios import LONGEST_SEARCH_SECONDS, PortfolioQuery, begin_portfolio
from gpuplan.api.http.runs import POLL_SECONDS, OurPool
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.jobs.search_history import read_progress
from gpuplan.api.presentation.charts.gantt_board import gantt
from gpuplan.api.presentation.portfolio import render_portfolio, sureness
from gpuplan.api.schemas.portfolio import parse_portfolio
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.api.web.duplicate_submissions import idempotency_of, new_number
from gpuplan.api.web.examples import PORTFOLIO
from gpuplan.api.web.form_bodies import read_form
from gpuplan.api.web.page_rendering import EXPECTED, Context, PageRoute, render
from gpuplan.api.web.pasted_documents import document_form, sent_document, sent_text
from gpuplan.api.web.portfolio_changes import document_text, editable_jobs, with_changes
from gpuplan.api.web.portfolio_view import MOST_BARS, Dates, in_order, job_lines, lanes, short_time
from gpuplan.api.web.search_view import search_figure
from gpuplan.api.web.text_sections import keyed, sections
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.run_store import LIVE, Run
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.portfolio import PortfolioAnswer, PortfolioPlan

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])

USUAL_SECONDS = "30"
CHART_TITLE = "Schedule of the jobs"
RunId = Annotated[str, Path(max_length=200)]
RunText = Annotated[str, Field(max_length=200)]
#: How much the time axis may be stretched.
ZOOMS = (1, 2, 4, 8)
Zoom = Annotated[int, Query(ge=1, le=ZOOMS[-1])]


class FormQuery(BaseModel):
    """Whether to fill in the example, or the document of a run."""

    model_config = ConfigDict(extra="forbid")

    example: bool = False
    run: RunText | None = None


@router.get("/portfolio")
def portfolio_form(request: Request, query: Annotated[FormQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show the form, empty, with the example, or with the document of a run."""
    if query.run is not None:
        return _form(request, document_text(_stored(gpuplan, query.run).request["document"]), USUAL_SECONDS)
    return _form(request, PORTFOLIO if query.example else "", USUAL_SECONDS)


@router.post("/portfolio", dependencies=[Depends(needs("plan"))])
async def start(request: Request, gpuplan: OurGpuplan, workers: OurWorkers, pool: OurPool) -> Response:
    """Start a run and redirect to it. An unusable document is shown again with its faults."""
    form = await read_form(request)
    seconds, text = form.texts.get("time_limit", [USUAL_SECONDS])[0], sent_text(form)
    try:
        document = sent_document(form, name="the portfolio")
        key = idempotency_of(form, scope="POST /portfolio")
        return await _begun(gpuplan, workers, pool, document, seconds=_seconds(seconds), key=key)
    except EXPECTED as error:
        return _form(request, text, seconds, error)


@router.post("/portfolio/{run_id}/again", dependencies=[Depends(needs("plan"))])
async def plan_again(
    request: Request, run_id: RunId, gpuplan: OurGpuplan, workers: OurWorkers, pool: OurPool
) -> Response:
    """Plan the jobs of a run again with other deadlines and priorities. What cannot be read is shown in the form."""
    form = await read_form(request)
    run = _stored(gpuplan, run_id)
    document = with_changes(run.request["document"], form)
    seconds = str(run.request["time_limit_s"] or USUAL_SECONDS)
    try:
        key = idempotency_of(form, scope=f"POST /portfolio/{run_id}/again")
        return await _begun(gpuplan, workers, pool, document, seconds=_seconds(seconds), key=key)
    except EXPECTED as error:
        return _form(request, document_text(document), seconds, error)


async def _begun(
    gpuplan: Services, workers: Workers, pool: OurPool, document: Document, *, seconds: float, key: Idempotency
) -> Response:
    """Start a run, once for each key, and redirect to it."""
    query = PortfolioQuery.model_validate({"time_limit": seconds})
    begun = await workers.run(key.run, gpuplan, lambda: {"run": begin_portfolio(gpuplan, pool, document, query)})
    return RedirectResponse(f"/portfolio/{begun['run']}", status_code=303)


@router.get("/portfolio/{run_id}")
def portfolio(request: Request, run_id: RunId, gpuplan: OurGpuplan, pool: OurPool, zoom: Zoom = 1) -> Response:
    """Show the progress or the result of a run, its time axis stretched `zoom` times."""
    run = _stored(gpuplan, run_id)
    heartbeat = pool.heartbeat(run_id)
    live = run.status in LIVE
    progress = read_progress(heartbeat.progress if heartbeat is not None and live else run.progress)
    context = {
        "section": "Portfolio",
        "run": run,
        "live": live,
        "shareable": gpuplan.shares.may_share("run", run.id),
        "poll_seconds": POLL_SECONDS,
        "progress": progress,
        "search": None if progress is None else search_figure(progress, live=live),
        "result": None if run.answer is None else _result(run, run.answer, zoom),
        "zoom": zoom,
        "zooms": ZOOMS,
        "editable": None if live else editable_jobs(run.request["document"]),
        "submission": new_number(),
        "name": run.request["document"].get("name") or "Portfolio",
        "faults": _stored_faults(run),
        "seconds": (datetime.now(UTC) - run.created_at).total_seconds(),
    }
    return render(request, "portfolio_run.html", context, headers={"Cache-Control": "no-store"} if live else None)


@router.post("/portfolio/{run_id}/cancel", dependencies=[Depends(needs("plan"))])
def cancel(run_id: RunId, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """Stop the run, keep its best plan, and redirect to its page."""
    run = gpuplan.runs.stored(run_id)
    if run.kind == "portfolio" and run.status in LIVE:
        gpuplan.runs.cancel(run_id)
        pool.cancel(run_id)
    return RedirectResponse(f"/portfolio/{run_id}", status_code=303)


def _stored(gpuplan: Services, run_id: str) -> Run:
    run = gpuplan.runs.stored(run_id)
    if run.kind != "portfolio":
        raise NotStored.at("portfolio", message=f"no portfolio {run_id[:80]!r} is stored here; accepted: the id of one")
    return run


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
    return document_form(request, "portfolio.html", text, error, seconds=seconds, most_seconds=LONGEST_SEARCH_SECONDS)


def _stored_faults(run: Run) -> list[str]:
    """The reasons of a failed run."""
    if run.error is None:
        return []
    return [str(run.error["detail"])]


def _result(run: Run, stored: Document, zoom: int) -> Context:
    """The template's data of a planned portfolio."""
    answer = read_stored(PortfolioAnswer, stored)
    body = answer.portfolio
    dates = _dates(run, body)
    jobs = in_order(body.jobs)
    rendered = sections(render_portfolio(answer))
    return {
        "body": body,
        "sureness": sureness(body),
        "jobs": job_lines(jobs, dates),
        "chart": gantt(CHART_TITLE, lanes(jobs, dates), starts=body.start, zoom=zoom) if jobs else None,
        "drawn": min(len(jobs), MOST_BARS),
        "finishes": max((short_time(job.finishes_by) for job in jobs), default=None),
        "headline": rendered[0],
        "left_out": keyed(rendered, "left_out"),
        "rest": [part for part in rendered[1:] if part.key not in ("schedule", "left_out")],
        "answer_url": f"/v1/portfolios/{run.id}",
    }


def _dates(run: Run, body: PortfolioPlan) -> dict[int, Dates]:
    """Release and deadline of the jobs by number, from the submitted document."""
    try:
        asked = parse_portfolio(run.request["document"], now=run.created_at)
    except UnusableInput:
        # The document of an older release may be invalid now: show the answer without dates.
        return {}
    dates = {}
    for number, job in enumerate(asked.jobs):
        release = body.start + timedelta(hours=job.release_hours)
        due = job.job.deadline_hours
        dates[number] = Dates(
            release=release if job.release_hours > 0 else None,
            deadline=None if due is None else release + timedelta(hours=due),
        )
    return dates
