"""Own, commit or rent over HTTP: a forecast in, a decision out, which can be read again."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from api.http.bodies import read_body
from api.http.caching import json_with_etag
from api.http.describe import document_responses
from api.http.describe_long import BUY_OPERATION
from api.http.idempotency import Idempotency
from api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers, to_json
from api.questions.opened import Document

router = APIRouter()


class BuyQuery(BaseModel):
    """What may be said about a decision outside the forecast."""

    snapshot: str | None = None


@router.post(
    "/v1/buy",
    summary="What to buy, commit to and rent for a forecast of jobs",
    operation_id="buy",
    responses=document_responses("DecisionAnswer", 400, 404, 413, 415, 503),
    openapi_extra=BUY_OPERATION,
)
async def buy(
    request: Request,
    query: Annotated[BuyQuery, Query()],
    gpuplan: OurGpuplan,
    quick: OurWorkers,
    workers: OurLongWorkers,
) -> Response:
    """Also `200` when no hardware can run a job: that is an answer, with the reason."""
    body, document = await read_body(request)
    key = Idempotency.read(request, body, query.model_dump_json())
    # What cannot be read is refused at once, not after the questions that wait for the same thread.
    await quick.run(gpuplan.check_buy, document, snapshot=query.snapshot)

    def answer() -> Document:
        gpuplan.count_plan("buy", request.scope.get("request_id", ""))
        return gpuplan.buy(document, snapshot=query.snapshot, save=True)

    found = await workers.run(key.once, gpuplan, answer)
    where = {"Content-Location": f"/v1/buy/{found['decision']['id']}"} if "decision" in found else {}
    return Response(to_json(found), media_type="application/json", headers=where)


@router.get(
    "/v1/buy/{decision_id}",
    summary="A decision made before",
    operation_id="saved_decision",
    responses=document_responses("DecisionAnswer", 404, 503) | {304: {"description": "Not Modified"}},
)
def saved_decision(request: Request, decision_id: str, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, `meta` included."""
    return json_with_etag(request, gpuplan.run_answer(decision_id, "buy"))
