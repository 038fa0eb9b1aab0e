"""HTTP routes for runs on spot machines: the policy and its decisions, and a replay over traces in the body.

An unreadable document is refused immediately, not after the requests that wait for the same thread.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.spot_policy_requests import LadderQuestion, PolicyQuestion, SimulationQuestion

router = APIRouter()


@router.post(
    "/v1/run-policies",
    summary="Decide what to do now in a run on spot machines",
    operation_id="run_policy",
    responses=document_responses("RunPolicy", 404),
    openapi_extra=takes(PolicyQuestion),
)
async def run_policy(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """With `now`: stay, checkpoint, move, wait or switch to on-demand, with the reason. Without: the expected cost and
    time of the policy.
    """
    document = (await read_body(request))[1]
    await quick.run(gpuplan.spot_policies.check_run_policy, document)
    return json_answer(await workers.run(gpuplan.spot_policies.run_policy, document))


@router.post(
    "/v1/simulations",
    summary="Simulate the cost of a run on spot machines",
    operation_id="simulation",
    responses=document_responses("Simulation", 404),
    openapi_extra=takes(SimulationQuestion),
)
async def simulation(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """Replays many starts in the traces of the body, compared with simple rules and the omniscient optimum."""
    document = (await read_body(request))[1]
    await quick.run(gpuplan.spot_policies.check_simulation, document)
    return json_answer(await workers.run(gpuplan.spot_policies.simulation, document))


@router.post(
    "/v1/ladder-simulations",
    summary="Replay the capacity ladder of a plan over availability traces",
    operation_id="ladder_simulation",
    responses=document_responses("LadderSimulation", 404),
    openapi_extra=takes(LadderQuestion),
)
async def ladder_simulation(
    request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers
) -> Response:
    """What each choice would have given, when and at what cost, beside the first choice alone and on-demand."""
    document = (await read_body(request))[1]
    await quick.run(gpuplan.spot_policies.check_ladder_simulation, document)
    return json_answer(await workers.run(gpuplan.spot_policies.ladder_simulation, document))
