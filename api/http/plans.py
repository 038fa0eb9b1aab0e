"""HTTP routes for plans and estimates."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.idempotency import IDEMPOTENCY_KEY, Idempotency
from gpuplan.api.http.openapi_bodies import IDEMPOTENCY_HEADER, document_responses, takes
from gpuplan.api.http.path_ids import PlanId
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer, json_with_etag
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.schemas.job import JobDocument
from gpuplan.api.services.composition import Services
from gpuplan.catalog.parsing.json_object import JsonObject

__all__ = ["OurGpuplan", "OurLongWorkers", "OurWorkers", "router"]

router = APIRouter()


async def the_gpuplan(request: Request) -> Services:
    """The one object that answers, as the service was started with it."""
    gpuplan: Services = request.app.state.gpuplan
    return gpuplan


async def the_workers(request: Request) -> Workers:
    """The threads for plans."""
    workers: Workers = request.app.state.workers
    return workers


async def the_long_workers(request: Request) -> Workers:
    """Separate threads for requests that take seconds, so that plans never wait for them."""
    workers: Workers = request.app.state.long_workers
    return workers


OurGpuplan = Annotated[Services, Depends(the_gpuplan)]
OurWorkers = Annotated[Workers, Depends(the_workers)]
OurLongWorkers = Annotated[Workers, Depends(the_long_workers)]


class PlanQuery(BaseModel):
    """Query parameters of a plan, besides the job."""

    model_config = ConfigDict(frozen=True)

    frontier: bool = Field(default=False, description="Add every Pareto-optimal trade of cost against time")
    snapshot: str | None = Field(default=None, description="Use the prices of this snapshot, not of the current one")
    prices: Literal["expected", "as-observed"] | None = Field(
        default=None,
        description="Plan at prices as expected at the start, or as observed. Default: as the settings say",
    )
    live: bool | None = Field(
        default=None,
        description="Ask the clouds how likely the machines are obtained now. Default: as the service is set up.",
    )


_JUST_THE_PLAN = PlanQuery()


@router.post(
    "/v1/plans",
    summary="Find the cheapest plan for a job",
    responses=document_responses("PlanAnswer", 404),
    openapi_extra=takes(JobDocument, IDEMPOTENCY_HEADER),
)
async def plan(request: Request, query: Annotated[PlanQuery, Query()] = _JUST_THE_PLAN) -> Response:
    """Also `200` when no plan is possible: that is an answer, with the conflicts and the least relaxations."""
    # Not by `Depends`, which on this frequent route costs more than these two calls.
    gpuplan, workers = await the_gpuplan(request), await the_workers(request)
    body, document = await read_body(request)
    live = gpuplan.context.environment.asks_live() if query.live is None else query.live
    if live:  # clouds may take seconds to answer
        workers = await the_long_workers(request)
    question: JsonObject = query.model_dump() | {"live": live}
    if IDEMPOTENCY_KEY in request.headers:
        key = Idempotency.read(request, body, query.model_dump_json())
        ask = partial(gpuplan.plans.plan, document, **question)
        return json_answer(await workers.run(key.run, gpuplan, ask))
    text = await workers.run(gpuplan.plans.plan_text, document, **question)
    return Response(text, media_type="application/json")


@router.get("/v1/plans/{plan_id}", summary="Read a saved plan", responses=document_responses("PlanAnswer", 304))
def saved_plan(request: Request, plan_id: PlanId, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, `meta` included; its ETag stays as it does."""
    return json_with_etag(request, gpuplan.plans.saved_document(plan_id))
