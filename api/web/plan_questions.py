"""What may be asked of a saved plan: why not something else, the estimate of a phase in full, and to be watched."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from api.app import Document, Gpuplan
from api.export.formats import one_export
from api.export.launcher import read_wishes
from api.http.access import needs
from api.http.plans import OurGpuplan, OurWorkers
from api.questions.opened import body_of
from api.render.estimate import render_estimate
from api.render.machines import machines
from api.render.why import render_why
from api.web.form_words import sections_in_form_words
from api.web.forms import read_form
from api.web.pages import PageRoute, render
from api.web.plan_exports import WISHES, address
from api.web.plan_pages import show
from api.web.told import sections
from catalog.errors import Fault, UnusableInput

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class WhyQuery(BaseModel):
    """What was not chosen; none asks what binds the plan."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str | None = None


@router.get("/plans/{plan_id}/why", dependencies=[Depends(needs("plan"))])
async def why(
    request: Request, plan_id: str, query: Annotated[WhyQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Why the plan is what it is, on the prices that it rests on, and why not something else."""
    name = (query.name or "").strip()

    def asked() -> tuple[Document, Document]:
        body = body_of(gpuplan.saved_plan(plan_id))
        question = {"job": body["job"]} | ({"not": name} if name else {})
        return body, gpuplan.why(question, snapshot=body["snapshot_id"])

    try:
        body, answer = await workers.run(asked)
    except UnusableInput as error:
        # What is wrong with the name is said at its field; anything else is a page of its own.
        if error.faults[0].path[:1] != ("not",):
            raise
        body = body_of(await workers.run(gpuplan.saved_plan, plan_id))
        context: Document = {"plan": body, "found": [], "asked": name, "error": error.faults[0].message}
        return render(request, "why.html", {"section": "Plan"} | context, status=422)
    context = {
        "plan": body,
        "found": sections_in_form_words(sections(render_why(answer))),
        "asked": name,
        "error": None,
    }
    return render(request, "why.html", {"section": "Plan"} | context)


class PhaseQuery(BaseModel):
    """Which phase, counted from 1."""

    model_config = ConfigDict(extra="forbid")

    phase: int = 1


@router.get("/plans/{plan_id}/estimate", dependencies=[Depends(needs("plan"))])
async def estimate(
    request: Request, plan_id: str, query: Annotated[PhaseQuery, Query()], gpuplan: OurGpuplan, workers: OurWorkers
) -> Response:
    """Time and memory of one phase, term by term."""

    def asked() -> tuple[Document, Document, Document]:
        body = body_of(gpuplan.saved_plan(plan_id))
        phases = body.get("phases") or []
        if not 1 <= query.phase <= len(phases):
            accepted = f"1 to {len(phases)}" if phases else "none, since there is no plan"
            raise UnusableInput.at("phase", message=f"{query.phase} is no phase of the plan; accepted: {accepted}")
        phase = phases[query.phase - 1]
        return body, phase, gpuplan.estimate({"job": _at(body["job"], phase), "on": _on(phase)})

    body, phase, answer = await workers.run(asked)
    context = {"plan": body, "phase": phase, "what": machines(phase), "found": sections(render_estimate(answer))}
    return render(request, "estimate.html", {"section": "Plan"} | context)


def _at(job: Document, phase: Document) -> Document:
    """The job at the precision that the phase runs at."""
    return job | {"training": (job.get("training") or {}) | {"precision": phase["precision"]}}


def _on(phase: Document) -> Document:
    """The phase's configuration as an estimate is asked about it."""
    return {
        "accelerator": phase["accelerator"],
        "gpus": phase["nodes"] * phase["accelerators_per_node"],
        "gpus_per_node": phase["accelerators_per_node"],
        "layout": phase["layout"],
    }


@router.post("/plans/{plan_id}/watch")
async def watch(request: Request, plan_id: str, gpuplan: OurGpuplan, workers: OurWorkers) -> Response:
    """Plan the job again on each new snapshot, and tell the ticked channels what changed."""
    typed = (await read_form(request)).texts

    def added() -> Document:
        job = body_of(gpuplan.saved_plan(plan_id))["job"]
        document: Document = {"job": job, "channels": list(typed.get("channels", ()))}
        if "cheaper_by_percent" in typed:
            document["cheaper_by_percent"] = typed["cheaper_by_percent"][0]
        return gpuplan.add_watch(document, now=datetime.now(UTC))

    try:
        kept = await workers.run(added)
    except UnusableInput as error:
        faults = error.faults
        if any(fault.path[:1] not in {("channels",), ("cheaper_by_percent",)} for fault in faults):
            raise
        return await workers.run(_shown_again, request, gpuplan, plan_id, faults)
    return RedirectResponse(f"/plans/{plan_id}?watching={kept['id']}#watch", status_code=303)


def _shown_again(request: Request, gpuplan: Gpuplan, plan_id: str, faults: tuple[Fault, ...]) -> Response:
    return show(request, gpuplan, plan_id, faults=faults)


class ExportQuery(BaseModel):
    """A format with the phase behind a colon, and what is not in the plan."""

    model_config = ConfigDict(extra="forbid")

    to: str
    command: str = ""
    image: str = ""
    reservation: str = ""
    run_limit: str = ""
    checkpoints: str = ""


@router.get("/plans/{plan_id}/export")
def export(request: Request, plan_id: str, query: Annotated[ExportQuery, Query()], gpuplan: OurGpuplan) -> Response:
    """On to the file with the reader's own command and image; back to the plan, where they cannot be used."""
    name, _, number = query.to.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < 4):
        message = "is not accepted; it is a format and a phase, such as skypilot:1"
        raise UnusableInput.at("to", message=message)
    command = query.command.strip() or None
    named = {field: getattr(query, field).strip() or None for field in WISHES}
    try:
        wishes = read_wishes(command=command or "python train.py", **named)
        one_export(gpuplan.saved_plan(plan_id), to=name, phase=int(number), wishes=wishes)
    except UnusableInput as error:
        if any(not fault.path or fault.path[0] not in {"command", *WISHES} for fault in error.faults):
            raise
        return show(request, gpuplan, plan_id, faults=error.faults, wishes=query.model_dump())
    return RedirectResponse(address(plan_id, name, phase=number, command=command, **named), status_code=303)
