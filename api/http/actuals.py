"""What runs of plans measured, over HTTP: reported under the plan, read, forgotten."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.app import Document
from api.http.bodies import read_body
from api.http.describe import ACTUALS_OPERATION, document_responses
from api.http.idempotency import Idempotency
from api.http.plans import OurGpuplan, OurWorkers, to_json

router = APIRouter()


@router.post(
    "/v1/plans/{plan_id}/actuals",
    summary="What a run of a plan measured",
    operation_id="report_actuals",
    responses=document_responses("Actual", 400, 404, 413, 415, 503),
    openapi_extra=ACTUALS_OPERATION,
)
async def report_actuals(request: Request, plan_id: str, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Kept and shown against the plan; later estimates of such work learn from it. The same report twice is one."""
    body, document = await read_body(request)
    key = Idempotency.read(request, body, "")

    def answer() -> Document:
        return gpuplan.report_actuals(plan_id, document)

    return Response(to_json(await workers.run(key.once, gpuplan, answer)), media_type="application/json")


@router.get(
    "/v1/plans/{plan_id}/actuals",
    summary="What the runs of a plan measured",
    operation_id="plan_actuals",
    responses=document_responses("Actuals", 404, 503),
)
def plan_actuals(plan_id: str, gpuplan: OurGpuplan) -> Response:
    """Oldest first, each against the prediction, and what is learned of that class of work."""
    return Response(to_json(gpuplan.actuals(plan_id)), media_type="application/json")


@router.get(
    "/v1/actuals",
    summary="What all runs measured, and what they teach",
    operation_id="all_actuals",
    responses=document_responses("Actuals", 503),
)
def all_actuals(gpuplan: OurGpuplan) -> Response:
    """Oldest first."""
    return Response(to_json(gpuplan.actuals()), media_type="application/json")


@router.delete(
    "/v1/actuals/{actual_id}",
    summary="Forget one report",
    operation_id="forget_actual",
    responses=document_responses("Forgotten", 404, 503),
)
def forget_actual(actual_id: str, gpuplan: OurGpuplan) -> Response:
    """Estimates are then as if it had never been given."""
    return Response(to_json(gpuplan.forget_actuals(actual_id)), media_type="application/json")
