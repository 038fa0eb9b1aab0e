"""Plans and estimates over HTTP: parse, call, answer."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from api.app import Gpuplan
from api.http.bodies import read_body
from api.http.caching import json_with_etag, to_json
from api.http.describe import ESTIMATE_OPERATION, PLAN_OPERATION, document_responses
from api.http.idempotency import IDEMPOTENCY_KEY, Idempotency
from api.http.straight import StraightRoute
from api.http.workers import Workers

__all__ = ["OurGpuplan", "OurLongWorkers", "OurWorkers", "router", "straight", "to_json"]

router = APIRouter()
#: For the one route that is asked for many times a second.
straight = APIRouter(route_class=StraightRoute)


async def the_gpuplan(request: Request) -> Gpuplan:
    """The one object that answers, as the service was started with it."""
    gpuplan: Gpuplan = request.app.state.gpuplan
    return gpuplan


async def the_workers(request: Request) -> Workers:
    """The threads that plan."""
    workers: Workers = request.app.state.workers
    return workers


async def the_long_workers(request: Request) -> Workers:
    """The threads of questions that take seconds, so that plans never wait for them."""
    workers: Workers = request.app.state.long_workers
    return workers


OurGpuplan = Annotated[Gpuplan, Depends(the_gpuplan)]
OurWorkers = Annotated[Workers, Depends(the_workers)]
OurLongWorkers = Annotated[Workers, Depends(the_long_workers)]


class PlanQuery(BaseModel):
    """What may be said about a plan outside the job."""

    model_config = ConfigDict(frozen=True)

    frontier: bool = False
    snapshot: str | None = None


_JUST_THE_PLAN = PlanQuery()


@straight.post(
    "/v1/plans",
    summary="The cheapest plan for a job",
    operation_id="plan",
    responses=document_responses("PlanAnswer", 400, 404, 413, 415, 503),
    openapi_extra=PLAN_OPERATION,
)
async def plan(request: Request, query: Annotated[PlanQuery, Query()] = _JUST_THE_PLAN) -> Response:
    """Also `200` when no plan is possible: that is an answer, with the conflicts and the least relaxations."""
    # Asked for here, on the one route where it counts: each `Depends` costs more than what it gives takes.
    gpuplan, workers = await the_gpuplan(request), await the_workers(request)
    body, document = await read_body(request)
    asked: dict[str, Any] = {"frontier": query.frontier, "snapshot": query.snapshot}
    if IDEMPOTENCY_KEY not in request.headers:
        return Response(await workers.run(gpuplan.plan_text, document, **asked), media_type="application/json")
    key = Idempotency.read(request, body, query.model_dump_json())
    answer = await workers.run(key.once, gpuplan, partial(gpuplan.plan, document, **asked))
    return Response(to_json(answer), media_type="application/json")


@router.get(
    "/v1/plans/{plan_id}",
    summary="A plan made before",
    operation_id="saved_plan",
    responses=document_responses("PlanAnswer", 404, 503) | {304: {"description": "Not Modified"}},
)
def saved_plan(request: Request, plan_id: str, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, `meta` included; its ETag stays as it does."""
    return json_with_etag(request, gpuplan.saved_plan(plan_id))


@router.post(
    "/v1/estimates",
    summary="Time and memory on one given configuration",
    operation_id="estimate",
    responses=document_responses("Estimate", 400, 413, 415, 503),
    openapi_extra=ESTIMATE_OPERATION,
)
async def estimate(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """No prices are involved; whatever `on` leaves out is chosen or assumed, and said."""
    _, document = await read_body(request)
    answer = await workers.run(gpuplan.estimate, document)
    return Response(to_json(answer), media_type="application/json")
