"""HTTP routes for costs by month: read, export, budgets of teams, and the plans that count."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from gpuplan.api.http.openapi_bodies import document_responses
from gpuplan.api.http.path_ids import PlanId
from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.http.response_caching import json_answer, to_csv
from gpuplan.api.presentation.costs import CSV_COLUMNS, csv_rows

router = APIRouter()

_CSV = {"text/csv": {"schema": {"type": "string", "examples": [",".join(CSV_COLUMNS) + "\r\n"]}}}


class CostsQuery(BaseModel):
    """The month and what costs are added up by."""

    month: str | None = Field(None, description="In UTC, as 2026-11; default: the current month")
    by: str | None = Field(None, description="team (default), project, provider or kind")


class CostsExportQuery(CostsQuery):
    """Also the format of the file."""

    format: Literal["csv", "focus"] = Field("csv", description="Rows of the month, or the columns of FOCUS")


@router.get("/v1/costs", summary="Planned and actual costs of a month", responses=document_responses("Costs"))
def costs(query: Annotated[CostsQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Of the plans that count and that the requester may read, with what is left of each team's budget."""
    return json_answer(gpuplan.costs.of_month(query.month, query.by))


@router.get(
    "/v1/costs/export",
    summary="The costs of a month as a CSV file",
    response_class=Response,
    responses={200: {"description": "The file", "content": _CSV}},
)
def export_costs(query: Annotated[CostsExportQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """`csv`: one line per row of `GET /v1/costs`; `focus`: the planned charges as a FOCUS dataset."""
    if query.format == "focus":
        body, name = gpuplan.costs.focus(query.month).encode(), "costs.focus.csv"
    else:
        answer = gpuplan.costs.of_month(query.month, query.by)
        body, name = to_csv(CSV_COLUMNS, csv_rows(answer)), "costs.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return Response(body, media_type="text/csv", headers=headers)


@router.put(
    "/v1/costs/plans/{plan_id}", summary="Count a plan in the costs", responses=document_responses("PlanInCosts")
)
def adopt_plan(plan_id: PlanId, gpuplan: OurGpuplan) -> Response:
    """From now on it counts in the costs of its months; so does a plan with a report on its run."""
    return json_answer(gpuplan.costs.adopt(plan_id))


@router.delete(
    "/v1/costs/plans/{plan_id}",
    summary="Count a plan in the costs no longer",
    responses=document_responses("PlanInCosts"),
)
def drop_plan(plan_id: PlanId, gpuplan: OurGpuplan) -> Response:
    """The plan and the reports on its runs stay stored."""
    return json_answer(gpuplan.costs.drop(plan_id))
