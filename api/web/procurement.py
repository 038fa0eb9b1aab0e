"""`/buy`: submit a forecast of jobs and see what to own, commit to and rent."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.plans import OurGpuplan, OurLongWorkers
from gpuplan.api.presentation.procurement import render_decision
from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.api.web.duplicate_submissions import idempotency_of
from gpuplan.api.web.examples import FORECAST
from gpuplan.api.web.form_bodies import read_form
from gpuplan.api.web.page_rendering import EXPECTED, PageRoute, render
from gpuplan.api.web.pasted_documents import document_form, sent_document, sent_text
from gpuplan.api.web.procurement_view import sweep_views, years_views
from gpuplan.api.web.text_sections import sections
from gpuplan.planner.model.procurement import ProcurementPlan, UnservedForecast
from gpuplan.planner.model.wire import wire

router = APIRouter(route_class=PageRoute, include_in_schema=False, dependencies=[Depends(needs("read"))])


class FormQuery(BaseModel):
    """Whether to fill in the example."""

    model_config = ConfigDict(extra="forbid")

    example: bool = False


@router.get("/buy")
def forecast_form(request: Request, query: Annotated[FormQuery, Query()]) -> Response:
    """Show the form, empty or with the example."""
    return document_form(request, "buy.html", FORECAST if query.example else "")


@router.post("/buy", dependencies=[Depends(needs("plan"))])
async def decide(request: Request, gpuplan: OurGpuplan, workers: OurLongWorkers) -> Response:
    """Decide and redirect to the decision. An unusable document is shown again with its faults."""
    form = await read_form(request)
    text = sent_text(form)

    def answer(document: Document) -> Document:
        gpuplan.audited.start("buy", request.scope.get("request_id", ""))
        decided: Document = wire(gpuplan.procurement.decide(document, save=True))
        return decided

    try:
        document = sent_document(form, name="the forecast")
        key = idempotency_of(form, scope="POST /buy")
        response = await workers.run(key.run, gpuplan, lambda: answer(document))
    except EXPECTED as error:
        return document_form(request, "buy.html", text, error)
    if "decision" not in response:
        return _result(request, gpuplan, response)
    return RedirectResponse(f"/buy/{response['decision']['id']}", status_code=303)


@router.get("/buy/{decision_id}")
def decision(request: Request, decision_id: Annotated[str, Path(max_length=200)], gpuplan: OurGpuplan) -> Response:
    """Show a saved decision."""
    return _result(request, gpuplan, gpuplan.runs.answer(decision_id, "buy"))


def _result(request: Request, gpuplan: Services, stored: Document) -> Response:
    decision = read_stored(ProcurementPlan, stored["decision"]) if "decision" in stored else None
    shown = decision or read_stored(UnservedForecast, stored["infeasible"])
    context = {
        "section": "Portfolio",
        "name": decision.name if decision else "No hardware can run this",
        "answer_sections": sections(render_decision(shown)),
        "years": years_views(decision) if decision else [],
        "sweeps": sweep_views(decision) if decision else [],
        "answer_id": decision.id if decision else None,
        "shareable": decision is not None and gpuplan.shares.may_share("run", decision.id),
        "answer_url": f"/v1/buy/{decision.id}" if decision else None,
    }
    return render(request, "buy_result.html", context)
