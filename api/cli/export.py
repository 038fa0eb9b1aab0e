"""`gpuplan export`: write a plan as a file for another tool."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.api.cli.standard_output import answers
from gpuplan.api.schemas.plan_ids import SAVED
from gpuplan.catalog.parsing.json_object import JsonObject

if TYPE_CHECKING:
    from gpuplan.api.exports.export_formats import Exported


def export(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN",
            help="The id of a saved plan, a file with the output of gpuplan plan --json, or - for standard input.",
        ),
    ],
    *,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="skypilot, dstack, terraform, kubernetes, jobset, slurm, aws-cli, gcloud, az, lambda, nebius, runpod, docker, focus or json.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write; several phases become numbered files."),
    ] = None,
    phase: Annotated[int | None, typer.Option(metavar="N", help="Only this phase, counted from 1.")] = None,
    command: Annotated[
        str, typer.Option(metavar="COMMAND", help="The training command. No shell expands it.")
    ] = "python train.py",
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="The container image with your code, if the tool uses one.")
    ] = None,
    reservation: Annotated[
        str | None, typer.Option(metavar="ID", help="The booking, for capacity blocks and calendar bookings.")
    ] = None,
    run_limit: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Terminate all machines after this time, such as 36h. Default: the plan's limit."
        ),
    ] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="s3://, gs://, abfs:// or /mnt/... Default: the job's data.checkpoints."),
    ] = None,
) -> None:
    """Write a plan as a file for the tool that starts the machines. Refused, with the reason, if the tool cannot run it."""
    from gpuplan.api.exports.export_formats import exports, one_export
    from gpuplan.api.exports.launch_command import read_wishes

    wishes = read_wishes(
        command=command, image=image, reservation=reservation, run_limit=run_limit, checkpoints=checkpoints
    )
    document = _plan(plan)
    if output is None:
        answers().write(one_export(document, to=to, phase=phase, wishes=wishes).text)
        return
    files = exports(document, to=to, phase=phase, wishes=wishes)
    for file, path in zip(files, _targets(output, files), strict=True):
        _write(path, file.text)


def _plan(plan: str) -> JsonObject:
    """The answer in this file, or saved under this id; a file takes precedence."""
    from gpuplan.api.cli.command_io import open_gpuplan
    from gpuplan.api.cli.verify import read_plan

    if SAVED.fullmatch(plan) and not Path(plan).exists():
        return open_gpuplan().plans.saved_document(plan)
    return read_plan(plan)


def _targets(output: Path, files: "tuple[Exported, ...]") -> list[Path]:
    """The path of every file: `output` itself for one file; `run-1.sbatch`, `run-2.sbatch` for several.

    If `output` is a folder, files keep their own names. A tool that reads whole folders gets one folder per phase.
    """
    if output.is_dir():
        return [_apart(output / file.file_name, file, len(files)) for file in files]
    if len(files) == 1:
        return [output]
    stem, dot, ending = output.name.partition(".")
    return [_apart(output.with_name(f"{stem}-{file.phase}{dot}{ending}"), file, len(files)) for file in files]


def _apart(path: Path, exported: "Exported", count: int) -> Path:
    if count == 1 or not exported.own_folder:
        return path
    return path.with_name(path.name.partition(".")[0]) / "main.tf.json"


def _write(path: Path, text: str) -> None:
    from gpuplan.catalog.runtime.errors import UnusableInput

    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnusableInput.at("output", message=f"cannot write {str(path)!r}: {reason}") from None
