"""HTTP routes for measured runs: report the figures of a run under its plan, read them, delete them."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.openapi_bodies import IDEMPOTENCY_HEADER, document_responses, takes
from gpuplan.api.http.path_ids import ActualId, PlanId
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.actuals import ActualsDocument

router = APIRouter()


@router.post(
    "/v1/plans/{plan_id}/actuals",
    summary="Report what a run of a plan measured",
    responses=document_responses("Actual"),
    openapi_extra=takes(ActualsDocument, IDEMPOTENCY_HEADER),
)
async def report_actuals(request: Request, plan_id: PlanId, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Stores the report under the plan. Later estimates of similar work learn from it. The same report sent twice is
    stored once.
    """
    body, document = await read_body(request)
    key = Idempotency.read(request, body, "")
    return json_answer(await workers.run(key.run, gpuplan, lambda: gpuplan.actuals.report(plan_id, document)))


@router.get(
    "/v1/plans/{plan_id}/actuals", summary="Measurements of the runs of a plan", responses=document_responses("Actuals")
)
def plan_actuals(plan_id: PlanId, gpuplan: OurGpuplan) -> Response:
    """Oldest first, each against the prediction, and what is learned of that class of work."""
    return json_answer(gpuplan.actuals.listed(plan_id))


@router.get(
    "/v1/actuals",
    summary="Measurements of all runs, and what gpuplan learned from them",
    responses=document_responses("Actuals"),
)
def all_actuals(gpuplan: OurGpuplan) -> Response:
    """Oldest first."""
    return json_answer(gpuplan.actuals.listed())


@router.delete("/v1/actuals/{actual_id}", summary="Delete one report", responses=document_responses("Forgotten"))
def forget_actual(actual_id: ActualId, gpuplan: OurGpuplan) -> Response:
    """Estimates are then as if it had never been given."""
    return json_answer(gpuplan.actuals.forget(actual_id))
