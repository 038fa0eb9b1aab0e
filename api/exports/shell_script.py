"""Builds shell scripts as lists of lines; values are quoted unless marked for expansion."""

import shlex
from collections.abc import Iterable, Mapping


class Expanded(str):
    """Our own text for the shell to expand, with quotes: `"$NODE_RANK"`. Never user input."""

    __slots__ = ()


def words(given: Iterable[str]) -> str:
    """The words as one command; words are quoted unless `Expanded`."""
    return " ".join(word if isinstance(word, Expanded) else shlex.quote(word) for word in given)


def command(*given: str, options: Iterable[tuple[str, ...]] = ()) -> str:
    """A command with one option per line."""
    return " \\\n  ".join([words(given), *(words(option) for option in options)])


def exports(variables: Mapping[str, str]) -> list[str]:
    """Lines that export the variables, always quoted, because a bare value may start with `=`."""
    return [f"export {name}={_quoted(value)}" for name, value in variables.items()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def here_document(target: str, lines: Iterable[str], *, mark: str = "GPUPLAN_END") -> list[str]:
    """Lines that write `lines` to `target` unchanged; none may equal the mark."""
    script = [part for line in lines for part in line.split("\n")]
    if mark in script:
        raise ValueError(f"a line of the document is its own end mark {mark}")
    return [f"cat > {target} <<'{mark}'", *script, mark]


def here_variable(name: str, lines: Iterable[str]) -> list[str]:
    """Lines that export `lines` as the text of a variable."""
    return [f"export {name}={_quoted(chr(10).join(lines))}"]
