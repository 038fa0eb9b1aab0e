"""`gpuplan plan` and `gpuplan show`: make the cheapest plan, or show a saved one."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli import imported_jobs
from gpuplan.api.cli.command_io import open_gpuplan, print_json, read_job_or_words
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import PlanAnswer

if TYPE_CHECKING:
    from gpuplan.api.imports.job_from_facts import ImportedJob

EXIT_INFEASIBLE = 4

AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as one JSON object.")]
Details = Annotated[
    bool, typer.Option("--details", help="Show the full answer: proof, layouts, alternatives, assumptions, warnings.")
]
InventoryFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Your own machines [GPUPLAN_INVENTORY].")]
SettingsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The planner's assumptions [GPUPLAN_SETTINGS].")
]
SnapshotId = Annotated[
    str | None, typer.Option("--snapshot", metavar="ID", help="Use this snapshot. Default: the current one.")
]


JobOrWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB.yaml | MODEL WORD=VALUE ...]",
        help="The job file (YAML or JSON), - for standard input, or a model and words such as tokens=300B by=14d.",
        show_default=False,
    ),
]


Source = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE_OR_ID", help="Another tool's configuration, or a Hugging Face model."),
]


class Prices(StrEnum):
    """At which prices a plan is made."""

    EXPECTED = "expected"
    AS_OBSERVED = "as-observed"


@imported_jobs.with_flags()
def plan(
    job: JobOrWords = None,
    *,
    source: Source = None,
    flags: imported_jobs.FileFlags,
    root: imported_jobs.Root = None,
    online: imported_jobs.Online = False,
    as_json: AsJson = False,
    details: Details = False,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Show the full answer with the Pareto frontier of cost and time.")
    ] = False,
    snapshot: SnapshotId = None,
    prices: Annotated[
        Prices | None,
        typer.Option(
            help="Spot prices as expected on the day of the start, or as observed. Default: the settings file's, else expected."
        ),
    ] = None,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Ask the clouds how likely the machines are obtained now, within 3 s. Default: GPUPLAN_LIVE, else no.",
            show_default=False,
        ),
    ] = None,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Find the provably cheapest way to run a job by its deadline."""
    document, made = job_document(job or [], source, flags, root=root, online=online)
    services = open_gpuplan(inventory=inventory, settings=settings)
    answer = services.plans.plan(
        document,
        frontier=frontier,
        snapshot=snapshot,
        prices=None if prices is None else prices.value,
        live=live,
        source=None if made is None else imported_jobs.source_of(made),
    )
    if made is not None:
        imported_jobs.print_cost_as_asked(made, answer, services.context)
    if as_json:
        print_json(answer)
    else:
        _print(answer, details=details or frontier)
    _exit_without_plan(answer.outcome)


def stated_job(job: list[str] | None) -> JsonObject:
    """The job document of a job file, of words, or of another tool's configuration that states a whole job."""
    return job_document(job or [], None, imported_jobs.FileFlags(), root=None, online=False)[0]


def job_document(
    job: list[str], source: str | None, flags: imported_jobs.FileFlags, *, root: Path | None, online: bool
) -> "tuple[JsonObject, ImportedJob | None]":
    """The job document of a job file, of words or of another tool's configuration, and what that stated."""
    if source is None and len(job) == 1 and imported_jobs.is_of_another_tool(job[0]):
        source, job = job[0], []
    if source is None:
        return _document(job, flags), None
    made = _imported(job, source, flags, root=root, online=online)
    return made.complete(), made


def _document(job: list[str], flags: imported_jobs.FileFlags) -> JsonObject:
    """The job document of a job file or of words."""
    if given := flags.stated():
        raise UnusableInput.at(given[0], message="belongs to --from; in a job file or as a word, write it there")
    return read_job_or_words(job)


def _imported(
    job: list[str], source: str, flags: imported_jobs.FileFlags, *, root: Path | None, online: bool
) -> "ImportedJob":
    """The job of another tool's configuration."""
    if job:
        raise UnusableInput.at("JOB", message="is given beside --from; give one of the two")
    return imported_jobs.understood(source, imported_jobs.given_by(flags), root=root, online=online)


def show(
    plan_id: Annotated[str, typer.Argument(metavar="PLAN_ID", help="The id of a saved plan.")],
    *,
    as_json: AsJson = False,
    details: Details = False,
) -> None:
    """Show a saved plan."""
    from gpuplan.api.schemas.answers import read_answer

    document = open_gpuplan().plans.saved_document(plan_id)
    if as_json:
        print_json(document)
    else:
        _print(read_answer(document), details=details)
    _exit_without_plan(document["outcome"])


def _print(answer: PlanAnswer, *, details: bool) -> None:
    if details:
        from gpuplan.api.cli.sections import print_sections
        from gpuplan.api.presentation.plan import render_answer

        print_sections(render_answer(answer))
    else:
        from gpuplan.api.cli.sections import print_short
        from gpuplan.api.presentation.short import short_answer

        print_short(short_answer(answer), rest=f"{answer.body.id}; full answer: add --details")


def _exit_without_plan(outcome: str) -> None:
    if outcome != "planned":
        raise typer.Exit(EXIT_INFEASIBLE)
