"""`gpuplan verify`: recompute a plan from its snapshot with independent code, and name every wrong figure."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile
from gpuplan.api.presentation.verification import render_verification
from gpuplan.api.schemas.plan_ids import SAVED
from gpuplan.api.schemas.settings_file import MOST_BYTES_READ, read_file
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.structured_text import MAX_BYTES, read_document
from gpuplan.catalog.runtime.errors import UnusableInput

EXIT_NOT_VERIFIED = EXIT_INFEASIBLE

PlanFile = Annotated[
    str,
    typer.Argument(
        metavar="PLAN.json",
        help="A file with the output of gpuplan plan --json, - for standard input, or the id of a saved plan.",
    ),
]


def verify(
    plan: PlanFile,
    *,
    as_json: AsJson = False,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the plan's snapshot is stored [GPUPLAN_DATABASE_URL].")
    ] = None,
    inventory: InventoryFile = None,
) -> None:
    """Check a plan with independent code: prices, hours, costs, requirements, and that nothing is cheaper."""
    gpuplan = open_gpuplan(database=database, inventory=inventory)
    document = (
        gpuplan.plans.saved_document(plan) if SAVED.fullmatch(plan) and not Path(plan).exists() else read_plan(plan)
    )
    answer = gpuplan.verification.verify(document)
    print_answer(answer, render_verification, as_json=as_json)
    if answer.outcome != "verified":
        raise typer.Exit(EXIT_NOT_VERIFIED)


def read_plan(path: str) -> JsonObject:
    """The document in the file at `path`, or on standard input for `-`. Raises `UnusableInput`."""
    if path == "-":
        if sys.stdin is None:
            raise UnusableInput.at("plan", message="standard input is closed; name a file, or pipe a plan in")
        text, name = sys.stdin.buffer.read(MOST_BYTES_READ), "standard input"
    else:
        text, name = read_file(Path(path), field="plan"), path
    if len(text) > MAX_BYTES:
        message = f"{name} is larger than {MAX_BYTES:,} bytes (1 MiB), the most that a plan has; give the output of gpuplan plan --json"
        raise UnusableInput.at("plan", message=message)
    return read_document(text, name=name)
