"""Runs over HTTP: how far one is and what came of it, whichever process is at it; and cancelling."""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from api.http.caching import json_with_etag
from api.http.describe import document_responses
from api.http.plans import OurGpuplan, to_json
from api.http.problems import Refused
from api.questions.opened import Document
from api.questions.runs import Cancellation
from api.runs.pool import RunPool
from catalog.runs import LIVE

router = APIRouter()
#: When to look at a run again.
POLL_SECONDS = 2
#: How often one who waits here looks whether the service was told to stop.
_LOOK_SECONDS = 0.25


async def the_pool(request: Request) -> RunPool:
    """What executes runs."""
    pool: RunPool = request.app.state.pool
    return pool


OurPool = Annotated[RunPool, Depends(the_pool)]


async def wait_for(pool: RunPool, run_id: str, seconds: float, *, stopping: Callable[[], bool]) -> None:
    """Until the run has ended, or so many seconds; at once for a run of another process that nobody can watch.

    A service that is stopping waits for no run: the process could not end while somebody waits here.
    """
    ended = await anyio.to_thread.run_sync(pool.ended, run_id) if seconds > 0 else None
    if ended is None:
        return
    future, until = asyncio.wrap_future(ended), time.monotonic() + seconds
    while not future.done() and not stopping() and (left := until - time.monotonic()) > 0:
        # Not `wait_for`, which would cancel the future that others may be waiting for too.
        await asyncio.wait([future], timeout=min(left, _LOOK_SECONDS))


@router.get(
    "/v1/runs/{run_id}",
    summary="How far a run is, and what came of it",
    operation_id="run",
    responses=document_responses("Run", 404, 503) | {304: {"description": "Not Modified"}},
)
def run(request: Request, run_id: str, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """`status` is queued, running, done, failed or cancelled; the last three stay. Refreshes are runs too."""
    pulse = pool.pulse(run_id)
    found = gpuplan.run(run_id, progress=pulse.progress if pulse else None)
    return json_with_etag(request, found, headers=_again(found))


@router.delete(
    "/v1/runs/{run_id}",
    summary="Cancel a run",
    operation_id="cancel_run",
    responses=document_responses("Run", 404, 409, 503),
)
def cancel_run(run_id: str, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """It ends within seconds as `cancelled`, and keeps the best plan that it found with its gap. One that has ended stays."""
    try:
        found = gpuplan.cancel_run(run_id)
    except Cancellation as error:
        raise Refused(409, error.faults[0].message) from error
    pool.cancel(run_id)
    return Response(to_json(found), media_type="application/json", headers=_again(found))


def _again(found: Document) -> dict[str, str]:
    return {"Retry-After": str(POLL_SECONDS)} if found["status"] in LIVE else {}
