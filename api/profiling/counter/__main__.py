"""Entry point of the child process: `python .../counter REQUEST RESULT` reads one file and writes one, without output.

The syntax suits very old interpreters, so that they can report that they are too old.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

NAME = "gpuplan_counter"
OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 4)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """The counts or the error, ready for JSON."""
    if sys.version_info < OLDEST_PYTHON:
        return refused("python", "it is Python %d.%d; accepted: Python 3.10 or newer" % sys.version_info[:2])  # noqa: UP031
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except (ImportError, OSError) as error:
        return refused("python", f"it cannot import torch ({error}); accepted: an interpreter with torch 2.4 or newer")
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < OLDEST_TORCH:
        return refused("python", f"its torch is {torch.__version__}; accepted: torch 2.4 or newer")
    from gpuplan_counter.refusal import Refused  # type: ignore[import-not-found, unused-ignore]
    from gpuplan_counter.run import count  # type: ignore[import-not-found, unused-ignore]

    try:
        counts: dict[str, Any] = count(request)
    except Refused as error:
        return refused(error.field, error.message)
    return counts


def refused(field: str, message: str) -> dict[str, Any]:
    """The result of a refused request."""
    return {"error": {"field": field, "message": message}}


def load_package() -> None:
    """Import this folder under its own name, and put the user's working directory on the path instead."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[0] = os.getcwd()  # noqa: PTH109
    spec = importlib.util.spec_from_file_location(
        NAME,
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    if spec is None or spec.loader is None:
        raise ImportError(folder)
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)


def main() -> None:
    """Answer the request. A fork made by the user's code exits silently."""
    pid = os.getpid()
    load_package()
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        request = json.load(file)
    result = run(request)
    if os.getpid() == pid:
        unfinished = sys.argv[2] + ".unfinished"
        with open(unfinished, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(result, file)
        os.replace(unfinished, sys.argv[2])  # noqa: PTH105
    sys.stdout.flush()
    # Exit without waiting for threads and exit handlers of the user's code.
    os._exit(0)


if __name__ == "__main__":
    main()
