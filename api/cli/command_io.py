"""Steps that commands share: read the job, open gpuplan, print one JSON object."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.api.cli.standard_output import answers, console
from gpuplan.catalog.parsing.json_object import JsonObject, without_none

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuplan.api.presentation.sections import Section
    from gpuplan.api.services.composition import Services


def read_job(path: str, *, field: str = "job", accepted: str = "") -> JsonObject:
    """The document in the file at `path`, or on standard input for `-`.

    Raises `UnusableInput` at `field`, which names what the file holds; the message ends with what is `accepted`, if stated.
    """
    from gpuplan.api.schemas.settings_file import MOST_BYTES_READ, read_file
    from gpuplan.catalog.parsing.structured_text import read_document
    from gpuplan.catalog.runtime.errors import UnusableInput

    if path == "-":
        if sys.stdin is None:
            raise UnusableInput.at(
                field, message=f"standard input is closed; name a {field} file, or pipe a {field} in"
            )
        return read_document(sys.stdin.buffer.read(MOST_BYTES_READ), name="standard input")
    return read_document(read_file(Path(path), field=field, accepted=accepted), name=path)


def read_job_or_words(given: list[str]) -> JsonObject:
    """The job of a file or of words such as `llama-3-8b tokens=300B by=14d`. Raises `UnusableInput`."""
    from gpuplan.api.schemas.key_value_words import is_sentence, job_of_words
    from gpuplan.catalog.parsing.quantities import shown
    from gpuplan.catalog.runtime.errors import UnusableInput

    if not given:
        raise UnusableInput.at("JOB", message=f"is missing; {_GIVE}")
    if len(given) == 1 and is_sentence(given[0]) and not Path(given[0]).exists():
        return job_of_words(given[0].split(), example=_WORDS)
    if len(given) == 1 and (given[0] == "-" or "=" not in given[0]) and not names_a_model(given[0]):
        return read_job(given[0], accepted=_GIVE)
    if given[0] == "-" or Path(given[0]).is_file():
        raise UnusableInput.at(
            "JOB", message=f"takes one job file and no words with it; {shown(given[1])} follows {shown(given[0])}"
        )
    return job_of_words(given, example=_WORDS)


def names_a_model(text: str) -> bool:
    """Whether this is the name of a known model, or a model id, and no file."""
    from gpuplan.catalog.runtime.errors import UnusableInput
    from gpuplan.planner.workload.presets import find_preset

    if text == "-" or Path(text).exists():
        return False
    try:
        find_preset(text)
    except UnusableInput:
        return False
    return True


#: A job in words, as messages show it.
_WORDS = "llama-3-8b tokens=300B by=14d"
_GIVE = f"give a job file, the configuration of another tool, or words: {_WORDS}"


def open_gpuplan(
    *, inventory: Path | None = None, settings: Path | None = None, database: str | None = None
) -> "Services":
    """gpuplan configured by the environment; command-line options take precedence."""
    from gpuplan.api.schemas.settings_file import Environment
    from gpuplan.api.services.composition import open_services

    given = without_none(inventory=inventory, settings=settings, database_url=database)
    return open_services(Environment().model_copy(update=given))


def print_json(answer: object) -> None:
    """Print an answer as exactly one JSON document, in ASCII if the terminal's encoding is not UTF-8."""
    from gpuplan.planner.model.wire import wire

    unicode = (answers().encoding or "").lower().replace("-", "") == "utf8"
    answers().write(json.dumps(wire(answer), indent=2, ensure_ascii=not unicode, allow_nan=False) + "\n")


def print_answer[Answer](
    answer: Answer, render: "Callable[[Answer], Sequence[Section] | str]", *, as_json: bool, soft_wrap: bool = False
) -> None:
    """Print an answer as JSON, else as the sections or the line that `render` makes of it."""
    if as_json:
        print_json(answer)
    elif isinstance(shown := render(answer), str):
        console().print(shown)
    else:
        from gpuplan.api.cli.sections import print_sections

        print_sections(shown, soft_wrap=soft_wrap)
