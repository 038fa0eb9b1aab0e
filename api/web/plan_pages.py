"""The job form and the page of a plan; every answer has its own address."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from gpuplan.api.http.authentication import needs
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.imports.pasted_text import IncompleteConfigError, pasted_job
from gpuplan.api.schemas.key_value_words import job_of_words, split_words
from gpuplan.api.schemas.watch_answers import JobWatch
from gpuplan.api.security.authorization import keys_in_force
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.api.web.csv_download import csv_file
from gpuplan.api.web.examples import JOBS
from gpuplan.api.web.form_bodies import Sent, read_form
from gpuplan.api.web.job_fields import PARTS, suggestions
from gpuplan.api.web.job_form import Shown, document_of, filled, with_faults, with_pasted_faults, with_understood
from gpuplan.api.web.page_rendering import EXPECTED, Context, PageRoute, refusal_of, render
from gpuplan.api.web.pasted_documents import sent_text
from gpuplan.api.web.plan_exports import wishable
from gpuplan.api.web.plan_view import infeasible_view, live_view, planned_view
from gpuplan.api.web.what_if import (
    any_speed,
    as_alternative,
    at_point,
    by_budget,
    by_deadline,
    by_way_out,
    for_other_framework,
    from_now,
)
from gpuplan.catalog.parsing.quantities import MAX_HOURS, MAX_USD
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.plan_store import PlanNote
from gpuplan.planner.model.plan import PlanAnswer, PlannedAnswer
from gpuplan.planner.model.wire import wire

router = APIRouter(route_class=PageRoute, include_in_schema=False)


#: Empty inputs of a download: format, phase, and inputs beside the plan.
NO_WISHES: Mapping[str, str] = dict.fromkeys(("to", "command", "image", "reservation", "run_limit", "checkpoints"), "")


#: Columns of the file of the frontier: keys of its points under `/v1`.
FRONTIER_COLUMNS = (
    *("hours_confident", "hours", "cost_usd", "cost_p95_usd", "provider", "region", "zone", "instance_type", "nodes"),
    *("accelerator", "accelerators_per_node", "price_kind", "usd_per_node_hour"),
)
#: A line that begins like this is a document, not words.
_DOCUMENT = re.compile(r"[{\[#]|[\w.-]+:(\s|$)")
_EXAMPLE = "llama-3-8b tokens=300B by=14d"


class HomeQuery(BaseModel):
    """Contents of the form: an example by name, or the job of a saved plan."""

    model_config = ConfigDict(extra="forbid")

    example: str | None = None
    plan: str | None = None


@router.get("/")
def home(request: Request, query: Annotated[HomeQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show the job form, empty or filled in."""
    now = datetime.now(UTC)
    if query.plan is not None:
        return job_page(request, filled(gpuplan.plans.saved(query.plan).body.job, now=now))
    if query.example is not None:
        if query.example not in JOBS:
            raise UnusableInput.at("example", message=f"is unknown; accepted: {', '.join(JOBS)}")
        return job_page(request, filled(JOBS[query.example]["job"], now=now))
    return job_page(request, Shown.blank())


def job_page(request: Request, shown: Shown, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The page with the given form."""
    context = {
        "section": "Plan",
        "parts": PARTS,
        "form": shown,
        "suggestions": suggestions(),
        "examples": {name: example["title"] for name, example in JOBS.items()},
    }
    return render(request, "home.html", context, status=status, headers=headers)


@router.post("/plans")
async def plan(request: Request, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Plan the submitted job and redirect to the plan. An unusable job is shown again with its faults."""
    sent = await read_form(request)
    pasted = "document" in sent.fields
    job: Document = {}
    try:
        job = _stated_job(sent) if pasted else document_of(sent.texts)
        answer = await workers.run(gpuplan.plans.plan, job, frontier=True)
    except EXPECTED as error:
        status, faults, headers = refusal_of(error)
        text = error.job_file if isinstance(error, IncompleteConfigError) else sent_text(sent)
        if not pasted:
            shown = with_faults(faults, sent.texts)
        elif job and is_words(text):
            shown = with_understood(faults, text, job)
        else:
            shown = with_pasted_faults(faults, text)
        return job_page(request, shown, status=status, headers=headers)
    return to_plan(answer)


def _stated_job(sent: Sent) -> Document:
    """The job of the uploaded file, else of the text."""
    return stated_job(sent_text(sent), sent.files["file"][0][:80] if "file" in sent.files else "the job file")


def to_plan(answer: PlanAnswer) -> Response:
    """Redirect to the answer's address."""
    return RedirectResponse(f"/plans/{answer.body.id}", status_code=303)


class PlanQuery(BaseModel):
    """Sort column of the alternatives; a leading - reverses the order."""

    model_config = ConfigDict(extra="forbid")

    sort: str | None = None
    watching: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """The form of a plan's note: its text and the version that a change builds on.

    After a change from elsewhere came first, `newer` is what is stored now, and the text what was typed here.
    """

    text: str = ""
    version: int = 0
    newer: str | None = None

    @classmethod
    def of(cls, note: PlanNote | None) -> "NoteView":
        """The form of a stored note, or of none."""
        return cls() if note is None else cls(text=note.note, version=note.version)


@router.get("/plans/{plan_id}")
def plan_page(request: Request, plan_id: str, query: Annotated[PlanQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Show a saved answer."""
    return show(request, gpuplan, plan_id, sort=query.sort, watching=query.watching)


def show(
    request: Request,
    gpuplan: Services,
    plan_id: str,
    *,
    sort: str | None = None,
    watching: str | None = None,
    faults: Sequence[Fault] = (),
    wishes: Mapping[str, str] = NO_WISHES,
    note: NoteView | None = None,
) -> Response:
    """The page of a saved answer, with the faults and values of a submitted form, if any."""
    answer = gpuplan.plans.saved(plan_id)
    now, since = datetime.now(UTC), gpuplan.catalogue.prices_since(answer.body.snapshot_id)
    # The address bar shows the plan's address even if the page replaced another one.
    headers = {"HX-Push-Url": f"/plans/{plan_id}"} if "hx-request" in request.headers else {}
    status = 422 if faults else 409 if note else 200
    watched = None if watching is None else gpuplan.watches.one(watching)
    shared: Context = {
        "section": "Plan",
        "faults": faults,
        "wishes": wishes,
        "channels": [channel.name for channel in gpuplan.context.channels],
        "shareable": gpuplan.shares.may_share("plan", plan_id),
        "private": keys_in_force(),
        "note": note or NoteView.of(gpuplan.notes.of(plan_id)),
        "watching": watched if isinstance(watched, JobWatch) else None,
    }
    if isinstance(answer, PlannedAnswer):
        view = planned_view(answer, sort=sort, now=now, prices_since=since)
        context = {**shared, **vars(view), "wishable": wishable(view.handovers, wishes)}
        return render(request, "plan.html", context, status=status, headers=headers)
    none = infeasible_view(answer.infeasible, now=now, prices_since=since)
    return render(request, "infeasible.html", {**shared, **vars(none)}, status=status, headers=headers)


DeadlineHours = Annotated[float, Field(gt=0, le=MAX_HOURS, allow_inf_nan=False)]
BudgetUsd = Annotated[float, Field(gt=0, le=MAX_USD, allow_inf_nan=False)]


class IfQuery(BaseModel):
    """One change of a saved answer's job, among those that the answer offers."""

    model_config = ConfigDict(extra="forbid")

    deadline_hours: DeadlineHours | None = None
    budget_usd: BudgetUsd | None = None
    point: int | None = None
    alternative: int | None = None
    way_out: int | None = None
    any_speed: bool = False
    framework: bool = False
    frontier: bool = False
    now: bool = False


@router.get("/plans/{plan_id}/if", dependencies=[Depends(needs("plan"))])
async def what_if(
    plan_id: str, query: Annotated[IfQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Plan the job with one change and redirect to the plan. Uses the same prices unless replanned as of now.

    Repeating a request is harmless: it gives the same plan with the same address.
    """

    def answered() -> PlanAnswer:
        answer = gpuplan.plans.saved(plan_id)
        snapshot = None if query.now else answer.body.snapshot_id
        return gpuplan.plans.plan(changed(answer, query), frontier=True, snapshot=snapshot)

    return to_plan(await workers.run(answered))


def changed(answer: PlanAnswer, query: IfQuery) -> Document:
    """The job of an answer with the requested change. Raises `UnusableInput` unless there is exactly one."""
    asked = query.model_dump(exclude_defaults=True)
    if len(asked) != 1:
        names = ", ".join(IfQuery.model_fields)
        raise UnusableInput.at(message=f"give exactly one change; accepted: one of {names}")
    if query.deadline_hours is not None:
        return by_deadline(answer, query.deadline_hours)
    if query.budget_usd is not None:
        return by_budget(answer, query.budget_usd)
    if query.point is not None:
        return at_point(answer, query.point)
    if query.alternative is not None:
        return as_alternative(answer, query.alternative)
    if query.way_out is not None:
        return by_way_out(answer, query.way_out)
    if query.any_speed:
        return any_speed(answer)
    if query.framework:
        return for_other_framework(answer)
    return from_now(answer) if query.now else answer.body.job


class LiveQuery(BaseModel):
    """The deadline to try, in hours from the job's start, or the budget in US dollars."""

    model_config = ConfigDict(extra="forbid")

    deadline_hours: DeadlineHours | None = None
    budget_usd: BudgetUsd | None = None


@router.get("/plans/{plan_id}/live", dependencies=[Depends(needs("plan"))])
async def live(
    request: Request, plan_id: str, query: Annotated[LiveQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """The card of the plan with another deadline or budget, on the same prices; nothing is saved."""

    def answered() -> PlanAnswer:
        saved = gpuplan.plans.saved(plan_id)
        job = changed(saved, IfQuery(**query.model_dump()))
        return gpuplan.plans.plan(job, snapshot=saved.body.snapshot_id, save=False)

    answer = await workers.run(answered)
    return render(request, "live.html", live_view(answer, f"/plans/{plan_id}"))


@router.get("/plans/{plan_id}/frontier.csv")
def frontier_csv(plan_id: str, gpuplan: OurGpuplan) -> Response:
    """The points of the chart of cost against time, with amounts and hours in full."""
    answer = gpuplan.plans.saved(plan_id)
    points = wire(answer.plan.frontier or ()) if isinstance(answer, PlannedAnswer) else ()
    return csv_file(FRONTIER_COLUMNS, points, f"{plan_id}-frontier.csv")


def stated_job(text: str, name: str) -> Document:
    """The job of a text; `name` is its name in errors.

    Raises `IncompleteConfigError` for a configuration that lacks something, else `UnusableInput`.
    """
    if not text.strip():
        message = f"write what you have here, such as {_EXAMPLE}, paste a configuration, or choose a file"
        raise UnusableInput.at(message=message)
    return job_of_words(split_words(text), example=_EXAMPLE) if is_words(text) else pasted_job(text, name)


def is_words(text: str) -> bool:
    """Whether a text is the words of a job: one line that does not begin like a document."""
    line = text.strip()
    return "\n" not in line and _DOCUMENT.match(line) is None
