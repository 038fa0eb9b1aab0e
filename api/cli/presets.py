"""`gpuplan presets`: list the known models."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.offer_tables import render_presets
from gpuplan.catalog.runtime.errors import UnusableInput


def presets(
    word: Annotated[
        str | None, typer.Argument(metavar="[WORD]", help="Only models whose name, alias or task contains this.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the models known by name: size, task and source."""
    wanted = (word or "").lower()
    rows = [
        row
        for row in open_gpuplan().catalogue.presets()
        if any(wanted in name.lower() for name in (row.name, row.task, *row.aliases))
    ]
    if not rows:
        raise UnusableInput.at(
            "WORD", message=f"no known model has {word!r} in its name or task; leave it out to see all"
        )
    if as_json:
        print_json({"presets": rows})
        return
    answers().writelines(f"{line}\n" for line in render_presets(rows))
