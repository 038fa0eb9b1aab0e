"""The HTTP route that says which models a budget trains."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.afford_request import AffordDocument

router = APIRouter()


@router.post(
    "/v1/afford",
    summary="Say which models a budget trains",
    operation_id="afford",
    responses=document_responses("AffordAnswer"),
    openapi_extra=takes(AffordDocument),
)
async def afford(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Sizes and tokens by published scaling laws, each with its cheapest plan; an extrapolation. No plan is saved."""
    _, document = await read_body(request)
    return json_answer(await workers.run(gpuplan.afford.afford, document))
