"""Whether the service lives, whether it can answer, and its figures for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.http.access import whoever_asks
from api.http.describe import document_responses, problem_responses
from api.http.plans import to_json
from api.http.problems import PROBLEM_JSON, RETRY_AFTER_SECONDS
from api.identity.who import Identity
from api.telemetry.health import Health
from api.telemetry.metrics import exposition
from api.telemetry.store_figures import StoreFigures

router = APIRouter()

#: What `/readyz` says of a service that should be asked nothing.
_UNAVAILABLE = frozenset({"broken", "stopping"})


async def the_health(request: Request) -> Health:
    """Whether this process can answer."""
    health: Health = request.app.state.health
    return health


async def the_figures(request: Request) -> StoreFigures:
    """What the store says of itself."""
    figures: StoreFigures = request.app.state.figures
    return figures


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
def readyz(
    request: Request,
    health: Annotated[Health, Depends(the_health)],
    asker: Annotated[Identity | None, Depends(whoever_asks)],
) -> Response:
    """`ready`, or `degraded` where prices are older than they should be: it answers all the same, and `why` says what.

    503 where the store cannot be read or the service was told to stop. Looked up at most once a second. Where keys are
    needed, whoever shows none is told the status alone.
    """
    said = health.report()
    if asker is None:
        said = {"status": said["status"], "why": ["show a key to read why"], "checks": {}}
    if said["status"] not in _UNAVAILABLE:
        return Response(to_json(said), media_type="application/json")
    problem = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "; ".join(said["why"]),
        "checks": said["checks"],
        "request_id": request.scope.get("request_id", ""),
    }
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Response(to_json(problem), status_code=503, media_type=PROBLEM_JSON, headers=headers)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    operation_id="metrics",
    response_class=PlainTextResponse,
    responses=problem_responses() | {200: {"description": "In Prometheus' text format"}},
)
def metrics(figures: Annotated[StoreFigures, Depends(the_figures)]) -> Response:
    """Requests, plans and their proofs as counted since the start, and what the store holds as of a few seconds ago."""
    return Response(exposition(figures), media_type=CONTENT_TYPE_LATEST)
