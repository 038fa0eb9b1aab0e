"""HTTP routes to explain a plan, verify it, and replan a running job."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.openapi_bodies import document_responses, takes
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer
from gpuplan.api.schemas.replan import ReplanDocument
from gpuplan.api.schemas.saved_answer import AnswerDocument
from gpuplan.api.schemas.why import WhyDocument

router = APIRouter()


class WhyQuery(BaseModel):
    """Query parameters of an explanation or a replan."""

    snapshot: str | None = Field(None, description="Use the prices of this snapshot, not of the current one")


@router.post(
    "/v1/why",
    summary="Explain a plan, and why it does not use something else",
    operation_id="why",
    responses=document_responses("WhyAnswer", 404),
    openapi_extra=takes(WhyDocument),
)
async def why(
    request: Request, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """The binding constraints, the effect of relaxing each, the extra cost of `not`, and the price at which it would be
    chosen.
    """
    document = (await read_body(request))[1]
    return json_answer(await workers.run(gpuplan.explanations.why, document, snapshot=query.snapshot))


@router.post(
    "/v1/replan",
    summary="Replan a running job",
    operation_id="replan",
    responses=document_responses("ReplanAnswer", 404),
    openapi_extra=takes(ReplanDocument),
)
async def replan(
    request: Request, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Continue, move, or run on more or fewer machines: the lowest cost from now, compared with continuing unchanged."""
    document = (await read_body(request))[1]
    return json_answer(await workers.run(gpuplan.replanning.replan, document, snapshot=query.snapshot))


@router.post(
    "/v1/verify",
    summary="Verify a plan",
    operation_id="verify",
    responses=document_responses("VerificationAnswer"),
    openapi_extra=takes(AnswerDocument),
)
async def verify(request: Request, gpuplan: OurGpuplan, quick: OurWorkers, workers: OurLongWorkers) -> Response:
    """Independent code recomputes an answer of `/v1/plans` from its snapshot and names each wrong figure."""
    document = (await read_body(request))[1]
    # What cannot be read is refused at once, not after the questions that wait for the same thread.
    await quick.run(gpuplan.verification.check, document)
    return json_answer(await workers.run(gpuplan.verification.verify, document))
