"""`gpuplan doctor`: check the set-up."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import print_json
from gpuplan.api.cli.plan import AsJson, InventoryFile, SettingsFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.catalog.parsing.json_object import without_none

EXIT_BROKEN = 3
_SIGNS = {"ok": "ok     ", "warning": "warning", "broken": "BROKEN "}


def doctor(
    *,
    online: Annotated[bool, typer.Option("--online", help="Also query each cloud once; free of charge.")] = False,
    host: Annotated[str, typer.Option(help="The address the service will listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port the service will listen on.")] = 8080,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Check the set-up: what works, what is missing, what to do. Exit code 3 if something is broken, else 0."""
    from gpuplan.api.observability.doctor.examination import examine

    answer = examine(without_none(inventory=inventory, settings=settings), online=online, host=host, port=port)
    if as_json:
        print_json(answer)
    else:
        for finding in answer.findings:
            advice = f"\n         -> {plain(finding.advice)}" if finding.advice else ""
            answers().write(f"{_SIGNS[finding.status]}  {finding.name}: {plain(finding.found)}{advice}\n")
        answers().write(f"{'something is broken' if answer.outcome == 'broken' else 'fine'}\n")
    if answer.outcome == "broken":
        raise typer.Exit(EXIT_BROKEN)
