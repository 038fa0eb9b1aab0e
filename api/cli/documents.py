"""What every command does first and last: read the job, open gpuplan, print one JSON object."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.cli.standard_output import answers

if TYPE_CHECKING:
    from api.app import Gpuplan


def read_job(path: str) -> dict[str, Any]:
    """The document in the file at `path`, or on standard input for `-`. Raises `UnusableInput`."""
    from api.settings import MOST_BYTES_READ, read_file
    from catalog.documents import read_document
    from catalog.errors import UnusableInput

    if path == "-":
        if sys.stdin is None:
            raise UnusableInput.at("job", message="standard input is closed; name a job file, or pipe a job in")
        return read_document(sys.stdin.buffer.read(MOST_BYTES_READ), name="standard input")
    return read_document(read_file(Path(path), field="job"), name=path)


def open_gpuplan(*, inventory: Path | None = None, settings: Path | None = None) -> "Gpuplan":
    """gpuplan as the environment describes it; an option given on the command line goes before."""
    from api.app import Gpuplan
    from api.settings import Environment

    given = {"inventory": inventory, "settings": settings}
    return Gpuplan(Environment().model_copy(update={name: path for name, path in given.items() if path is not None}))


def print_json(answer: object) -> None:
    """Exactly one JSON document on standard output, in ASCII where the terminal knows no more."""
    unicode = (answers().encoding or "").lower().replace("-", "") == "utf8"
    answers().write(json.dumps(answer, indent=2, ensure_ascii=not unicode, allow_nan=False) + "\n")
