"""HTTP routes for watched jobs: add, list, read with their notifications, remove."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.openapi_bodies import IDEMPOTENCY_HEADER, document_responses, takes
from gpuplan.api.http.path_ids import WatchId
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.watch import WatchDocument

router = APIRouter()


@router.post(
    "/v1/watches",
    summary="Watch a job or wait for machines",
    responses=document_responses("Watch"),
    openapi_extra=takes(WatchDocument, IDEMPOTENCY_HEADER),
)
async def add_watch(
    request: Request, gpuplan: OurGpuplan, workers: OurWorkers, long_workers: OurLongWorkers
) -> Response:
    """Plans the job now and after each refresh, or asks the clouds about the machines now and at each check, and notifies
    the channels of changes. The same watch sent twice is stored once.
    """
    body, document = await read_body(request)
    workers = long_workers if "machine" in document else workers  # clouds may take seconds to answer
    key = Idempotency.read(request, body, "")
    return json_answer(await workers.run(key.run, gpuplan, lambda: gpuplan.watches.add(document)))


@router.get("/v1/watches", summary="List the watched jobs", responses=document_responses("Watches"))
def watches(gpuplan: OurGpuplan) -> Response:
    """Oldest first, each with what was last told of it."""
    return json_answer(gpuplan.watches.listed())


@router.get(
    "/v1/watches/{watch_id}", summary="Read a watched job and its notifications", responses=document_responses("Watch")
)
def watch(watch_id: WatchId, gpuplan: OurGpuplan) -> Response:
    """Its notifications, the newest first, each with whether it has arrived."""
    return json_answer(gpuplan.watches.one(watch_id))


@router.delete("/v1/watches/{watch_id}", summary="Stop watching a job", responses=document_responses("Forgotten"))
def forget_watch(watch_id: WatchId, gpuplan: OurGpuplan) -> Response:
    """What was not sent yet is not sent."""
    return json_answer(gpuplan.watches.forget(watch_id))
