"""Refreshes over HTTP: one is started and goes on in the background, and its report is read when it has ended."""

import logging
import queue
import threading
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.app import Document, Gpuplan
from api.http.bodies import read_body
from api.http.describe import REFRESH_OPERATION, document_responses
from api.http.idempotency import Idempotency
from api.http.plans import OurGpuplan, OurWorkers, to_json
from api.http.problems import RETRY_AFTER_SECONDS, Refused
from api.identity.asking import Asking, asked_by, record, uncounted
from api.runs.pool import Busy
from catalog.errors import StoreFailure
from catalog.refresh_lock import RefreshRunning

router = APIRouter()
log = logging.getLogger("gpuplan.refresh")


def start(gpuplan: Gpuplan, document: Document) -> Document:
    """Begin a refresh, and say its id once nothing but the clouds and the store can fail it.

    The thread is a daemon: a service that is stopped does not wait for the clouds, and what was not written by then
    leaves the snapshot before as it was. On PostgreSQL the queue's workers do it instead, and nothing is lost then.
    Raises `RefreshRunning`, `UnusableInput`, `Busy` or `StoreFailure` if it cannot begin.
    """
    if gpuplan.has_queue:
        # A worker writes down what came of it, and knows nobody who asked.
        answer = gpuplan.begin_shared_refresh(document)
        gpuplan.store.access.record(record("refresh.start", answer["id"], datetime.now(UTC)))
        return answer
    begun: queue.SimpleQueue[Document | Exception] = queue.SimpleQueue()
    # What comes of it is recorded as theirs who ask. Of the rest of this call's context nothing goes along: its time
    # limit is one for answers.
    args = (gpuplan, document, begun, uncounted())
    threading.Thread(target=_refresh, args=args, name="refresh", daemon=True).start()
    said = begun.get()
    if isinstance(said, Exception):
        raise said
    return said


def _refresh(
    gpuplan: Gpuplan, document: Document, begun: "queue.SimpleQueue[Document | Exception]", asking: Asking | None
) -> None:
    if asking is not None:
        asked_by(asking)
    ids: list[str] = []

    def began(said: Document) -> None:
        ids.append(said["id"])
        begun.put(said)

    try:
        gpuplan.refresh(document, began=began)
    except Exception as error:  # the edge of a thread: nobody else would hear of it
        if not ids:
            begun.put(error)
            return
        log.exception("refresh %s failed", ids[0])
        try:
            gpuplan.store.access.record(record("refresh", ids[0], datetime.now(UTC), outcome="failed"))
        except StoreFailure as failure:
            log.warning("that refresh %s failed could not be recorded: %s", ids[0], failure)


_STARTED = document_responses("Refresh", 400, 409, 413, 415, 503)
_STARTED[202] = _STARTED.pop(200) | {"description": "It has begun; Location says where its report will be"}


@router.post(
    "/v1/refreshes",
    status_code=202,
    summary="Pull live prices",
    operation_id="start_refresh",
    responses=_STARTED,
    openapi_extra=REFRESH_OPERATION,
)
async def start_refresh(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Begins at once and goes on in the background; `409` while another one runs, whoever started it."""
    body, document = await read_body(request) if _has_body(request) else (b"", {})
    key = Idempotency.read(request, body, "")

    def answer() -> Document:
        return start(gpuplan, document)

    try:
        begun = await workers.run(key.once, gpuplan, answer)
    except RefreshRunning as error:
        raise Refused(409, str(error)) from error
    except Busy as error:
        raise Refused(503, str(error), headers={"Retry-After": str(RETRY_AFTER_SECONDS)}) from error
    headers = {"Location": f"/v1/refreshes/{begun['id']}"}
    return Response(to_json(begun), status_code=202, media_type="application/json", headers=headers)


def _has_body(request: Request) -> bool:
    """Nothing at all is a wish too: every cloud, as usual."""
    headers = request.headers
    return "transfer-encoding" in headers or "content-type" in headers or headers.get("content-length", "0") != "0"


@router.get(
    "/v1/refreshes",
    summary="What the last refreshes did, in short",
    operation_id="refreshes",
    responses=document_responses("Refreshes", 503),
)
def refreshes(gpuplan: OurGpuplan) -> Response:
    """Newest first; those that have ended."""
    return Response(to_json(gpuplan.refreshes()), media_type="application/json")


@router.get(
    "/v1/refreshes/{refresh_id}",
    summary="What one refresh did, or how far it is",
    operation_id="refresh",
    responses=document_responses("Refresh", 404, 503),
)
def refresh(refresh_id: str, gpuplan: OurGpuplan) -> Response:
    """`status` is running, done (then with the whole report) or failed. Whichever process refreshes this store."""
    return Response(to_json(gpuplan.refresh_report(refresh_id)), media_type="application/json")
