"""`gpuplan export`: a plan as a file that another tool runs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.plan_ids import SAVED

if TYPE_CHECKING:
    from api.export.formats import Exported


def export(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN",
            help="The id of a saved plan, a file as gpuplan plan --json prints it, or - for standard input.",
        ),
    ],
    *,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="skypilot, dstack, terraform, kubernetes, jobset, slurm, aws-cli, gcloud, az, focus or json.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write; a plan of several phases becomes numbered files."),
    ] = None,
    phase: Annotated[int | None, typer.Option(metavar="N", help="This phase alone, counted from 1.")] = None,
    command: Annotated[
        str, typer.Option(metavar="COMMAND", help="What starts the training: words, nothing is expanded.")
    ] = "python train.py",
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="The container image with your code, where one is used.")
    ] = None,
    reservation: Annotated[
        str | None, typer.Option(metavar="ID", help="What was booked, for capacity blocks and calendar bookings.")
    ] = None,
    run_limit: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="When every machine is ended, such as 36h; the plan's unless given."),
    ] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="s3://, gs://, abfs:// or /mnt/...; the job's data.checkpoints unless given."
        ),
    ] = None,
) -> None:
    """A plan as a file for the tool that starts the machines; what a tool cannot do is refused with the reason."""
    from api.export.formats import exports, one_export
    from api.export.launcher import read_wishes

    wishes = read_wishes(
        command=command, image=image, reservation=reservation, run_limit=run_limit, checkpoints=checkpoints
    )
    document = _plan(plan)
    if output is None:
        sys.stdout.write(one_export(document, to=to, phase=phase, wishes=wishes).text)
        return
    files = exports(document, to=to, phase=phase, wishes=wishes)
    for each, path in zip(files, _targets(output, files), strict=True):
        _write(path, each.text)


def _plan(given: str) -> dict[str, Any]:
    """The answer saved under this id, or in this file, which goes first."""
    from api.cli.documents import open_gpuplan
    from api.cli.verify import read_plan

    if SAVED.fullmatch(given) and not Path(given).exists():
        return open_gpuplan().saved_plan(given)
    return read_plan(given)


def _targets(output: Path, files: "tuple[Exported, ...]") -> list[Path]:
    """Where each file goes: the path itself for one; `run-1.sbatch`, `run-2.sbatch` for several.

    Into a folder they go under their own names. What a tool reads a whole folder of gets a folder for each phase.
    """
    if output.is_dir():
        return [_apart(output / each.file_name, each, len(files)) for each in files]
    if len(files) == 1:
        return [output]
    stem, dot, ending = output.name.partition(".")
    return [_apart(output.with_name(f"{stem}-{each.phase}{dot}{ending}"), each, len(files)) for each in files]


def _apart(path: Path, each: "Exported", count: int) -> Path:
    if count == 1 or not each.own_folder:
        return path
    return path.with_name(path.name.partition(".")[0]) / "main.tf.json"


def _write(path: Path, text: str) -> None:
    from catalog.errors import UnusableInput

    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnusableInput.at("output", message=f"cannot write {str(path)!r}: {reason}") from None
