"""Runs on interruptible machines over HTTP: the policy and its decisions, and a replay over traces in the body.

A document that cannot be read is refused at once, not after the questions that wait for the same thread.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.http.bodies import read_body
from api.http.caching import to_json
from api.http.describe import document_responses
from api.http.describe_long import POLICY_OPERATION, SIMULATION_OPERATION
from api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers

router = APIRouter()


@router.post(
    "/v1/run-policies",
    summary="What to do now in a run on interruptible machines",
    operation_id="run_policy",
    responses=document_responses("RunPolicy", 400, 404, 413, 415, 503),
    openapi_extra=POLICY_OPERATION,
)
async def run_policy(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """With `now`: stay, checkpoint, move, wait, or go on-demand, and why. Without: what the policy expects."""
    document = (await read_body(request))[1]
    await quick.run(gpuplan.check_run_policy, document)
    return Response(to_json(await workers.run(gpuplan.run_policy, document)), media_type="application/json")


@router.post(
    "/v1/simulations",
    summary="What a run on interruptible machines would have cost",
    operation_id="simulation",
    responses=document_responses("Simulation", 400, 404, 413, 415, 503),
    openapi_extra=SIMULATION_OPERATION,
)
async def simulation(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """Over many starts in the traces of the body, beside simple rules and the omniscient optimum."""
    document = (await read_body(request))[1]
    await quick.run(gpuplan.check_simulation, document)
    return Response(to_json(await workers.run(gpuplan.simulation, document)), media_type="application/json")
