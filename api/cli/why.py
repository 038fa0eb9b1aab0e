"""`gpuplan why`: why the plan is what it is, and why it is not something else."""

from typing import Annotated, Any

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile, JobFile, SettingsFile
from api.cli.standard_output import console


def why(
    job: JobFile,
    *,
    not_: Annotated[
        str | None,
        typer.Option(
            "--not", metavar="X", help="Why not this: an accelerator, instance type, provider, region or price kind."
        ),
    ] = None,
    with_: Annotated[str | None, typer.Option("--with", metavar="X", help="What having this is worth.")] = None,
    as_json: AsJson = False,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Why the plan is what it is: why not something else, what binds, what a little more would change."""
    named = {name: text for name, text in (("not", not_), ("with", with_)) if text is not None}
    question: dict[str, Any] = {"job": read_job(job), **named}
    answer = open_gpuplan(inventory=inventory, settings=settings).why(question, snapshot=snapshot)
    if as_json:
        print_json(answer)
    else:
        from api.render.why import render_why

        console().print(render_why(answer))
    if answer["outcome"] != "explained":
        raise typer.Exit(EXIT_INFEASIBLE)
