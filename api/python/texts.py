"""Answers as plain text, drawn as the command line draws them."""

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from gpuplan.api.presentation.sections import Section

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of a whole answer: wide enough for every table but the longest names.
_WIDTH = 120


def short_text(sections: Sequence[Section], *, rest: str) -> str:
    """A short answer: at most 25 lines of 80 columns."""
    from gpuplan.api.cli.sections import print_short

    return _drawn(lambda console: print_short(sections, rest, on=console))


def whole_text(sections: Sequence[Section]) -> str:
    """A whole answer, 120 columns wide."""
    from gpuplan.api.cli.sections import print_sections

    return _drawn(lambda console: print_sections(sections, on=console))


def _drawn(draw: Callable[["Console"], None]) -> str:
    from rich.console import Console

    written = StringIO()
    draw(
        Console(
            file=written,
            width=_WIDTH,
            color_system=None,
            force_terminal=False,
            force_jupyter=False,
            markup=False,
            highlight=False,
            emoji=False,
        )
    )
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
