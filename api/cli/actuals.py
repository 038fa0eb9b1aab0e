"""`gpuplan actuals`: report, list and delete the measurements of real runs."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson, SettingsFile
from gpuplan.api.presentation.actuals import render_actuals, render_report
from gpuplan.api.schemas.actual_reports import Actual, Actuals, Forgotten
from gpuplan.catalog.parsing.json_object import JsonObject, without_none
from gpuplan.catalog.runtime.errors import UnusableInput

EVERYTHING = "all"


def actuals(
    plan_id: Annotated[str | None, typer.Argument(metavar="PLAN_ID", help="The plan that was run.")] = None,
    *,
    hours: Annotated[str | None, typer.Option(help="Wall-clock hours since the start: 31, '1d 7h'.")] = None,
    throughput: Annotated[str | None, typer.Option(help="Training speed: 11800, '11800 tokens/s'.")] = None,
    peak_memory_gib: Annotated[
        str | None, typer.Option("--peak-memory-gib", help="Highest memory use of one accelerator: 61, '61 GiB'.")
    ] = None,
    preemptions: Annotated[str | None, typer.Option(help="Number of preemptions.")] = None,
    running: Annotated[bool, typer.Option("--running", help="The job is still running; needs --share-done.")] = False,
    share_done: Annotated[str | None, typer.Option("--share-done", help="Share of the work done: 0.4, 40%.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="Accelerator used; checked against the plan.")] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Accept a figure that differs from the plan by 100x.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--list", help="List all reports and the corrections learned from them.")
    ] = False,
    forget: Annotated[
        str | None, typer.Option(metavar="ID", help="Delete a report by id, or every report: all.")
    ] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """Report what a run measured; later estimates are corrected by it."""
    document = without_none(
        hours=hours,
        throughput=throughput,
        peak_memory_gib=peak_memory_gib,
        preemptions=preemptions,
        share_done=share_done,
        accelerator=accelerator,
        running=running or None,
        confirm=confirm or None,
    )
    _refuse_contradictions(plan_id, document, every=every, forget=forget)
    gpuplan = open_gpuplan(settings=settings)
    if forget is not None:
        _show_forgotten(gpuplan.actuals.forget(None if forget == EVERYTHING else forget), as_json=as_json)
    elif plan_id is not None and document:
        _show(gpuplan.actuals.report(plan_id, document), as_json=as_json)
    else:
        _show(gpuplan.actuals.listed(plan_id), as_json=as_json)


def _refuse_contradictions(plan_id: str | None, document: JsonObject, *, every: bool, forget: str | None) -> None:
    """Refuse options that do not go together: a report needs a plan; --list and --forget take no figures."""
    asked = sum((plan_id is not None, every, forget is not None))
    if asked == 0:
        message = "is missing; accepted: the id of a plan, or --list, or --forget ID"
        raise UnusableInput.at("PLAN_ID", message=message)
    if asked > 1:
        raise UnusableInput.at("PLAN_ID", message="give one of: the id of a plan, --list, --forget ID")
    if plan_id is None and document:
        name = next(iter(document))
        raise UnusableInput.at(name, message="belongs to the report on a plan; give the id of that plan too")


def _show(answer: Actual | Actuals, *, as_json: bool) -> None:
    if isinstance(answer, Actuals):
        print_answer(answer, render_actuals, as_json=as_json)
    else:
        print_answer(answer, render_report, as_json=as_json)


def _show_forgotten(answer: Forgotten, *, as_json: bool) -> None:
    count = answer.forgotten
    print_answer(answer, lambda _: f"{count} {'report' if count == 1 else 'reports'} forgotten", as_json=as_json)
