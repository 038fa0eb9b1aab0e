"""`gpuplan plan` and `gpuplan show`: the cheapest plan, now or as it was saved."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.standard_output import console

EXIT_INFEASIBLE = 4

JobFile = Annotated[
    str, typer.Argument(metavar="JOB.yaml", help="The job file (YAML or JSON), or - for standard input.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as one JSON object.")]
InventoryFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Your own machines [GPUPLAN_INVENTORY].")]
SettingsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The planner's assumptions [GPUPLAN_SETTINGS].")
]


def plan(
    job: JobFile,
    *,
    as_json: AsJson = False,
    frontier: Annotated[bool, typer.Option("--frontier", help="Also every best trade of cost against time.")] = False,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """The provably cheapest way to run a job by its deadline."""
    document = read_job(job)
    answer = open_gpuplan(inventory=inventory, settings=settings).plan(document, frontier=frontier, snapshot=snapshot)
    _show(answer, as_json=as_json)


def show(
    plan_id: Annotated[str, typer.Argument(metavar="PLAN_ID", help="The id of a plan made before.")],
    *,
    as_json: AsJson = False,
) -> None:
    """A saved plan, as it was given."""
    _show(open_gpuplan().saved_plan(plan_id), as_json=as_json)


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print the answer and end with the code that says whether there is a plan."""
    if as_json:
        print_json(answer)
    else:
        from api.render.plan import render_answer

        console().print(render_answer(answer))
    if answer["outcome"] != "planned":
        raise typer.Exit(EXIT_INFEASIBLE)
