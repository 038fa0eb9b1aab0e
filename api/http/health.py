"""Whether the service lives, and whether it can answer."""

from fastapi import APIRouter
from fastapi.responses import Response

from api.http.describe import document_responses
from api.http.plans import OurGpuplan, to_json

router = APIRouter()


@router.get("/healthz", summary="Is the process alive?", operation_id="healthz", responses=document_responses("Health"))
async def healthz() -> Response:
    """Touches nothing else: a broken database is no reason to restart the process."""
    return Response(to_json({"status": "alive"}), media_type="application/json")


@router.get(
    "/readyz",
    summary="Can it answer?",
    operation_id="readyz",
    responses=document_responses("Health", 503),
)
def readyz(gpuplan: OurGpuplan) -> Response:
    """Reads the store: which snapshot is loaded and how old its newest price is. 503 where it cannot."""
    return Response(to_json(gpuplan.readiness()), media_type="application/json")
