"""Standard output is for answers alone: what a library prints there, in Python or in C, goes to standard error.

A solver's banner before `--json` would make it no JSON, and one line of it ends a conversation over MCP. So commands
write to `answers()`, and while one runs `sys.stdout` and, in a process of its own, descriptor 1 are standard error.
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

#: Wide enough for every table but the longest names, where there is no terminal and COLUMNS does not say.
WIDTH_WITHOUT_TERMINAL = 120
#: Descriptors below are the standard ones, free to be taken where a process is started without some of them.
_FIRST_PRIVATE = 3
_TRAILING_BLANKS = re.compile(r" +$", re.MULTILINE)


class _Kept:
    """The stream that answers go to while a command line runs."""

    stream: TextIO | None = None


def answers() -> TextIO:
    """Where a command writes its answer."""
    return _Kept.stream or sys.stdout


@contextmanager
def kept_for_answers(*, own_process: bool) -> Iterator[None]:
    """Keeps what is standard output now for `answers()`.

    In a process of its own descriptor 1 becomes standard error for good, since C code writes to it unseen. Elsewhere it
    belongs to whoever called.
    """
    before = _Kept.stream
    if own_process and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = _moved_away(sys.stdout)
    _Kept.stream = sys.stdout
    try:
        yield
    finally:
        if not own_process:
            _Kept.stream = before


def _moved_away(stdout: TextIOWrapper) -> TextIOWrapper:
    """Standard output on a descriptor of its own; as it is where it is no descriptor 1, as in a process without one."""
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


def keep_libraries_off(group: TyperGroup) -> None:
    """While a command of `group` runs, `sys.stdout` is standard error; help, which typer prints itself, is an answer."""
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            keep_libraries_off(command)
        elif isinstance(command, TyperCommand) and command.callback is not None:
            command.callback = _aside(command.callback)


def _aside(callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def aside(*arguments: Any, **options: Any) -> Any:
        with redirect_stdout(sys.stderr):
            return callback(*arguments, **options)

    return aside


class _Trimmed:
    """Writes to `answers()` without the blanks that tables are padded with."""

    def write(self, text: str) -> int:
        """A whole print of rich, which hands over all its lines at once."""
        return answers().write(_TRAILING_BLANKS.sub("", text))

    def flush(self) -> None:
        """As a stream does."""
        answers().flush()

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return answers().isatty()

    def fileno(self) -> int:
        """The descriptor of the answers."""
        return answers().fileno()

    @property
    def encoding(self) -> str:
        """The encoding of the answers."""
        return answers().encoding


def console() -> "Console":
    """Where tables go: no markup, since names are the user's; plain text where there is no terminal.

    As wide as COLUMNS says, else as the terminal, else 120.
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
