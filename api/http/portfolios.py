"""HTTP routes for portfolios: planned as runs, with the answer in the response if it is ready while the client waits."""

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.openapi_bodies import (
    IDEMPOTENCY_HEADER,
    PREFER_HEADER,
    document_responses,
    started_or_answered,
    takes,
)
from gpuplan.api.http.path_ids import PortfolioId
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer, json_with_etag
from gpuplan.api.http.runs import POLL_SECONDS, OurPool, wait_for
from gpuplan.api.jobs.run_document import shown
from gpuplan.api.jobs.run_execution import faults_of
from gpuplan.api.jobs.thread_pool import Busy, RunPool
from gpuplan.api.observability.readiness import Health
from gpuplan.api.schemas.portfolio import PortfolioDocument
from gpuplan.api.security.authorization import owner
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.store.run_store import Run

#: Answers that are ready this soon are returned in the response; later ones are fetched from the run.
USUAL_WAIT_SECONDS = 1.0
#: Proxies give up on a response after a minute.
LONGEST_WAIT_SECONDS = 50.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
router = APIRouter()
#: Bounds that still improve after an hour are for a machine of your own and the command line.
LONGEST_SEARCH_SECONDS = 3600.0
MOST_ITERATIONS = 1_000_000
#: The shortest time that a search ahead in the queue may still take.
RETRY_AFTER_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """How long to wait for an answer, and which of the client's preferences this applies."""

    wait_seconds: float = USUAL_WAIT_SECONDS
    applied: str | None = None

    @classmethod
    def read(cls, request: Request) -> "Prefer":
        """Read the request's headers; unknown or malformed preferences are ignored (RFC 7240, section 2)."""
        wishes: dict[str, str] = {}
        for part in ",".join(request.headers.getlist("prefer")).split(","):
            name, value = _preference(part)
            if _TOKEN.fullmatch(name):
                wishes.setdefault(name.lower(), value)
        wait = wishes.get("wait", "")
        if wait.isdecimal() and wait.isascii() and len(wait) <= 9:
            seconds = min(float(wait), LONGEST_WAIT_SECONDS)
            also = "respond-async, " if "respond-async" in wishes else ""
            return cls(wait_seconds=seconds, applied=f"{also}wait={seconds:.0f}")
        if "respond-async" in wishes:
            return cls(wait_seconds=0.0, applied="respond-async")
        return cls()

    def headers(self) -> dict[str, str]:
        """The response headers that report the applied preference."""
        return {"Vary": "Prefer"} | ({"Preference-Applied": self.applied} if self.applied else {})


def _preference(part: str) -> tuple[str, str]:
    """The name and value of one preference, without its parameters, in linear time."""
    name, _, value = part.partition(";")[0].partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1].strip()
    return name.strip(), value


class PortfolioQuery(BaseModel):
    """Query parameters of a portfolio, equal to the options of the command line."""

    time_limit: float = Field(
        60.0, gt=0, le=LONGEST_SEARCH_SECONDS, description="Seconds to search for better plans and bounds"
    )
    iterations: int | None = Field(
        None,
        ge=1,
        le=MOST_ITERATIONS,
        description="Stop after this many iterations instead: gives the same plan on every machine",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the search's random numbers")
    snapshot: str | None = Field(None, description="Use the prices of this snapshot, not of the current one")


@router.post(
    "/v1/portfolios",
    summary="Plan many jobs together at the lowest cost",
    responses=started_or_answered("PortfolioAnswer", 404),
    openapi_extra=takes(PortfolioDocument, IDEMPOTENCY_HEADER, PREFER_HEADER),
)
async def portfolio(
    request: Request,
    query: Annotated[PortfolioQuery, Query()],
    gpuplan: OurGpuplan,
    workers: OurWorkers,
    pool: OurPool,
) -> Response:
    """`200` with the answer if it is ready within a second, or within `Prefer: wait=N`; otherwise `202`, with the
    address of the run in `Location`. `Prefer: respond-async` returns immediately.
    """
    body, document = await read_body(request)
    key = Idempotency.read(request, body, query.model_dump_json())
    prefer = Prefer.read(request)

    run_id = await workers.run(_run_of, key, gpuplan, pool, document, query)
    health: Health = request.app.state.health
    await wait_for(pool, run_id, prefer.wait_seconds, stopping=lambda: health.stopping)
    return _answer(await workers.run(gpuplan.runs.stored, run_id), prefer)


@router.get(
    "/v1/portfolios/{portfolio_id}",
    summary="Read a saved portfolio",
    responses=document_responses("PortfolioAnswer", 304),
)
def saved_portfolio(request: Request, portfolio_id: PortfolioId, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, under the id of its run, once that has ended."""
    return json_with_etag(request, gpuplan.runs.answer(portfolio_id, "portfolio"))


def _run_of(key: Idempotency, gpuplan: Services, pool: RunPool, document: Document, query: PortfolioQuery) -> str:
    """The id of the run that answers this request: one for all requests that carry the same key."""
    begun: list[str] = []

    def begin() -> Document:
        begun.append(begin_portfolio(gpuplan, pool, document, query))
        return {"run": begun[0]}

    counts: str = key.run(gpuplan, begin)["run"]
    if begun and begun[0] != counts:
        pool.cancel(begun[0], "the same request arrived twice at the same time; the other run answers it")
    return counts


def begin_portfolio(gpuplan: Services, pool: RunPool, document: Document, query: PortfolioQuery) -> str:
    """The id of a run that has been started; a document that cannot be read starts none."""
    now = datetime.now(UTC)
    asked: Document = {
        "document": document,
        "snapshot": gpuplan.portfolios.check(document, snapshot=query.snapshot, now=now),
        "time_limit_s": None if query.iterations is not None else query.time_limit,
        "iterations": query.iterations,
        "seed": query.seed,
    }
    run_id = f"portfolio-{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:12]}"
    run = Run(id=run_id, kind="portfolio", status="queued", request=asked, created_at=now, beat_at=now)
    gpuplan.audited.start("portfolio", run_id)
    try:
        pool.start(gpuplan.store.runs, run, owner=owner())
    except Busy as error:
        raise Refused(503, str(error), headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
    return run_id


def _answer(run: Run, prefer: Prefer) -> Response:
    """The answer, the reason why there is none, or the address of the run; always the address if the client does not
    wait.
    """
    waited = prefer.wait_seconds > 0
    if waited and run.error is not None and run.status == "failed":
        raise Refused(run.error.get("status", 503), run.error["detail"], faults=faults_of(run.error))
    if waited and run.answer is not None:
        headers = prefer.headers() | {"Content-Location": f"/v1/portfolios/{run.id}"}
        return json_answer(run.answer, headers=headers)
    headers = prefer.headers() | {"Location": f"/v1/runs/{run.id}", "Retry-After": str(POLL_SECONDS)}
    return json_answer(shown(run), status=202, headers=headers)
