"""`gpuplan verify`: a plan recomputed from its snapshot by independent code, and every figure named that is wrong."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.documents import print_json
from api.cli.plan import EXIT_INFEASIBLE, AsJson, InventoryFile
from api.cli.standard_output import console
from api.plan_ids import SAVED

if TYPE_CHECKING:
    from api.app import Gpuplan

EXIT_NOT_VERIFIED = EXIT_INFEASIBLE

PlanFile = Annotated[
    str,
    typer.Argument(
        metavar="PLAN.json",
        help="What gpuplan plan --json printed, - for standard input, or the id of a saved plan.",
    ),
]


def verify(
    plan: PlanFile,
    *,
    as_json: AsJson = False,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the plan's snapshot is stored [GPUPLAN_DATABASE_URL].")
    ] = None,
    inventory: InventoryFile = None,
) -> None:
    """Whether a plan is right: prices, hours, costs, requirements, and that nothing is cheaper."""
    gpuplan = _opened(database, inventory)
    document = gpuplan.saved_plan(plan) if SAVED.fullmatch(plan) and not Path(plan).exists() else read_plan(plan)
    answer = gpuplan.verify(document)
    if as_json:
        print_json(answer)
    else:
        from api.render.verify import render_verification

        console().print(render_verification(answer))
    if answer["outcome"] != "verified":
        raise typer.Exit(EXIT_NOT_VERIFIED)


def read_plan(path: str) -> dict[str, Any]:
    """The document in the file at `path`, or on standard input for `-`. Raises `UnusableInput`."""
    from api.settings import MOST_BYTES_READ, read_file
    from catalog.documents import MAX_BYTES, read_document
    from catalog.errors import UnusableInput

    if path == "-":
        if sys.stdin is None:
            raise UnusableInput.at("plan", message="standard input is closed; name a file, or pipe a plan in")
        text, name = sys.stdin.buffer.read(MOST_BYTES_READ), "standard input"
    else:
        text, name = read_file(Path(path), field="plan"), path
    if len(text) > MAX_BYTES:
        message = (
            f"{name} is larger than {MAX_BYTES:,} bytes (1 MiB), and no plan is; give what gpuplan plan --json prints"
        )
        raise UnusableInput.at("plan", message=message)
    return read_document(text, name=name)


def _opened(database: str | None, inventory: Path | None) -> "Gpuplan":
    """gpuplan as the environment describes it; what is given on the command line goes before."""
    from api.app import Gpuplan
    from api.settings import Environment

    given: dict[str, object] = {"database_url": database, "inventory": inventory}
    return Gpuplan(Environment().model_copy(update={name: each for name, each in given.items() if each is not None}))
