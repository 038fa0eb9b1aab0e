"""Why a plan is what it is, whether it is right, and what to do with a job under way, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from api.http.bodies import read_body
from api.http.caching import to_json
from api.http.describe import document_responses
from api.http.describe_explain import REPLAN_OPERATION, VERIFY_OPERATION, WHY_OPERATION
from api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers

router = APIRouter()


class WhyQuery(BaseModel):
    """What may be said about an explanation or a replan outside the question."""

    snapshot: str | None = None


@router.post(
    "/v1/why",
    summary="Why the plan is what it is, and why not something else",
    operation_id="why",
    responses=document_responses("WhyAnswer", 400, 404, 413, 415, 503),
    openapi_extra=WHY_OPERATION,
)
async def why(
    request: Request, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """What binds, what a little more would change, what `not` costs more and at which price it would win."""
    document = (await read_body(request))[1]
    return Response(
        to_json(await workers.run(gpuplan.why, document, snapshot=query.snapshot)), media_type="application/json"
    )


@router.post(
    "/v1/replan",
    summary="What to do with a job that is under way",
    operation_id="replan",
    responses=document_responses("ReplanAnswer", 400, 404, 413, 415, 503),
    openapi_extra=REPLAN_OPERATION,
)
async def replan(
    request: Request, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Go on, move, or run on more or fewer machines: the least cost from now, beside going on as it is."""
    document = (await read_body(request))[1]
    return Response(
        to_json(await workers.run(gpuplan.replan, document, snapshot=query.snapshot)), media_type="application/json"
    )


@router.post(
    "/v1/verify",
    summary="Is a plan right?",
    operation_id="verify",
    responses=document_responses("VerificationAnswer", 400, 413, 415, 503),
    openapi_extra=VERIFY_OPERATION,
)
async def verify(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """An answer of `/v1/plans` worked out anew from its snapshot by independent code; each figure that is wrong is named."""
    document = (await read_body(request))[1]
    # What cannot be read is refused at once, not after the questions that wait for the same thread.
    await quick.run(gpuplan.check_verify, document)
    return Response(to_json(await workers.run(gpuplan.verify, document)), media_type="application/json")
