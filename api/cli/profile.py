"""`gpuplan profile`: write a job file from the counts of a PyTorch module's training step."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.api.cli.command_io import print_answer
from gpuplan.api.cli.plan import AsJson
from gpuplan.api.presentation.profile import render_profile
from gpuplan.api.profiling.counter_process import interpreter
from gpuplan.api.profiling.profiled_job_file import JobWords, ProfiledJob, job_from_counts, write_job
from gpuplan.api.profiling.tensor_shapes import read_shape
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

_NAME_LEFT_OUT = re.compile(r"[^A-Za-z0-9_.-]+")


def profile(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="The function that returns the module: train:make_model, train.py:make_model.",
        ),
    ],
    *,
    inputs: Annotated[
        list[str], typer.Option("--input", metavar="SHAPE[:DTYPE]", help="16x3x224x224, 8x512:int64; once per input.")
    ],
    targets: Annotated[
        list[str] | None, typer.Option("--target", metavar="SHAPE[:DTYPE]", help="Targets of the loss.")
    ] = None,
    samples: Annotated[str | None, typer.Option(help="Samples to train on, e.g. 115M.")] = None,
    global_batch: Annotated[str | None, typer.Option(help="Samples per step. Default: the batch of the input.")] = None,
    deadline: Annotated[str | None, typer.Option(help="As in a job file, e.g. 36h.")] = None,
    budget_usd: Annotated[str | None, typer.Option(help="As in a job file, e.g. 500.")] = None,
    precision: Annotated[str | None, typer.Option(help="As in a job file, e.g. bf16.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="As in a job file, e.g. sgd_momentum.")] = None,
    name: Annotated[str | None, typer.Option(help="The job's name. Default: the factory's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: FACTORY.yaml.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    batch_axis: Annotated[int, typer.Option(min=0, max=15, help="The axis of the inputs that is the batch.")] = 0,
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A Python with torch [GPUPLAN_TORCH_PYTHON].")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, max=86_400, help="Stop counting after this many seconds.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Count a PyTorch module's FLOPs, bytes and memory, and write them to a job file.

    FACTORY takes no arguments. It returns the module; or (module, loss); or (generator, discriminator), with one
    optimizer each; or (module, module, ..., step), where step(*modules, *inputs, *targets) returns the losses.
    """
    name = name or _NAME_LEFT_OUT.sub("-", target.rpartition(":")[2])[:80] or "profiled"
    path = _writable(output or Path(f"{name}.yaml"), force=force)
    words = JobWords(
        name=name,
        samples=samples,
        global_batch=global_batch,
        deadline=deadline,
        budget_usd=budget_usd,
        precision=precision,
        optimizer=optimizer,
    )
    request = _request(target, inputs, targets or [], batch_axis)
    profiled = job_from_counts(request, words, python=interpreter(python), timeout_seconds=timeout)
    write_job(path, profiled.document, _command_line(target, inputs, targets or []))
    _print(profiled, str(path), as_json=as_json)


def _print(profiled: ProfiledJob, path: str, *, as_json: bool) -> None:
    print_answer(
        {"job": profiled.document, "path": path, "states_gib": profiled.states_gib, "notes": profiled.assumptions},
        lambda _: render_profile(
            profiled.document["name"],
            profiled.workload,
            path=path,
            assumptions=profiled.assumptions,
            states_gib=profiled.states_gib,
        ),
        as_json=as_json,
    )


def _writable(path: Path, *, force: bool) -> Path:
    """The file to write. Raises `UnusableInput` at `output` if its folder is missing, or if it exists without `force`."""
    if not path.parent.is_dir():
        raise UnusableInput.at(
            "output", message=f"the folder {path.parent} does not exist; give a path in an existing folder"
        )
    if path.exists() and not force:
        raise UnusableInput.at("output", message=f"{path} exists; give another --output, or --force to replace it")
    return path


def _command_line(target: str, inputs: list[str], targets: list[str]) -> str:
    """The command that counts the same again, for the head of the job file."""
    given = [f"--input {shlex.quote(shape)}" for shape in inputs] + [
        f"--target {shlex.quote(shape)}" for shape in targets
    ]
    return f"gpuplan profile {shlex.quote(target)} {' '.join(given)}"


def _request(target: str, inputs: list[str], targets: list[str], axis: int) -> JsonObject:
    """The request to the counter. The batch is the size of the first input at `axis`."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        message = f"{shown(target)} is not MODULE:FACTORY, such as train:make_model or train.py:make_model"
        raise UnusableInput.at("target", message=message)
    shapes = [read_shape(text, field="input") for text in inputs]
    goals = [read_shape(text, field="target") for text in targets]
    if axis >= len(shapes[0].shape):
        message = f"the first input has no axis {axis}, only {len(shapes[0].shape)} axes; accepted: 0 to {len(shapes[0].shape) - 1}"
        raise UnusableInput.at("batch_axis", message=message)
    return {
        "target": target,
        "inputs": [shape.document() for shape in shapes],
        "targets": [goal.document() for goal in goals],
        "batch": shapes[0].shape[axis],
        "batch_axis": axis,
    }
