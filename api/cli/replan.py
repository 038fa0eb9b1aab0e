"""`gpuplan replan`: plan the rest of a running job."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile, SettingsFile, SnapshotId, stated_job
from gpuplan.api.presentation.replan import render_replan
from gpuplan.catalog.parsing.json_object import without_none
from gpuplan.catalog.runtime.errors import UnusableInput


def replan(
    job: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB.yaml | MODEL WORD=VALUE ...]",
            help="The job file, - for standard input, or a model and words; or give --plan.",
            show_default=False,
        ),
    ] = None,
    *,
    done: Annotated[str, typer.Option(metavar="WORK", help="Work done: 0.4, 40%, '120B tokens', '30000 steps'.")] = "0",
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="The plan the job runs by; replaces the job file.")
    ] = None,
    phase: Annotated[str | None, typer.Option(metavar="N", help="The running phase of the plan, from 1.")] = None,
    on: Annotated[str | None, typer.Option(metavar="INSTANCE_TYPE", help="The instance type it runs on.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="N", help="Number of nodes.")] = None,
    provider: Annotated[str | None, typer.Option(help="Needed if several have this instance type.")] = None,
    region: Annotated[str | None, typer.Option(help="The region they run in.")] = None,
    zone: Annotated[str | None, typer.Option(help="The zone, where prices differ by zone.")] = None,
    kind: Annotated[str | None, typer.Option(help="The price kind: on_demand (default), spot, ...")] = None,
    up: Annotated[str, typer.Option(metavar="true|false", help="false: the machines were lost.")] = "true",
    saved: Annotated[
        str | None, typer.Option(metavar="WORK", help="Work at the last checkpoint, if the machines were lost.")
    ] = None,
    up_hours: Annotated[str | None, typer.Option(metavar="HOURS", help="Hours since the machines started.")] = None,
    spent: Annotated[str, typer.Option(metavar="USD", help="Cost of the job so far.")] = "0",
    rate: Annotated[str | None, typer.Option(metavar="SPEED", help="Measured speed: '412000 tokens/s'.")] = None,
    hours: Annotated[
        str | None, typer.Option(metavar="HOURS", help="Or: wall-clock hours of the work on these machines.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="When the job started.")] = None,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="The time of this status. Default: now.")] = None,
    as_json: AsJson = False,
    snapshot: SnapshotId = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Plan the rest of a running job at least cost: continue, move, or use more or fewer machines."""
    machines = without_none(instance_type=on, nodes=nodes, provider=provider, region=region, zone=zone, price_kind=kind)
    if machines and plan is None and not {"instance_type", "nodes"} <= set(machines):
        raise UnusableInput.at("running", "on", message="names no machines; give both --on INSTANCE_TYPE and --nodes N")
    running = without_none(phase=phase, saved=saved, up_hours=up_hours, rate=rate, hours=hours)
    running |= {"done": done, "spent_usd": spent, "up": _yes(up)} | ({"on": machines} if machines else {})
    question = without_none(plan=plan, since=since, now=now, running=running)
    if job:
        question["job"] = stated_job(job)
    answer = open_gpuplan(inventory=inventory, settings=settings).replanning.replan(question, snapshot=snapshot)
    print_answer(answer, render_replan, as_json=as_json)
    if answer.outcome != "replanned":
        raise typer.Exit(EXIT_INFEASIBLE)


def _yes(text: str) -> object:
    """`true` and `false` as booleans; the schema refuses anything else."""
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.strip().lower(), text)
