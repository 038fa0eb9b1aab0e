"""The HTTP routes about capacity: ask the clouds how likely machines are obtained, and report what a run got."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.capacity_report import CapacityReportDocument
from gpuplan.api.schemas.capacity_request import CapacityDocument

router = APIRouter()


@router.post(
    "/v1/capacity",
    summary="Ask the clouds how likely machines are obtained now",
    operation_id="capacity",
    responses=document_responses("CapacityAnswers"),
    openapi_extra=takes(CapacityDocument),
)
async def capacity(request: Request, gpuplan: OurGpuplan, workers: OurLongWorkers) -> Response:
    """All clouds at once, within `limit_seconds`; answers of the last ten minutes are reused. A cloud that gives no answer
    is listed with its reason in `not_learned`.
    """
    _, document = await read_body(request)
    return json_answer(await workers.run(gpuplan.capacity.read, document))


@router.post(
    "/v1/capacity/reports",
    summary="Report that a cloud refused or gave machines",
    operation_id="report_capacity",
    responses=document_responses("CapacityReport"),
    openapi_extra=takes(CapacityReportDocument),
)
async def report_capacity(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """One try of a run or script. Live chances count the tries of the last seven days, and plans quote them."""
    _, document = await read_body(request)
    return json_answer(await workers.run(gpuplan.capacity.report, document))
