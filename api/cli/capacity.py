"""`gpuplan capacity`: ask the clouds how likely machines are obtained now."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer, print_json
from gpuplan.api.cli.plan import AsJson, InventoryFile, SettingsFile, stated_job
from gpuplan.api.cli.standard_output import console
from gpuplan.api.presentation.capacity import render_capacity
from gpuplan.catalog.parsing.json_object import JsonObject, without_none
from gpuplan.catalog.runtime.errors import UnusableInput


def capacity(
    job: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB.yaml | MODEL WORD=VALUE ...]",
            help="Ask about the machines of the plan of this job: its file, - for standard input, or a model and words.",
            show_default=False,
        ),
    ] = None,
    *,
    machine: Annotated[str | None, typer.Option(help="Ask about this instance type: p5.48xlarge.")] = None,
    nodes: Annotated[int, typer.Option(min=1, max=1_000, help="How many machines at once.")] = 1,
    kind: Annotated[
        str, typer.Option(help="The price kind: spot, capacity_block, or on_demand where price lists state stock.")
    ] = "spot",
    region: Annotated[list[str] | None, typer.Option(help="A region; may be repeated. Default: all priced.")] = None,
    limit_seconds: Annotated[
        float, typer.Option(min=0.1, max=60, metavar="SECONDS", help="Time limit for all clouds together.")
    ] = 3.0,
    zone: Annotated[str | None, typer.Option(help="With --refused or --obtained: the zone that was asked.")] = None,
    refused: Annotated[
        str | None, typer.Option(metavar="CODE", help="Report that the cloud had none: InsufficientInstanceCapacity.")
    ] = None,
    obtained: Annotated[bool, typer.Option("--obtained", help="Report that the cloud gave the machines.")] = False,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Ask the clouds how likely machines are obtained now, and what was not learned."""
    if bool(job) == (machine is not None):
        raise UnusableInput.at("machine", message="give a job file or --machine, and not both")
    if refused is not None or obtained:
        if len(region or ()) != 1 or machine is None:
            raise UnusableInput.at("region", message="a report needs --machine and one --region")
        where = {"machine": machine, "nodes": nodes, "kind": kind, "region": (region or [""])[0], "zone": zone}
        _report(without_none(**where, refused=refused, obtained=obtained), as_json=as_json)
        return
    if zone is not None:
        raise UnusableInput.at("zone", message="belongs to a report; give --refused CODE or --obtained too")
    service = open_gpuplan(inventory=inventory, settings=settings).capacity
    if machine is not None:
        answer = service.of_machine(
            machine, nodes=nodes, kind=kind, regions=tuple(region or ()), limit_seconds=limit_seconds
        )
    else:
        answer = service.of_job(stated_job(job), limit_seconds=limit_seconds)
    print_answer(answer, render_capacity, as_json=as_json)


def _report(document: JsonObject, *, as_json: bool) -> None:
    report = open_gpuplan().capacity.report(document)
    if as_json:
        print_json(report)
        return
    place = report.zone or report.region
    kind = report.price_kind.replace("_", " ")
    console().print(f"{report.nodes} x {report.instance_type} {kind} in {place}: {report.own_runs}")
