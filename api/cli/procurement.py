"""`gpuplan buy`: whether to buy, commit or rent for a forecast of jobs."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer, read_job
from gpuplan.api.cli.plan import EXIT_INFEASIBLE, AsJson, SettingsFile, SnapshotId
from gpuplan.api.presentation.procurement import render_decision

ForecastFile = Annotated[
    str, typer.Argument(metavar="JOBS.yaml", help="The forecast (YAML or JSON), or - for standard input.")
]


def buy(
    jobs: ForecastFile,
    *,
    as_json: AsJson = False,
    snapshot: SnapshotId = None,
    settings: SettingsFile = None,
) -> None:
    """Decide what to buy, commit to and rent for a forecast of jobs."""
    document = read_job(
        jobs, field="forecast", accepted="name a YAML or JSON file of a forecast, or - for standard input"
    )
    answer = open_gpuplan(settings=settings).procurement.decide(document, snapshot=snapshot)
    decided = answer.decision if answer.outcome == "decided" else answer.infeasible
    print_answer(answer, lambda _: render_decision(decided), as_json=as_json)
    if answer.outcome != "decided":
        raise typer.Exit(EXIT_INFEASIBLE)
