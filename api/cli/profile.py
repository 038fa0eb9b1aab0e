"""`gpuplan profile`: count a PyTorch module's training step into a job file."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.documents import print_json
from api.cli.plan import AsJson
from api.cli.standard_output import console
from catalog.errors import UnusableInput

_NAME_LEFT_OUT = re.compile(r"[^A-Za-z0-9_.-]+")


def profile(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:FACTORY", help="What makes the module: train:make_model, train.py:make_model."),
    ],
    *,
    inputs: Annotated[
        list[str], typer.Option("--input", metavar="SHAPE[:DTYPE]", help="16x3x224x224, 8x512:int64; once per input.")
    ],
    targets: Annotated[
        list[str] | None, typer.Option("--target", metavar="SHAPE[:DTYPE]", help="What the loss compares with.")
    ] = None,
    samples: Annotated[str | None, typer.Option(help="Samples to train on, e.g. 115M.")] = None,
    global_batch: Annotated[
        str | None, typer.Option(help="Samples per step; left out: the batch of the input.")
    ] = None,
    deadline: Annotated[str | None, typer.Option(help="As in a job file, e.g. 36h.")] = None,
    budget_usd: Annotated[str | None, typer.Option(help="As in a job file, e.g. 500.")] = None,
    precision: Annotated[str | None, typer.Option(help="As in a job file, e.g. bf16.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="As in a job file, e.g. sgd_momentum.")] = None,
    name: Annotated[str | None, typer.Option(help="The job's name; left out: the factory's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Left out: FACTORY.yaml.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    batch_axis: Annotated[int, typer.Option(min=0, max=15, help="Which size of the inputs is the batch.")] = 0,
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The interpreter that has torch [GPUPLAN_TORCH_PYTHON].")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, max=86_400, help="Seconds after which counting is stopped.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Count a PyTorch module's FLOPs, bytes and memory into a job file.

    FACTORY takes no arguments and gives the module; or (module, loss); or (generator, discriminator), each with
    an optimizer of its own; or (module, module, ..., step), where step(*modules, *inputs, *targets) gives the losses.
    """
    from api.profile.child import interpreter
    from api.profile.job_file import counted_job, write_job

    name = name or _NAME_LEFT_OUT.sub("-", target.rpartition(":")[2])[:80] or "profiled"
    path = output or Path(f"{name}.yaml")
    if not path.parent.is_dir():
        raise UnusableInput.at("output", message=f"there is no folder {path.parent}; give a path in one that is there")
    if path.exists() and not force:
        raise UnusableInput.at(
            "output", message=f"{path} is there already; give another --output, or --force to replace it"
        )
    request = _request(target, inputs, targets or [], batch_axis)
    training = {"precision": precision, "optimizer": optimizer}
    stated = {"deadline": deadline, "budget_usd": budget_usd}
    document, said, states_gib = counted_job(
        request,
        python=interpreter(python),
        timeout_seconds=timeout,
        amounts={"samples": samples, "global_batch": global_batch},
        job={"name": name, "training": {key: value for key, value in training.items() if value}}
        | {key: value for key, value in stated.items() if value},
    )
    given = [f"--input {shlex.quote(each)}" for each in inputs] + [
        f"--target {shlex.quote(each)}" for each in targets or []
    ]
    write_job(path, document, f"gpuplan profile {shlex.quote(target)} {' '.join(given)}")
    if as_json:
        print_json({"job": document, "path": str(path), "states_gib": states_gib, "notes": said})
        return
    from api.render.profile import render_profile

    console().print(render_profile(document, path=str(path), said=said, states_gib=states_gib))


def _request(target: str, inputs: list[str], targets: list[str], axis: int) -> dict[str, Any]:
    """What the counter is asked. The batch is the size at `axis` of the first input."""
    from api.profile.shapes import read_shape
    from catalog.quantities import shown

    place, _, name = target.rpartition(":")
    if not place or not name:
        message = f"{shown(target)} is not MODULE:FACTORY, such as train:make_model or train.py:make_model"
        raise UnusableInput.at("target", message=message)
    shapes = [read_shape(text, field="input") for text in inputs]
    goals = [read_shape(text, field="target") for text in targets]
    if axis >= len(shapes[0].shape):
        message = f"{axis} is no axis of the first input, which has {len(shapes[0].shape)}; accepted: 0 to {len(shapes[0].shape) - 1}"
        raise UnusableInput.at("batch_axis", message=message)
    return {
        "target": target,
        "inputs": [each.document() for each in shapes],
        "targets": [each.document() for each in goals],
        "batch": shapes[0].shape[axis],
        "batch_axis": axis,
    }
