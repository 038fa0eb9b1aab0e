"""Watched jobs over HTTP: added, listed, read with what was told of them, removed."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.app import Document
from api.http.bodies import read_body
from api.http.describe import WATCH_OPERATION, document_responses
from api.http.idempotency import Idempotency
from api.http.plans import OurGpuplan, OurWorkers, to_json

router = APIRouter()


@router.post(
    "/v1/watches",
    summary="Watch a job",
    operation_id="add_watch",
    responses=document_responses("Watch", 400, 413, 415, 503),
    openapi_extra=WATCH_OPERATION,
)
async def add_watch(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Planned now and after each refresh; its channels are told what changed. The same watch twice is one."""
    body, document = await read_body(request)
    key = Idempotency.read(request, body, "")

    def answer() -> Document:
        return gpuplan.add_watch(document)

    return Response(to_json(await workers.run(key.once, gpuplan, answer)), media_type="application/json")


@router.get(
    "/v1/watches",
    summary="Every watched job",
    operation_id="watches",
    responses=document_responses("Watches", 503),
)
def watches(gpuplan: OurGpuplan) -> Response:
    """Oldest first, each with what was last told of it."""
    return Response(to_json(gpuplan.watches()), media_type="application/json")


@router.get(
    "/v1/watches/{watch_id}",
    summary="One watched job and all that was told of it",
    operation_id="watch",
    responses=document_responses("Watch", 404, 503),
)
def watch(watch_id: str, gpuplan: OurGpuplan) -> Response:
    """Its notifications, the newest first, each with whether it has arrived."""
    return Response(to_json(gpuplan.watch(watch_id)), media_type="application/json")


@router.delete(
    "/v1/watches/{watch_id}",
    summary="Watch a job no longer",
    operation_id="forget_watch",
    responses=document_responses("Forgotten", 404, 503),
)
def forget_watch(watch_id: str, gpuplan: OurGpuplan) -> Response:
    """What was not sent yet is not sent."""
    return Response(to_json(gpuplan.forget_watch(watch_id)), media_type="application/json")
