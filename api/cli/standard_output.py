"""Reserves standard output for answers: output of libraries, Python or C, goes to standard error.

A solver's banner before the JSON of `--json` would break it, and one such line ends an MCP session. Commands write to
`answers()`. While a command runs, `sys.stdout` is standard error; in a process of its own, so is descriptor 1.
"""

import fcntl
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.console import Console

#: Columns without a terminal and without COLUMNS; wide enough for all but the longest names.
WIDTH_WITHOUT_TERMINAL = 120
#: Lower descriptors are the standard streams, which may be closed when a process starts.
_FIRST_PRIVATE = 3
_TRAILING_BLANKS = re.compile(r" +$", re.MULTILINE)


class _AnswerStream:
    """The stream of answers while a command runs."""

    stream: TextIO | None = None


def answers() -> TextIO:
    """The stream that a command writes its answer to."""
    return _AnswerStream.stream or sys.stdout


@contextmanager
def reserved_for_answers(*, own_process: bool) -> Iterator[None]:
    """Reserve the present standard output for `answers()`.

    In a process of its own, descriptor 1 becomes standard error for good, because C code writes to it directly.
    Elsewhere the descriptor belongs to the caller and stays.
    """
    before = _AnswerStream.stream
    if own_process and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = _moved_away(sys.stdout)
    _AnswerStream.stream = sys.stdout
    try:
        yield
    finally:
        if not own_process:
            _AnswerStream.stream = before


def _moved_away(stdout: TextIOWrapper) -> TextIOWrapper:
    """Standard output moved to a new descriptor; unchanged if it is not descriptor 1."""
    if stdout.fileno() != 1:
        return stdout
    stdout.flush()
    private = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    try:
        os.dup2(2, 1)
    except OSError:  # started without standard error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    moved = TextIOWrapper(os.fdopen(private, "wb"), encoding=stdout.encoding, errors=stdout.errors)
    moved.reconfigure(line_buffering=stdout.line_buffering, write_through=stdout.write_through)
    return moved


def silence_libraries(group: TyperGroup) -> None:
    """While a command of `group` runs, `sys.stdout` is standard error. Help texts, printed by typer, are answers."""
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            silence_libraries(command)
        elif isinstance(command, TyperCommand) and command.callback is not None:
            command.callback = _aside(command.callback)


def _aside(callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def aside(*arguments: Any, **options: Any) -> Any:
        with redirect_stdout(sys.stderr):
            return callback(*arguments, **options)

    return aside


class _Trimmed:
    """Writes to `answers()` without the trailing blanks of padded tables."""

    def write(self, text: str) -> int:
        """Write the output of one `print` of rich, which passes all lines at once."""
        return answers().write(_TRAILING_BLANKS.sub("", text))

    def flush(self) -> None:
        """Flush the answers."""
        answers().flush()

    def isatty(self) -> bool:
        """Whether the answers go to a terminal."""
        return answers().isatty()

    def fileno(self) -> int:
        """The descriptor of the answers."""
        return answers().fileno()

    @property
    def encoding(self) -> str:
        """The encoding of the answers."""
        return answers().encoding


def console() -> "Console":
    """The console for tables: no markup, because names come from users; plain text without a terminal.

    Its width is COLUMNS, else the terminal's, else 120.
    """
    from rich.console import Console

    shown = Console(file=_Trimmed(), markup=False, highlight=False, emoji=False)  # type: ignore[arg-type]
    shown.width = _width()
    return shown


def _width() -> int:
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    try:
        return os.get_terminal_size(answers().fileno()).columns or WIDTH_WITHOUT_TERMINAL
    except OSError:  # no terminal, or no descriptor
        return WIDTH_WITHOUT_TERMINAL
