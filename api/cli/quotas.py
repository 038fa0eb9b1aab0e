"""`gpuplan quotas`: read the account's quotas as a settings file."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.quotas import quota_lines


def quotas(
    *,
    region: Annotated[
        list[str] | None, typer.Option(help="A region of AWS, Google Cloud or Azure; may be repeated.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask the clouds again, although they were asked within the hour.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read your quotas at AWS, Google Cloud or Azure as lines of a settings file, which plans keep to."""
    answer = open_gpuplan().quotas.read(tuple(region or ()), fresh=fresh)
    if as_json:
        print_json(answer)
        return
    answers().write(quota_lines(answer))
