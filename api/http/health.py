"""HTTP routes for liveness, readiness and Prometheus metrics."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from gpuplan.api.http.authentication import whoever_asks
from gpuplan.api.http.openapi_bodies import document_responses
from gpuplan.api.http.problem_details import PROBLEM_JSON, RETRY_AFTER_SECONDS
from gpuplan.api.http.response_caching import json_answer, to_json
from gpuplan.api.observability.readiness import Health, HealthReport
from gpuplan.api.observability.service_metrics import exposition
from gpuplan.api.observability.store_metrics import StoreFigures
from gpuplan.api.security.identity import Identity

router = APIRouter()

#: The `/readyz` states of a service that should receive no requests.
_UNAVAILABLE = frozenset({"broken", "stopping"})


async def the_health(request: Request) -> Health:
    """The readiness of this process."""
    health: Health = request.app.state.health
    return health


async def the_figures(request: Request) -> StoreFigures:
    """The metrics of the store."""
    figures: StoreFigures = request.app.state.figures
    return figures


@router.get("/healthz", summary="Liveness: is the process alive?", responses=document_responses("Health"))
async def healthz() -> Response:
    """Checks nothing else: a broken database is no reason to restart the process."""
    return json_answer({"status": "alive"})


@router.get(
    "/readyz", summary="Readiness: can the service answer requests?", responses=document_responses("Health", 503)
)
def readyz(
    request: Request,
    health: Annotated[Health, Depends(the_health)],
    asker: Annotated[Identity | None, Depends(whoever_asks)],
) -> Response:
    """`ready`, or `degraded` if prices are older than they should be: the service still answers, and `why` gives the
    reason.

    503 if the store cannot be read or the service is shutting down. Checked at most once per second. If keys are
    required, a request without one sees only the status.
    """
    report = health.report()
    if asker is None:
        report = HealthReport(status=report.status, why=("send a key to read why",))
    document = report.document()
    if report.status not in _UNAVAILABLE:
        return json_answer(document)
    problem = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "; ".join(report.why),
        "checks": document["checks"],
        "request_id": request.scope.get("request_id", ""),
    }
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Response(to_json(problem), status_code=503, media_type=PROBLEM_JSON, headers=headers)


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "In the Prometheus text format"}},
)
def metrics(figures: Annotated[StoreFigures, Depends(the_figures)]) -> Response:
    """Requests, plans and their proofs since the process started, and the contents of the store as of a few seconds
    ago.
    """
    return Response(exposition(figures), media_type=CONTENT_TYPE_LATEST)
