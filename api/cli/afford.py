"""`gpuplan afford`: the models that a budget trains, by scaling laws and plans."""

from typing import Annotated

import typer

from gpuplan.api.cli.command_io import open_gpuplan, print_answer
from gpuplan.api.cli.plan import AsJson, InventoryFile, SettingsFile
from gpuplan.api.presentation.afford import afford_sections
from gpuplan.api.schemas.key_value_words import job_of_words
from gpuplan.catalog.parsing.json_object import JsonObject, without_none
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: Stands for a model while words are read, whose sizes are what is asked for.
_ANY_MODEL = "llama-3-8b"


def afford(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD=VALUE ...]", help="Words of plan, such as nvidia in=us nodes=64.", show_default=False
        ),
    ] = None,
    *,
    budget: Annotated[str, typer.Option(metavar="USD", help="The most that training may cost: 50k.")],
    by: Annotated[str | None, typer.Option(metavar="2w", help="The deadline.")] = None,
    data: Annotated[
        str | None, typer.Option(metavar="2T", help="The most tokens that there are to train on; each is seen once.")
    ] = None,
    as_json: AsJson = False,
    inventory: InventoryFile = None,
    settings: SettingsFile = None,
) -> None:
    """Say which model a budget trains: size, tokens and machines by scaling laws, and over-trained alternatives."""
    document = without_none(budget_usd=budget, deadline=by, tokens=data) | _shared(words or [])
    services = open_gpuplan(inventory=inventory, settings=settings)
    answer = services.afford.afford(document)
    print_answer(answer, afford_sections, as_json=as_json)


def _shared(words: list[str]) -> JsonObject:
    """What the words say of every size. Raises `UnusableInput` for a word that says how large or how much."""
    if not words:
        return {}
    document = job_of_words([_ANY_MODEL, *words])
    workload = document.pop("workload")
    length = workload.pop("sequence_length", None)
    asked = [name for name in workload if name not in {"kind", "model"}]
    asked += [name for name in ("budget_usd", "deadline") if name in document]
    if asked:
        raise UnusableInput(
            *(Fault((name,), "is what afford answers, or a flag of it; leave it out") for name in asked)
        )
    return document | ({} if length is None else {"sequence_length": length})
