"""The pages of recent plans and watched jobs, and of plans side by side."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.presentation.phrases import job_name
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.api.web.plan_comparison import MOST_RECENT, compared_rows, recent_rows, to_compare

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/plans")
def plans(request: Request, gpuplan: OurGpuplan) -> Response:
    """List the newest plans with notes, and the watched jobs with their history, that the requester may read."""
    context = {
        "section": "Plans",
        "plans": recent_rows(gpuplan.plans.recent(MOST_RECENT)),
        "notes": gpuplan.notes.by_plan(),
        "watches": [gpuplan.watches.one(watch.id) for watch in gpuplan.watches.listed().watches],
    }
    return render(request, "plans.html", context)


class CompareQuery(BaseModel):
    """The ids of the plans."""

    model_config = ConfigDict(extra="forbid")

    plan: list[str] = Field(default_factory=list)


@router.get("/compare")
def compare(request: Request, query: Annotated[CompareQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show two to four plans side by side."""
    ids = to_compare(query.plan)
    answers = [gpuplan.plans.saved(plan_id) for plan_id in ids]
    names = [job_name(answer.body.job) for answer in answers]
    context = {"section": "Plans", "names": list(zip(ids, names, strict=True)), "rows": compared_rows(answers)}
    return render(request, "compare.html", context)
