"""HTTP routes for refreshes: start one in the background, and read its report when it has ended."""

import logging
import queue
import threading
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.openapi_bodies import IDEMPOTENCY_HEADER, document_responses, takes
from gpuplan.api.http.path_ids import RefreshId
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.http.problem_details import RETRY_AFTER_SECONDS, Refused
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.jobs.thread_pool import Busy
from gpuplan.api.schemas.refresh import RefreshDocument
from gpuplan.api.schemas.refresh_answers import RefreshWithoutReport
from gpuplan.api.security.authorization import Requester, asked_by, record, uncounted
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.refresh_lock import RefreshRunning

router = APIRouter()
log = logging.getLogger("gpuplan.refresh")


def start(gpuplan: Services, document: Document) -> RefreshWithoutReport:
    """Begin a refresh, and say its id once nothing but the clouds and the store can fail it.

    The thread is a daemon: a service that shuts down does not wait for the clouds, and an unfinished refresh leaves the
    previous snapshot unchanged. On PostgreSQL the workers of the queue run the refresh, and a shutdown loses nothing.
    Raises `RefreshRunning`, `UnusableInput`, `Busy` or `StoreFailure` if it cannot start.
    """
    if gpuplan.context.has_queue:
        # A worker writes down what came of it, and knows nobody who asked.
        answer = gpuplan.refreshes.begin_shared(document)
        gpuplan.store.access.record(record("refresh.start", answer.id, datetime.now(UTC)))
        return answer
    begun: queue.SimpleQueue[RefreshWithoutReport | Exception] = queue.SimpleQueue()
    # Record the result under the requester. Copy nothing else of this call's context: its time limit applies to
    # responses only.
    args = (gpuplan, document, begun, uncounted())
    threading.Thread(target=_refresh, args=args, name="refresh", daemon=True).start()
    outcome = begun.get()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _refresh(
    gpuplan: Services,
    document: Document,
    begun: "queue.SimpleQueue[RefreshWithoutReport | Exception]",
    requester: Requester | None,
) -> None:
    if requester is not None:
        asked_by(requester)
    ids: list[str] = []

    def began(started: RefreshWithoutReport) -> None:
        ids.append(started.id)
        begun.put(started)

    try:
        gpuplan.refreshes.refresh(document, began=began)
    except Exception as error:  # the edge of a thread: nobody else would hear of it
        if not ids:
            begun.put(error)
            return
        log.exception("refresh %s failed", ids[0])
        try:
            gpuplan.store.access.record(record("refresh", ids[0], datetime.now(UTC), outcome="failed"))
        except StoreFailure as failure:
            log.warning("that refresh %s failed could not be recorded: %s", ids[0], failure)


_STARTED = document_responses("Refresh", 409)
_STARTED[202] = _STARTED.pop(200) | {"description": "The refresh has started; Location is the address of its report"}


@router.post(
    "/v1/refreshes",
    status_code=202,
    summary="Refresh prices from the clouds",
    responses=_STARTED,
    openapi_extra=takes(RefreshDocument, IDEMPOTENCY_HEADER, required=False),
)
async def start_refresh(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Starts immediately and continues in the background; `409` while another refresh runs on this store."""
    body, document = await read_body(request) if _has_body(request) else (b"", {})
    key = Idempotency.read(request, body, "")
    try:
        begun = await workers.run(key.run, gpuplan, lambda: start(gpuplan, document))
    except RefreshRunning as error:
        raise Refused(409, str(error)) from error
    except Busy as error:
        raise Refused(503, str(error), headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
    headers = {"Location": f"/v1/refreshes/{begun['id']}"}
    return json_answer(begun, status=202, headers=headers)


def _has_body(request: Request) -> bool:
    """An empty body is valid: it refreshes all configured clouds."""
    headers = request.headers
    return "transfer-encoding" in headers or "content-type" in headers or headers.get("content-length", "0") != "0"


@router.get("/v1/refreshes", summary="List the last refreshes", responses=document_responses("Refreshes"))
def refreshes(gpuplan: OurGpuplan) -> Response:
    """Newest first; those that have ended."""
    return json_answer(gpuplan.refreshes.listed())


@router.get(
    "/v1/refreshes/{refresh_id}", summary="Report or progress of one refresh", responses=document_responses("Refresh")
)
def refresh(refresh_id: RefreshId, gpuplan: OurGpuplan) -> Response:
    """`status` is running, done (then with the whole report) or failed. Whichever process refreshes this store."""
    return json_answer(gpuplan.refreshes.report(refresh_id))
