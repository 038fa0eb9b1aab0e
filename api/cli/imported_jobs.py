"""`gpuplan import`, and the flags with which `gpuplan plan --from` completes another tool's configuration."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from gpuplan.api.cli.command_io import print_json
from gpuplan.api.cli.standard_output import answers
from gpuplan.api.presentation.text_formatting import plain
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import PlanAnswer, PlannedAnswer

if TYPE_CHECKING:
    from gpuplan.api.imports.job_from_facts import Given, ImportedJob
    from gpuplan.api.services.service_context import ServiceContext


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFlags:
    """What a user adds to a file, as flags of every command that reads one; the name of a flag is its field."""

    tokens: Annotated[
        str | None, typer.Option(metavar="2B", help="With --from: tokens to train on, all epochs together.")
    ] = None
    samples: Annotated[str | None, typer.Option(metavar="N", help="With --from: samples of the data set.")] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="With --from: the data set, counted: JSON lines, JSON, CSV, text, parquet, arrow."
        ),
    ] = None
    gpus: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With --from: processes that the file was written for.")
    ] = None
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --from: the model, where the file names none.")
    ] = None
    length: Annotated[int | None, typer.Option(min=1, metavar="N", help="With --from: tokens of a sequence.")] = None
    by: Annotated[str | None, typer.Option(metavar="3d", help="With --from: the deadline.")] = None
    budget: Annotated[str | None, typer.Option(metavar="USD", help="With --from: the budget.")] = None
    on: Annotated[
        str | None, typer.Option(metavar='"8 x A100"', help="With results of a finished run: what it ran on.")
    ] = None
    like: Annotated[
        str | None, typer.Option(metavar="MODEL", help="With results of a finished run: the model or its class.")
    ] = None

    def stated(self) -> list[str]:
        """The flags that are given, as a user writes them."""
        return [f"--{one.name}" for one in fields(self) if getattr(self, one.name) is not None]


#: Flags that only results of a finished run need.
OF_FINISHED_RUNS = frozenset({"on", "like"})
Root = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder whose files may be read. Default: the git work tree, or the folder."),
]
Online = Annotated[
    bool, typer.Option("--online", help="Ask the Hugging Face hub for a model's configuration and a data set's size.")
]


def with_flags(without: frozenset[str] = frozenset()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the flags that complete a file, but for some, in place of its parameter `flags`."""
    options = {
        name: hint for name, hint in get_type_hints(FileFlags, include_extras=True).items() if name not in without
    }

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(*args: Any, **kwargs: Any) -> None:
            command(*args, flags=FileFlags(**{name: kwargs.pop(name) for name in options}), **kwargs)

        signature = inspect.signature(command)
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in options.items()
        ]
        stated = list(signature.parameters.values())
        at = next(number for number, parameter in enumerate(stated) if parameter.name == "flags")
        replaced = signature.replace(parameters=[*stated[:at], *flags, *stated[at + 1 :]])
        call.__signature__ = replaced  # type: ignore[attr-defined]
        return call

    return decorated


@with_flags()
def import_file(
    source: Annotated[str, typer.Argument(metavar="FILE_OR_ID", help="A configuration, a model folder or a model id.")],
    *,
    flags: FileFlags,
    root: Root = None,
    online: Online = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print facts and job as one JSON object.")] = False,
) -> None:
    """Print the job file of another tool's configuration, with where each value comes from."""
    from gpuplan.api.imports.rendering import as_json as json_of
    from gpuplan.api.imports.rendering import job_file

    made = imported(source, given_by(flags), root=root, online=online)
    if as_json:
        print_json(json_of(made))
    else:
        answers().write(job_file(made))


def given_by(flags: FileFlags) -> "Given":
    """What the flags add to a file; a data set is counted. Raises `UnusableInput`."""
    from gpuplan.api.imports.dataset_count import count_dataset
    from gpuplan.api.imports.job_from_facts import Given

    given = {one.name: getattr(flags, one.name) for one in fields(flags)}
    return Given(**given | {"data": None if flags.data is None else count_dataset(flags.data)})


def imported(source: str, given: "Given", *, root: Path | None, online: bool) -> "ImportedJob":
    """The job of a file or model id; in a terminal, asks for what is missing. Raises `UnusableInput`."""
    from gpuplan.api.imports.job_from_facts import job_of
    from gpuplan.api.imports.model_lookup import is_model_id, model_facts
    from gpuplan.api.imports.reading import read_file
    from gpuplan.api.imports.source_files import root_of

    path = Path(source)
    if not path.exists() and (is_model_id(source) or path.suffix not in {".json", ".yaml", ".yml"}):
        return job_of(model_facts(source, online=online), given)
    facts = read_file(path, root)
    made = job_of(facts, given)
    if facts.number("steps") is not None or not any(one.field == "tokens" for one in made.missing):
        return made
    from dataclasses import replace

    from gpuplan.api.imports.named_datasets import named_size

    real = path.resolve()
    size = named_size(facts, real.parent, (root or root_of(real)).resolve(), online=online)
    return made if size is None else job_of(facts, replace(given, data=size))


def understood(source: str, given: "Given", *, root: Path | None, online: bool) -> "ImportedJob":
    """The job of `gpuplan plan --from`; prints to standard error what was understood. Raises `UnusableInput`."""
    from dataclasses import replace

    from gpuplan.api.imports.job_from_facts import job_of
    from gpuplan.api.imports.rendering import summary

    made = imported(source, given, root=root, online=online)
    for line in summary(made):
        sys.stderr.write(f"{plain(line)}\n")
    asked = {"tokens": "tokens", "model": "model", "on": "on", "like": "like"}
    while made.missing and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        one = made.missing[0]
        value = typer.prompt(f"{one.field} ({one.why}; as a flag: {one.say})", err=True)
        if one.field == "sequence_length":
            given = replace(made.given, length=int(value) if value.isdigit() else None)
        else:
            given = replace(made.given, **{asked[one.field]: value})
        made = job_of(made.facts, given)
    return made


def is_of_another_tool(path: str) -> bool:
    """Whether this is a file in a format that `--from` reads, and no job file."""
    from gpuplan.api.cli.command_io import read_job

    if not Path(path).is_file():
        return False
    try:
        if not read_job(path).keys().isdisjoint({"workload", "training", "constraints"}):
            return False
    except UnusableInput:
        pass
    from gpuplan.api.imports.reading import read_file

    try:
        read_file(Path(path))
    except UnusableInput:
        return False
    return True


def source_of(made: "ImportedJob") -> str:
    """`conf/sft.yaml (LLaMA-Factory), sha256 9f86d08...`: the file that a job was read from, for its plan."""
    facts = made.facts
    digest = f", sha256 {facts.sha256}" if facts.sha256 else ""
    return plain(f"{facts.files[0]} ({facts.format}){digest}", limit=300)


def print_cost_as_asked(made: "ImportedJob", answer: PlanAnswer, context: "ServiceContext") -> None:
    """Print to standard error what the job costs on the machines that the file asks for, if it names an accelerator."""
    from gpuplan.api.presentation.machines_as_asked import cost_sentence
    from gpuplan.api.services.machines_as_asked import Asked, cost_as_asked

    machines = made.facts.machines
    if machines is None or not isinstance(answer, PlannedAnswer):
        return
    if machines.accelerator is not None and machines.per_node is not None:
        asked = Asked(accelerator=machines.accelerator, per_node=machines.per_node, nodes=machines.nodes or 1)
    elif machines.instance_type is not None:
        asked = Asked(instance_type=machines.instance_type, nodes=machines.nodes or 1)
    else:
        return
    try:
        cost = cost_as_asked(context, made.complete(), asked, now=datetime.now(UTC))
    except UnusableInput as error:
        sys.stderr.write(f"the machines of {plain(made.facts.files[0])} are not priced: {plain(str(error))}\n")
        return
    sentence = cost_sentence(asked, cost, limit_hours=machines.hours, plan_usd=answer.plan.cost_usd.expected)
    sys.stderr.write(f"{plain(made.facts.files[0])} {sentence}\n")
