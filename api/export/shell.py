"""Shell scripts as lists of lines: every value is quoted, and what the shell is to expand is marked as such."""

import shlex
from collections.abc import Iterable, Mapping


class Expanded(str):
    """Text of our own that the shell expands, quotes included: `"$NODE_RANK"`. Never a user's."""

    __slots__ = ()


def words(given: Iterable[str]) -> str:
    """The words as one command, each quoted but for what is to be expanded."""
    return " ".join(each if isinstance(each, Expanded) else shlex.quote(each) for each in given)


def command(*given: str, options: Iterable[tuple[str, ...]] = ()) -> str:
    """A command with each option on a line of its own."""
    return " \\\n  ".join([words(given), *(words(each) for each in options)])


def exports(variables: Mapping[str, str]) -> list[str]:
    """The variables as lines that set and export them; quotes always, since a bare value may begin with `=`."""
    return [f"export {name}={_quoted(value)}" for name, value in variables.items()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def here_document(target: str, lines: Iterable[str], *, mark: str = "GPUPLAN_END") -> list[str]:
    """Lines that write `lines` to `target` untouched; none of them may be the mark itself."""
    kept = [part for line in lines for part in line.split("\n")]
    if mark in kept:
        raise ValueError(f"a line of the document is its own end mark {mark}")
    return [f"cat > {target} <<'{mark}'", *kept, mark]


def here_variable(name: str, lines: Iterable[str]) -> list[str]:
    """Lines that export `lines` as the text of a variable."""
    return [f"export {name}={_quoted(chr(10).join(lines))}"]
