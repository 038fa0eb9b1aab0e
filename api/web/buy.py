"""`/buy`: what to own, commit to and rent for a forecast of jobs; a forecast is pasted or uploaded, its decision kept."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from api.app import Document, Gpuplan
from api.http.access import needs
from api.http.plans import OurGpuplan, OurLongWorkers
from api.render.buy import render_decision
from api.web.forecast_example import EXAMPLE
from api.web.forms import read_form
from api.web.once import new_number, once
from api.web.pages import EXPECTED, PageRoute, render
from api.web.pasted import refusal, sent_document, sent_text
from api.web.told import sections

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])


class FormQuery(BaseModel):
    """Whether the form is filled with the example."""

    model_config = ConfigDict(extra="forbid")

    example: bool = False


@router.get("/buy")
def forecast_form(request: Request, query: Annotated[FormQuery, Query()]) -> Response:
    """The form, empty or with an example."""
    return _form(request, EXAMPLE if query.example else "")


@router.post("/buy", dependencies=[Depends(needs("plan"))])
async def decide(request: Request, gpuplan: OurGpuplan, workers: OurLongWorkers) -> Response:
    """Decide and go to the decision's own address; what cannot be used comes back as it was sent."""
    form = await read_form(request)
    text = sent_text(form)

    def answer(document: Document) -> Document:
        gpuplan.count_plan("buy", request.scope.get("request_id", ""))
        return gpuplan.buy(document, save=True)

    try:
        document = sent_document(form, name="the forecast")
        key = once(form, scope="POST /buy")
        found = await workers.run(key.once, gpuplan, lambda: answer(document))
    except EXPECTED as error:
        return _form(request, text, error)
    if "decision" not in found:
        return _result(request, gpuplan, found)
    return RedirectResponse(f"/buy/{found['decision']['id']}", status_code=303)


@router.get("/buy/{decision_id}")
def decision(request: Request, decision_id: Annotated[str, Path(max_length=200)], gpuplan: OurGpuplan) -> Response:
    """A decision made before."""
    return _result(request, gpuplan, gpuplan.run_answer(decision_id, "buy"))


def _result(request: Request, gpuplan: Gpuplan, answer: Document) -> Response:
    body = answer.get("decision")
    context = {
        "section": "Portfolio",
        "name": body["name"] if body else "No hardware can run this",
        "told": sections(render_decision(answer)),
        "answer_id": body["id"] if body else None,
        "shareable": body is not None and gpuplan.may_share("run", body["id"]),
        "answer_url": f"/v1/buy/{body['id']}" if body else None,
    }
    return render(request, "buy_result.html", context)


def _form(request: Request, text: str, error: Exception | None = None) -> Response:
    refused = None if error is None else refusal(error, text)
    context: Document = {"section": "Portfolio", "document": text, "once": new_number()}
    context |= {"faults": [] if refused is None else refused.mending}
    if refused is None:
        return render(request, "buy.html", context)
    return render(request, "buy.html", context, status=refused.status, headers=refused.headers)
