"""Portfolios over HTTP: planned as runs, answered at once where that takes no longer than the client waits."""

import uuid
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.app import Gpuplan
from api.http.bodies import read_body
from api.http.caching import json_with_etag
from api.http.describe import document_responses
from api.http.describe_long import PORTFOLIO_OPERATION, started_or_answered
from api.http.idempotency import Idempotency
from api.http.plans import OurGpuplan, OurWorkers, to_json
from api.http.prefer import Prefer
from api.http.problems import Refused
from api.http.runs import POLL_SECONDS, OurPool, wait_for
from api.identity.asking import owner
from api.questions.opened import Document
from api.runs.failures import faults_of
from api.runs.pool import Busy, RunPool
from api.runs.shown import shown
from api.telemetry.health import Health
from catalog.runs import Run

router = APIRouter()

#: Bounds that rise after an hour still are for a machine of one's own, and the command line.
LONGEST_SEARCH_SECONDS = 3600.0
MOST_ITERATIONS = 1_000_000
#: The least that a search ahead in the queue may still take.
RETRY_AFTER_SECONDS = 15


class PortfolioQuery(BaseModel):
    """What may be said about a portfolio outside its document: as the command line's options."""

    time_limit: float = Field(
        60.0, gt=0, le=LONGEST_SEARCH_SECONDS, description="Seconds to look for better plans and bounds"
    )
    iterations: int | None = Field(
        None, ge=1, le=MOST_ITERATIONS, description="End after so many steps instead: the same plan on every machine"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Where the search's random numbers begin")
    snapshot: str | None = Field(None, description="Prices of this snapshot, not the current")


@router.post(
    "/v1/portfolios",
    summary="The cheapest way to run many jobs together",
    operation_id="portfolio",
    responses=started_or_answered("PortfolioAnswer", 400, 404, 413, 415, 503),
    openapi_extra=PORTFOLIO_OPERATION,
)
async def portfolio(
    request: Request,
    query: Annotated[PortfolioQuery, Query()],
    gpuplan: OurGpuplan,
    workers: OurWorkers,
    pool: OurPool,
) -> Response:
    """`200` with the answer if it is there within a second, or as long as `Prefer: wait=N` says; else `202`, and
    `Location` says where it will be. `Prefer: respond-async` waits for nothing.
    """
    body, document = await read_body(request)
    key = Idempotency.read(request, body, query.model_dump_json())
    prefer = Prefer.read(request)

    run_id = await workers.run(_run_of, key, gpuplan, pool, document, query)
    health: Health = request.app.state.health
    await wait_for(pool, run_id, prefer.wait_seconds, stopping=lambda: health.stopping)
    return _answer(await workers.run(gpuplan.stored_run, run_id), prefer)


@router.get(
    "/v1/portfolios/{portfolio_id}",
    summary="A portfolio planned before",
    operation_id="saved_portfolio",
    responses=document_responses("PortfolioAnswer", 404, 503) | {304: {"description": "Not Modified"}},
)
def saved_portfolio(request: Request, portfolio_id: str, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, under the id of its run, once that has ended."""
    return json_with_etag(request, gpuplan.run_answer(portfolio_id, "portfolio"))


def _run_of(key: Idempotency, gpuplan: Gpuplan, pool: RunPool, document: Document, query: PortfolioQuery) -> str:
    """The id of the run that answers this request: one for all requests that carry the same key."""
    begun: list[str] = []

    def begin() -> Document:
        begun.append(begin_portfolio(gpuplan, pool, document, query))
        return {"run": begun[0]}

    counts: str = key.once(gpuplan, begin)["run"]
    if begun and begun[0] != counts:
        pool.cancel(begun[0], "the same request came twice at once, and the other run answers it")
    return counts


def begin_portfolio(gpuplan: Gpuplan, pool: RunPool, document: Document, query: PortfolioQuery) -> str:
    """The id of a run that has been started; a document that cannot be read starts none."""
    now = datetime.now(UTC)
    asked: Document = {
        "document": document,
        "snapshot": gpuplan.check_portfolio(document, snapshot=query.snapshot, now=now),
        "time_limit_s": None if query.iterations is not None else query.time_limit,
        "iterations": query.iterations,
        "seed": query.seed,
    }
    run_id = f"portfolio-{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:12]}"
    run = Run(id=run_id, kind="portfolio", status="queued", request=asked, created_at=now, beat_at=now)
    gpuplan.count_plan("portfolio", run_id)
    try:
        pool.start(gpuplan.store.runs, run, owner=owner())
    except Busy as error:
        raise Refused(503, str(error), headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
    return run_id


def _answer(run: Run, prefer: Prefer) -> Response:
    """The answer, why there is none, or where it will be; always the latter for one who does not wait."""
    waited = prefer.wait_seconds > 0
    if waited and run.error is not None and run.status == "failed":
        raise Refused(run.error.get("status", 503), run.error["detail"], faults=faults_of(run.error))
    if waited and run.answer is not None:
        headers = prefer.headers() | {"Content-Location": f"/v1/portfolios/{run.id}"}
        return Response(to_json(run.answer), media_type="application/json", headers=headers)
    headers = prefer.headers() | {"Location": f"/v1/runs/{run.id}", "Retry-After": str(POLL_SECONDS)}
    return Response(to_json(shown(run)), status_code=202, media_type="application/json", headers=headers)
