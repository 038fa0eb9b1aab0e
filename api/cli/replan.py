"""`gpuplan replan`: what to do with a job that is under way."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile, SettingsFile
from api.cli.standard_output import console
from catalog.errors import UnusableInput


def replan(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB.yaml]", help="The job file, or - for standard input; or give --plan.")
    ] = None,
    *,
    done: Annotated[
        str, typer.Option(metavar="WORK", help="What is done: 0.4, 40%, '120B tokens', '30000 steps'.")
    ] = "0",
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="The plan that it runs by, in place of the job.")
    ] = None,
    phase: Annotated[str | None, typer.Option(metavar="N", help="The phase of the plan that runs, from 1.")] = None,
    on: Annotated[str | None, typer.Option(metavar="INSTANCE_TYPE", help="What it runs on.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="N", help="How many of them.")] = None,
    provider: Annotated[str | None, typer.Option(help="Where the name alone does not tell.")] = None,
    region: Annotated[str | None, typer.Option(help="Where they run.")] = None,
    zone: Annotated[str | None, typer.Option(help="Where prices differ by zone.")] = None,
    kind: Annotated[str | None, typer.Option(help="How they are paid: on_demand (default), spot, ...")] = None,
    up: Annotated[str, typer.Option(metavar="true|false", help="false: they are gone.")] = "true",
    saved: Annotated[
        str | None, typer.Option(metavar="WORK", help="What of it was at the last checkpoint, if they are gone.")
    ] = None,
    up_hours: Annotated[str | None, typer.Option(metavar="HOURS", help="Hours since they came up.")] = None,
    spent: Annotated[str, typer.Option(metavar="USD", help="What the job has cost so far.")] = "0",
    rate: Annotated[str | None, typer.Option(metavar="SPEED", help="Measured: '412000 tokens/s'.")] = None,
    hours: Annotated[
        str | None, typer.Option(metavar="HOURS", help="Or the wall hours that the work took on these machines.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="When the job started.")] = None,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="When it stands so (default: now).")] = None,
    as_json: AsJson = False,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """What to do with a job that is under way: go on, move, or run on more or fewer machines, at least cost from now."""
    machines = {
        "instance_type": on,
        "nodes": nodes,
        "provider": provider,
        "region": region,
        "zone": zone,
        "price_kind": kind,
    }
    stated = _stated(machines)
    if stated and plan is None and not {"instance_type", "nodes"} <= set(stated):
        raise UnusableInput.at("running", "on", message="names no machines; give both --on INSTANCE_TYPE and --nodes N")
    running = _stated({"phase": phase, "saved": saved, "up_hours": up_hours, "rate": rate, "hours": hours})
    running |= {"done": done, "spent_usd": spent, "up": _yes(up)} | ({"on": stated} if stated else {})
    question = _stated({"plan": plan, "since": since, "now": now}) | {"running": running}
    if job is not None:
        question["job"] = read_job(job)
    answer = open_gpuplan(inventory=inventory, settings=settings).replan(question, snapshot=snapshot)
    if as_json:
        print_json(answer)
    else:
        from api.render.replan import render_replan

        console().print(render_replan(answer))
    if answer["outcome"] != "replanned":
        raise typer.Exit(EXIT_INFEASIBLE)


def _stated(options: dict[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _yes(text: str) -> object:
    """true and false as such; anything else is for the document to refuse."""
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.strip().lower(), text)
