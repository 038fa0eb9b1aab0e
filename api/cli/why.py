"""`gpuplan why`: explain a plan, and why it is not another one."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import (
    EXIT_INFEASIBLE,
    AsJson,
    InventoryFile,
    JobOrWords,
    SettingsFile,
    SnapshotId,
    stated_job,
)
from gpuplan.api.presentation.explanation import render_why
from gpuplan.catalog.parsing.json_object import without_none


def why(
    job: JobOrWords = None,
    *,
    not_: Annotated[
        str | None,
        typer.Option(
            "--not", metavar="X", help="Why not this accelerator, instance type, provider, region or price kind?"
        ),
    ] = None,
    with_: Annotated[str | None, typer.Option("--with", metavar="X", help="How much would having this save?")] = None,
    as_json: AsJson = False,
    snapshot: SnapshotId = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Explain a plan: why not something else, which requirements bind, and what changing them would do."""
    question = without_none(job=stated_job(job), **{"not": not_, "with": with_})
    answer = open_gpuplan(inventory=inventory, settings=settings).explanations.why(question, snapshot=snapshot)
    print_answer(answer, render_why, as_json=as_json)
    if answer.outcome != "explained":
        raise typer.Exit(EXIT_INFEASIBLE)
