"""HTTP routes for runs: status and result of a run in any process, and cancellation."""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from gpuplan.api.http.openapi_bodies import document_responses
from gpuplan.api.http.path_ids import RunId
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.response_caching import json_answer, json_with_etag
from gpuplan.api.jobs.thread_pool import RunPool
from gpuplan.api.schemas.run import Run
from gpuplan.api.services.background_runs import Cancellation
from gpuplan.catalog.store.run_store import LIVE

router = APIRouter()
#: How often to poll a run.
POLL_SECONDS = 2
#: How often a waiting request checks whether the service is shutting down.
_LOOK_SECONDS = 0.25


async def the_pool(request: Request) -> RunPool:
    """The pool that executes runs."""
    pool: RunPool = request.app.state.pool
    return pool


OurPool = Annotated[RunPool, Depends(the_pool)]


async def wait_for(pool: RunPool, run_id: str, seconds: float, *, stopping: Callable[[], bool]) -> None:
    """Wait until the run has ended, at most this long; returns at once for a run of another process that cannot be
    observed.

    During shutdown it stops waiting: otherwise the process could not end.
    """
    ended = await anyio.to_thread.run_sync(pool.ended, run_id) if seconds > 0 else None
    if ended is None:
        return
    future, until = asyncio.wrap_future(ended), time.monotonic() + seconds
    while not future.done() and not stopping() and (left := until - time.monotonic()) > 0:
        # Not `wait_for`, which would cancel the future that others may await too.
        await asyncio.wait([future], timeout=min(left, _LOOK_SECONDS))


@router.get("/v1/runs/{run_id}", summary="Status and result of a run", responses=document_responses("Run", 304))
def run(request: Request, run_id: RunId, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """`status` is queued, running, done, failed or cancelled; the last three are final. Refreshes are runs too."""
    heartbeat = pool.heartbeat(run_id)
    answer = gpuplan.runs.one(run_id, progress=heartbeat.progress if heartbeat else None)
    return json_with_etag(request, answer, headers=_again(answer))


@router.delete("/v1/runs/{run_id}", summary="Cancel a run", responses=document_responses("Run", 409))
def cancel_run(run_id: RunId, gpuplan: OurGpuplan, pool: OurPool) -> Response:
    """The run ends within seconds as `cancelled` and stores the best plan found so far with its gap. A run that has
    ended does not change.
    """
    try:
        answer = gpuplan.runs.cancel(run_id)
    except Cancellation as error:
        raise Refused(409, error.faults[0].message) from error
    pool.cancel(run_id)
    return json_answer(answer, headers=_again(answer))


def _again(answer: Run) -> dict[str, str]:
    return {"Retry-After": str(POLL_SECONDS)} if answer.status in LIVE else {}
