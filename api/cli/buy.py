"""`gpuplan buy`: own, commit or rent for a forecast of jobs."""

from typing import Annotated

import typer

from api.cli.documents import open_gpuplan, print_json, read_job
from api.cli.plan import EXIT_INFEASIBLE, AsJson, SettingsFile
from api.cli.standard_output import console

ForecastFile = Annotated[
    str, typer.Argument(metavar="JOBS.yaml", help="The forecast (YAML or JSON), or - for standard input.")
]


def buy(
    jobs: ForecastFile,
    *,
    as_json: AsJson = False,
    snapshot: Annotated[
        str | None, typer.Option(metavar="ID", help="Prices of this snapshot, not the current.")
    ] = None,
    settings: SettingsFile = None,
) -> None:
    """What to buy, what to commit to and what to rent for a forecast of jobs."""
    document = read_job(jobs)
    answer = open_gpuplan(settings=settings).buy(document, snapshot=snapshot)
    if as_json:
        print_json(answer)
    else:
        from api.render.buy import render_decision

        console().print(render_decision(answer))
    if answer["outcome"] != "decided":
        raise typer.Exit(EXIT_INFEASIBLE)
