"""Requests about a saved plan: explanations, the estimate of a phase, exports, and watches."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.http.authentication import needs
from gpuplan.api.http.plans import OurGpuplan, OurWorkers
from gpuplan.api.presentation.estimate import render_estimate
from gpuplan.api.presentation.explanation import render_why
from gpuplan.api.presentation.phrases import job_name, machines
from gpuplan.api.presentation.plan_charts import carbon_figure
from gpuplan.api.services.composition import Services
from gpuplan.api.services.service_context import Document
from gpuplan.api.web.form_bodies import read_form
from gpuplan.api.web.form_words import in_form_words, sections_in_form_words
from gpuplan.api.web.page_rendering import Context, PageRoute, render
from gpuplan.api.web.plan_exports import WISHES, address
from gpuplan.api.web.plan_pages import NoteView, show
from gpuplan.api.web.text_sections import sections
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.estimate import Estimate
from gpuplan.planner.model.explanation import Frontier, WhyAnswer
from gpuplan.planner.model.plan import Infeasible, Plan, PlannedAnswer
from gpuplan.planner.model.shared import Phase

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class WhyQuery(BaseModel):
    """The item that was not chosen; without one, the explanation shows binding requirements."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str | None = None


@router.get("/plans/{plan_id}/why", dependencies=[Depends(needs("plan"))])
async def why(
    request: Request, plan_id: str, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Explain a plan, and why it does not use something else, on the plan's own prices."""
    name = (query.name or "").strip()

    def asked() -> tuple[Plan | Infeasible, WhyAnswer]:
        body = gpuplan.plans.saved(plan_id).body
        question = {"job": body.job} | ({"not": name} if name else {})
        return body, gpuplan.explanations.why(question, snapshot=body.snapshot_id)

    try:
        body, answer = await workers.run(asked)
    except UnusableInput as error:
        # A fault of the name is shown at its field; other faults get an error page.
        if error.faults[0].path[:1] != ("not",):
            raise
        body = (await workers.run(gpuplan.plans.saved, plan_id)).body
        context: Context = {"plan": body, "answer_sections": [], "asked": name, "error": error.faults[0].message}
        return render(request, "why.html", {"section": "Plan", **context}, status=422)
    context = {
        "section": "Plan",
        "plan": body,
        "answer_sections": sections_in_form_words(sections(render_why(answer))),
        "asked": name,
        "error": None,
    }
    return render(request, "why.html", context)


@router.get("/plans/{plan_id}/carbon", dependencies=[Depends(needs("plan"))])
async def carbon(request: Request, plan_id: str, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Cost, time and carbon of the choices that no other beats in all three, on the plan's own prices."""

    def asked() -> tuple[Plan, Frontier]:
        answer = gpuplan.plans.saved(plan_id)
        if not isinstance(answer, PlannedAnswer):
            raise NotStored.at("plan", message=f"{plan_id} is not a plan, so it has no chart of its carbon")
        plan = answer.plan
        return plan, gpuplan.explanations.carbon_frontier(plan.job, snapshot=plan.snapshot_id)

    plan, frontier = await workers.run(asked)
    context = {
        "section": "Plan",
        "plan": plan,
        "name": job_name(plan.job),
        "figure_made": carbon_figure(frontier.points) if frontier.points else None,
        "unknown": [in_form_words(sentence) for sentence in frontier.unknown_carbon],
    }
    return render(request, "carbon.html", context)


class PhaseQuery(BaseModel):
    """The phase, counted from 1."""

    model_config = ConfigDict(extra="forbid")

    phase: int = 1


@router.get("/plans/{plan_id}/estimate", dependencies=[Depends(needs("plan"))])
async def estimate(
    request: Request, plan_id: str, query: Annotated[PhaseQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Show time and memory of one phase by component."""

    def asked() -> tuple[Plan | Infeasible, Phase, Estimate]:
        body = gpuplan.plans.saved(plan_id).body
        phases = body.phases if isinstance(body, Plan) else ()
        if not 1 <= query.phase <= len(phases):
            accepted = f"1 to {len(phases)}" if phases else "none, because there is no plan"
            raise UnusableInput.at("phase", message=f"{query.phase} is not a phase of the plan; accepted: {accepted}")
        phase = phases[query.phase - 1]
        return body, phase, gpuplan.estimates.estimate({"job": _at(body.job, phase), "on": _on(phase)})

    body, phase, answer = await workers.run(asked)
    context = {
        "section": "Plan",
        "plan": body,
        "phase": phase,
        "what": machines(phase),
        "answer_sections": sections(render_estimate(answer)),
    }
    return render(request, "estimate.html", context)


def _at(job: Document, phase: Phase) -> Document:
    """The job with the phase's precision."""
    return job | {"training": (job.get("training") or {}) | {"precision": phase.precision}}


def _on(phase: Phase) -> Document:
    """The phase's configuration for an estimate request."""
    return {
        "accelerator": phase.accelerator,
        "gpus": phase.nodes * phase.accelerators_per_node,
        "gpus_per_node": phase.accelerators_per_node,
        "layout": phase.layout,
    }


@router.post("/plans/{plan_id}/watch")
async def watch(request: Request, plan_id: str, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Watch the job: plan it again on every new snapshot and notify the selected channels."""
    typed = (await read_form(request)).texts

    def added() -> str:
        job = gpuplan.plans.saved(plan_id).body.job
        document: Document = {"job": job, "channels": list(typed.get("channels", ()))}
        if "cheaper_by_percent" in typed:
            document["cheaper_by_percent"] = typed["cheaper_by_percent"][0]
        return gpuplan.watches.add(document, now=datetime.now(UTC)).id

    try:
        watch_id = await workers.run(added)
    except UnusableInput as error:
        faults = error.faults
        if any(fault.path[:1] not in {("channels",), ("cheaper_by_percent",)} for fault in faults):
            raise
        return await workers.run(_shown_again, request, gpuplan, plan_id, faults)
    return RedirectResponse(f"/plans/{plan_id}?watching={watch_id}#watch", status_code=303)


def _shown_again(request: Request, gpuplan: Services, plan_id: str, faults: tuple[Fault, ...]) -> Response:
    return show(request, gpuplan, plan_id, faults=faults)


@router.post("/plans/{plan_id}/note")
async def note(request: Request, plan_id: str, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Store the note. If another tab has changed it since, show both texts and store nothing."""
    texts = (await read_form(request)).texts
    text, version = (texts.get(name, ("",))[0] for name in ("note", "version"))
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise UnusableInput.at("version", message="is not a number; load the plan's page again")

    def typed(version: int, newer: str | None = None) -> NoteView:
        # A terminal or a screen reader must not act on what was refused.
        harmless = "".join(char if char.isprintable() or char in "\r\n\t" else "\ufffd" for char in text)
        return NoteView(text=harmless, version=version, newer=newer)

    def written() -> Response:
        try:
            saved = gpuplan.notes.write(plan_id, text, seen=int(version), now=datetime.now(UTC))
        except UnusableInput as error:
            if error.faults[0].path != ("note",):
                raise
            return show(request, gpuplan, plan_id, faults=error.faults, note=typed(int(version)))
        if saved is None:
            newest = NoteView.of(gpuplan.notes.of(plan_id))
            return show(request, gpuplan, plan_id, note=typed(newest.version, newest.text))
        return RedirectResponse(f"/plans/{plan_id}#note", status_code=303)

    return await workers.run(written)


class ExportQuery(BaseModel):
    """The format and phase, separated by a colon, and inputs beside the plan."""

    model_config = ConfigDict(extra="forbid")

    to: str
    command: str = ""
    image: str = ""
    reservation: str = ""
    run_limit: str = ""
    checkpoints: str = ""


@router.get("/plans/{plan_id}/export")
def export(request: Request, plan_id: str, query: Annotated[ExportQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """Redirect to the file with the given command and image; show the plan again if they are invalid."""
    name, _, number = query.to.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < 4):
        message = "is not accepted; write a format and a phase, such as skypilot:1"
        raise UnusableInput.at("to", message=message)
    command = query.command.strip() or None
    named = {field: getattr(query, field).strip() or None for field in WISHES}
    try:
        wishes = read_wishes(command=command or "python train.py", **named)
        one_export(gpuplan.plans.saved_document(plan_id), to=name, phase=int(number), wishes=wishes)
    except UnusableInput as error:
        if any(not fault.path or fault.path[0] not in {"command", *WISHES} for fault in error.faults):
            raise
        return show(request, gpuplan, plan_id, faults=error.faults, wishes=query.model_dump())
    return RedirectResponse(address(plan_id, name, phase=number, command=command, **named), status_code=303)
