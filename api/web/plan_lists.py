"""The pages of recent plans and watched jobs, and of plans side by side."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.plans import OurGpuplan
from gpuplan.api.presentation.phrases import name_in_list
from gpuplan.api.web.page_rendering import PageRoute, render
from gpuplan.api.web.plan_comparison import MOST_COMPARED, MOST_RECENT, compared_rows, recent_rows

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/plans")
def plans(request: Request, gpuplan: OurGpuplan) -> Response:
    """List the newest plans with notes, and the watched jobs with their history, that the requester may read."""
    return _list(request, gpuplan)


def _list(request: Request, gpuplan: OurGpuplan, *, marked: Sequence[str] = (), refusal: str = "") -> Response:
    """The page of the list, with the plans that were marked and why they cannot be compared."""
    context = {
        "section": "Plans",
        "marked": marked,
        "refusal": refusal,
        "plans": recent_rows(gpuplan.plans.recent(MOST_RECENT)),
        "notes": gpuplan.notes.by_plan(),
        "watches": [gpuplan.watches.one(watch.id) for watch in gpuplan.watches.listed().watches],
    }
    return render(request, "plans.html", context, status=422 if refusal else 200)


class CompareQuery(BaseModel):
    """The ids of the plans."""

    model_config = ConfigDict(extra="forbid")

    plan: list[str] = Field(default_factory=list)


@router.get("/compare")
def compare(request: Request, query: Annotated[CompareQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show two to four plans side by side; the list again where others are marked."""
    ids = tuple(dict.fromkeys(query.plan))
    if not 2 <= len(ids) <= MOST_COMPARED:
        marked = "No plan is marked" if not ids else f"{len(ids)} {'plan is' if len(ids) == 1 else 'plans are'} marked"
        return _list(request, gpuplan, marked=ids, refusal=f"{marked}; mark 2 to {MOST_COMPARED} to compare them")
    answers = [gpuplan.plans.saved(plan_id) for plan_id in ids]
    names = [name_in_list(answer.body.job) for answer in answers]
    context = {"section": "Plans", "names": list(zip(ids, names, strict=True)), "rows": compared_rows(answers)}
    return render(request, "compare.html", context)
