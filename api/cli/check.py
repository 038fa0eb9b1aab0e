"""`gpuplan check`: what a change of configurations does to the cost of the jobs, for continuous integration."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.api.cli import imported_jobs
from gpuplan.api.cli.command_io import open_gpuplan, print_json
from gpuplan.api.cli.plan import InventoryFile, SettingsFile
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.imports.job_from_facts import Given, job_of
from gpuplan.api.imports.reading import read_at_revision, read_file
from gpuplan.api.imports.revision_files import RevisionFiles
from gpuplan.api.imports.source_files import root_of
from gpuplan.api.presentation.cost_check import compared, markdown
from gpuplan.api.services.plans import PlanService
from gpuplan.catalog.parsing.structured_text import read_document
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import PlanAnswer

EXIT_TOO_DEAR = 1
_PERCENT = re.compile(r"\s*(\d{1,6}(?:\.\d+)?)\s*%?\s*")


class Format(StrEnum):
    """How the comparison is printed."""

    MARKDOWN = "markdown"
    JSON = "json"


@imported_jobs.with_flags(without=imported_jobs.OF_FINISHED_RUNS)
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE ...", help="Job files, or configurations of other tools.")
    ] = None,
    *,
    source: Annotated[
        list[Path] | None, typer.Option("--from", metavar="FILE", help="The same; the shell may add more behind it.")
    ] = None,
    against: Annotated[str, typer.Option(metavar="REVISION", help="The git revision to compare with.")] = "main",
    max_increase: Annotated[
        str | None, typer.Option(metavar="10%", help="Exit with 1 if a job costs more than this beyond before.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Markdown for a comment, or JSON.")] = Format.MARKDOWN,
    flags: imported_jobs.FileFlags,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Compare the cost of jobs with that before a change: both planned on the same prices and day."""
    paths = [*(source or []), *(files or [])]
    if not paths:
        raise UnusableInput.at("FILE", message="is missing; name job files or configurations, such as conf/*.yaml")
    most = _percent(max_increase)
    given = imported_jobs.given_by(flags)
    plans, now = open_gpuplan(inventory=inventory, settings=settings).plans, datetime.now(UTC)
    rows = [compared(str(path), *_sides(path, against, given, plans, now)) for path in paths]
    if form is Format.JSON:
        print_json({"against": against, "jobs": rows})
    else:
        answers().write(markdown(rows, against, most))
    if most is not None and any(row.is_too_dear(most) for row in rows):
        raise typer.Exit(EXIT_TOO_DEAR)


def _percent(text: str | None) -> float | None:
    if text is None:
        return None
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise UnusableInput.at(
            "--max-increase", message=f"{text[:40]!r} is not accepted; write a percentage such as 10%"
        )
    return float(match[1])


def _sides(
    path: Path, against: str, given: Given, plans: PlanService, now: datetime
) -> tuple[PlanAnswer | None, PlanAnswer]:
    """The answers before and after; None before for a new file. Raises `UnusableInput` with the file's name."""
    if not path.is_file():
        raise UnusableInput.at(str(path), message="is not there; name a file")
    try:
        if imported_jobs.is_of_another_tool(str(path)):
            facts = read_at_revision(path, against)
            before = None if facts is None else job_of(facts, given).complete()
            after = job_of(read_file(path), given).complete()
        else:
            files = RevisionFiles(root_of(path.resolve()).resolve(), against)
            is_old = files.is_there(path.resolve())
            before = read_document(files.read(path.resolve()), name=str(path)) if is_old else None
            after = read_document(path.read_bytes(), name=str(path))
        return None if before is None else plans.plan(before, now=now), plans.plan(after, now=now)
    except UnusableInput as error:
        raise error if error.faults[0].path[:1] == ("against",) else error.under(str(path)) from None
