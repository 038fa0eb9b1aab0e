"""Errors of the user's code, described in one line with the place."""

from __future__ import annotations

import contextlib
import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 300


class Refused(Exception):
    """`field` of the command line cannot be used; `message` gives the reason and accepted values."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@contextlib.contextmanager
def running(what: str, field: str = "target") -> Iterator[None]:
    """Turn any exception of the user's code during `what` into `Refused`."""
    try:
        yield
    except (Refused, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 other people's code raises anything, SystemExit and MemoryError included
        raise Refused(field, f"{what} raised {described(error)}") from None


def described(error: BaseException) -> str:
    """Kind, first line and place of an exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = type(error).__name__ + (f": {lines[0]}" if lines else "")
    return (text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…") + _place(error)


def _place(error: BaseException) -> str:
    """The innermost line of the user's code in the traceback."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        theirs = not frame.filename.startswith((folder, "<"))
        if theirs and f"{os.sep}site-packages{os.sep}" not in frame.filename:
            return f" ({os.path.basename(frame.filename)} line {frame.lineno})"  # noqa: PTH119
    return ""
