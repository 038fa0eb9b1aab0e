"""The page of a plan: a job is described, planned, looked at, and asked about; every answer has an address to share."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.app import Document, Gpuplan
from api.http.access import needs
from api.http.plans import OurGpuplan, OurWorkers
from api.questions.opened import body_of
from api.web.examples import EXAMPLES
from api.web.forms import Sent, read_form
from api.web.job_fields import PARTS, suggestions
from api.web.job_form import Shown, document_of, filled, with_faults, with_pasted_faults
from api.web.pages import EXPECTED, PageRoute, refusal_of, render
from api.web.pasted import sent_text
from api.web.plan_exports import wishable
from api.web.plan_view import infeasible_view, planned_view
from api.web.what_if import any_speed, as_alternative, at_point, by_deadline, by_way_out, from_now
from catalog.documents import read_document
from catalog.errors import Fault, UnusableInput
from catalog.quantities import MAX_HOURS

router = APIRouter(route_class=PageRoute, include_in_schema=False)


#: What a download was asked for with: format and phase, and what no plan holds.
NO_WISHES: Mapping[str, str] = dict.fromkeys(("to", "command", "image", "reservation", "run_limit", "checkpoints"), "")


class HomeQuery(BaseModel):
    """What the form may be filled with: an example by name, or the job of a saved plan."""

    model_config = ConfigDict(extra="forbid")

    example: str | None = None
    plan: str | None = None


@router.get("/")
def home(request: Request, query: Annotated[HomeQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """The form for a job, empty or filled."""
    now = datetime.now(UTC)
    if query.plan is not None:
        return job_page(request, filled(body_of(gpuplan.saved_plan(query.plan))["job"], now=now))
    if query.example is not None:
        if query.example not in EXAMPLES:
            raise UnusableInput.at("example", message=f"is not known; it is one of {', '.join(EXAMPLES)}")
        return job_page(request, filled(EXAMPLES[query.example][1], now=now))
    return job_page(request, Shown.blank())


def job_page(request: Request, shown: Shown, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The page with the form as it is to be shown."""
    context = {
        "section": "Plan",
        "parts": PARTS,
        "form": shown,
        "suggestions": suggestions(),
        "examples": {name: title for name, (title, _) in EXAMPLES.items()},
    }
    return render(request, "home.html", context, status=status, headers=headers)


@router.post("/plans")
async def plan(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Plan the job of the form and go to the plan's own address; a job that cannot be used comes back as it was sent."""
    sent = await read_form(request)
    pasted = "document" in sent.fields
    try:
        answer = await workers.run(gpuplan.plan, _job_file(sent) if pasted else document_of(sent.texts), frontier=True)
    except EXPECTED as error:
        status, faults, headers = refusal_of(error)
        shown = with_pasted_faults(faults, sent_text(sent)) if pasted else with_faults(faults, sent.texts)
        return job_page(request, shown, status=status, headers=headers)
    return to_plan(answer)


@router.get("/plans")
def plans() -> Response:
    """Where a form without scripts was sent to is no page to come back to; the form is."""
    return RedirectResponse("/", status_code=303)


def _job_file(sent: Sent) -> Document:
    """The job in the uploaded file, else in the pasted text."""
    if "file" in sent.files:
        name, body = sent.files["file"]
        return read_document(body, name=name[:80])
    if not sent_text(sent):
        raise UnusableInput.at(message="paste a job file here, or choose one to upload")
    return read_document(sent_text(sent), name="the job file")


def to_plan(answer: Document) -> Response:
    """On to the answer's own address."""
    return RedirectResponse(f"/plans/{body_of(answer)['id']}", status_code=303)


class PlanQuery(BaseModel):
    """How the page of a plan is shown: alternatives sorted by a column, or with - before it the other way round."""

    model_config = ConfigDict(extra="forbid")

    sort: str | None = None
    watching: str | None = None


@router.get("/plans/{plan_id}")
def plan_page(request: Request, plan_id: str, query: Annotated[PlanQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """A saved answer."""
    return show(request, gpuplan, plan_id, sort=query.sort, watching=query.watching)


def show(
    request: Request,
    gpuplan: Gpuplan,
    plan_id: str,
    *,
    sort: str | None = None,
    watching: str | None = None,
    faults: Sequence[Fault] = (),
    wishes: Mapping[str, str] = NO_WISHES,
) -> Response:
    """The page of a saved answer; with what was wrong in a form of it, if anything was, and what was typed there."""
    answer = gpuplan.saved_plan(plan_id)
    now, current = datetime.now(UTC), gpuplan.store.current_snapshot_id()
    # The address in the bar is that of the plan, also where it came in place of another page.
    headers = {"HX-Push-Url": f"/plans/{plan_id}"} if "hx-request" in request.headers else {}
    status = 422 if faults else 200
    shared: Document = {
        "section": "Plan",
        "faults": faults,
        "wishes": wishes,
        "channels": [each.name for each in gpuplan.channels],
    }
    shared |= {"watching": None if watching is None else gpuplan.watch(watching)}
    if answer["outcome"] == "planned":
        context = planned_view(answer, sort=sort, now=now, current_snapshot=current)
        context["wishable"] = wishable(context["handovers"], wishes)
        return render(request, "plan.html", shared | context, status=status, headers=headers)
    context = infeasible_view(answer, now=now, current_snapshot=current)
    return render(request, "infeasible.html", shared | context, status=status, headers=headers)


class IfQuery(BaseModel):
    """One change of a saved answer's job; each names something that the answer offers."""

    model_config = ConfigDict(extra="forbid")

    deadline_hours: Annotated[float, Field(gt=0, le=MAX_HOURS, allow_inf_nan=False)] | None = None
    point: int | None = None
    alternative: int | None = None
    way_out: int | None = None
    any_speed: bool = False
    frontier: bool = False
    now: bool = False


@router.get("/plans/{plan_id}/if", dependencies=[Depends(needs("plan"))])
async def what_if(
    plan_id: str, query: Annotated[IfQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Plan the job with one thing changed, on the same prices unless it is asked for as of now, and go to that plan.

    Nothing is lost by asking twice: the same question gives the same plan under the same address.
    """

    def answered() -> Document:
        answer = gpuplan.saved_plan(plan_id)
        snapshot = None if query.now else body_of(answer)["snapshot_id"]
        return gpuplan.plan(changed(answer, query), frontier=True, snapshot=snapshot)

    return to_plan(await workers.run(answered))


def changed(answer: Document, query: IfQuery) -> Document:
    """The job of an answer with the one change that is asked for. Raises `UnusableInput` for none or several."""
    asked = query.model_dump(exclude_defaults=True)
    if len(asked) != 1:
        names = ", ".join(IfQuery.model_fields)
        raise UnusableInput.at(message=f"ask for one change; accepted: one of {names}")
    if query.deadline_hours is not None:
        return by_deadline(answer, query.deadline_hours)
    if query.point is not None:
        return at_point(answer, query.point)
    if query.alternative is not None:
        return as_alternative(answer, query.alternative)
    if query.way_out is not None:
        return by_way_out(answer, query.way_out)
    if query.any_speed:
        return any_speed(answer)
    job: Document = body_of(answer)["job"]
    return from_now(answer) if query.now else job
