"""The HTTP route that reads configurations of other tools."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.import_request import ImportDocument

router = APIRouter()


@router.post(
    "/v1/import",
    summary="Read a configuration of another tool into a job",
    operation_id="import_config",
    responses=document_responses("ImportAnswer"),
    openapi_extra=takes(ImportDocument),
)
async def import_config(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """The formats of `gpuplan import`, as text. No file is read, and nothing is executed or looked up."""
    _, document = await read_body(request)
    return json_answer(await workers.run(gpuplan.imports.read, document))
