"""`gpuplan actuals`: report what a run of a plan measured, list what was reported, forget it."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json
from api.cli.plan import AsJson, SettingsFile
from api.cli.standard_output import console
from catalog.errors import UnusableInput

EVERYTHING = "all"


def actuals(
    plan_id: Annotated[str | None, typer.Argument(metavar="PLAN_ID", help="The plan that was run.")] = None,
    *,
    hours: Annotated[
        str | None, typer.Option(help="Wall hours from the start until now or the end: 31, '1d 7h'.")
    ] = None,
    throughput: Annotated[str | None, typer.Option(help="While it trains: 11800, '11800 tokens/s'.")] = None,
    peak_memory_gib: Annotated[
        str | None, typer.Option("--peak-memory-gib", help="The most that one accelerator held: 61, '61 GiB'.")
    ] = None,
    preemptions: Annotated[str | None, typer.Option(help="How many times machines were taken back.")] = None,
    running: Annotated[bool, typer.Option("--running", help="The job still runs; give --share-done too.")] = False,
    share_done: Annotated[str | None, typer.Option("--share-done", help="The part that is done: 0.4, 40%.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="What it ran on, checked against the plan.")] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="A figure 100 times off the plan is meant so.")] = False,
    every: Annotated[bool, typer.Option("--list", help="Every report, and what they teach.")] = False,
    forget: Annotated[str | None, typer.Option(metavar="ID", help="Forget a report, or all of them: all.")] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
) -> None:
    """What runs of plans measured, against the prediction; later estimates learn from it."""
    figures = {"hours": hours, "throughput": throughput, "peak_memory_gib": peak_memory_gib, "preemptions": preemptions}
    given: dict[str, Any] = figures | {"share_done": share_done, "accelerator": accelerator}
    document = {name: value for name, value in given.items() if value is not None}
    document |= {name: True for name, asked in (("running", running), ("confirm", confirm)) if asked}
    _refuse_contradictions(plan_id, document, every=every, forget=forget)
    gpuplan = open_gpuplan(settings=settings)
    if forget is not None:
        _show_forgotten(gpuplan.forget_actuals(None if forget == EVERYTHING else forget), as_json=as_json)
    elif plan_id is not None and document:
        _show(gpuplan.report_actuals(plan_id, document), as_json=as_json)
    else:
        _show(gpuplan.actuals(plan_id), as_json=as_json)


def _refuse_contradictions(plan_id: str | None, document: dict[str, Any], *, every: bool, forget: str | None) -> None:
    """One thing at a time: a report needs a plan, and a list or forgetting takes no figures."""
    asked = sum((plan_id is not None, every, forget is not None))
    if asked == 0:
        message = "is missing; accepted: the id of a plan, or --list, or --forget ID"
        raise UnusableInput.at("PLAN_ID", message=message)
    if asked > 1:
        raise UnusableInput.at("PLAN_ID", message="give one of: the id of a plan, --list, --forget ID")
    if plan_id is None and document:
        name = next(iter(document))
        raise UnusableInput.at(name, message="belongs to the report on a plan; give the id of that plan too")


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    from api.render.actuals import render_actuals, render_report

    console().print(render_actuals(answer) if "actuals" in answer else render_report(answer))


def _show_forgotten(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    count = answer["forgotten"]
    console().print(f"{count} {'report' if count == 1 else 'reports'} forgotten")
