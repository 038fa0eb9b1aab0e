"""HTTP routes for procurement: decide from a forecast what to own, commit to or rent, and read saved decisions."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gpuplan.api.http.idempotency import Idempotency
from gpuplan.api.http.openapi_bodies import IDEMPOTENCY_HEADER, document_responses, takes
from gpuplan.api.http.operations import SnapshotQuery
from gpuplan.api.http.path_ids import DecisionId
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers, OurWorkers
from gpuplan.api.http.request_bodies import read_body
from gpuplan.api.http.response_caching import json_answer, json_with_etag
from gpuplan.api.schemas.forecast import ForecastDocument
from gpuplan.planner.model.procurement import DecisionAnswer

router = APIRouter()


@router.post(
    "/v1/buy",
    summary="Decide what to buy, commit to and rent for a forecast of jobs",
    responses=document_responses("DecisionAnswer", 404),
    openapi_extra=takes(ForecastDocument, IDEMPOTENCY_HEADER),
)
async def buy(
    request: Request,
    query: Annotated[SnapshotQuery, Query()],
    gpuplan: OurGpuplan,
    quick: OurWorkers,
    workers: OurLongWorkers,
) -> Response:
    """Also `200` if no hardware can run a job: the answer then has the reason."""
    body, document = await read_body(request)
    key = Idempotency.read(request, body, query.model_dump_json())
    # What cannot be read is refused at once, not after the questions that wait for the same thread.
    await quick.run(gpuplan.procurement.check, document, snapshot=query.snapshot)

    def answer() -> DecisionAnswer:
        gpuplan.audited.start("buy", request.scope.get("request_id", ""))
        return gpuplan.procurement.decide(document, snapshot=query.snapshot, save=True)

    decision = await workers.run(key.run, gpuplan, answer)
    where = {"Content-Location": f"/v1/buy/{decision['decision']['id']}"} if "decision" in decision else {}
    return json_answer(decision, headers=where)


@router.get(
    "/v1/buy/{decision_id}", summary="Read a saved decision", responses=document_responses("DecisionAnswer", 304)
)
def saved_decision(request: Request, decision_id: DecisionId, gpuplan: OurGpuplan) -> Response:
    """The answer as it was given, `meta` included."""
    return json_with_etag(request, gpuplan.runs.answer(decision_id, "buy"))
