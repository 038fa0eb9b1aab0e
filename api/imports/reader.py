"""What a reader of one format is, and the registry: every module of `gpuplan.api.imports.formats` with a `READER`."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located


@dataclass(slots=True, kw_only=True)
class Overrides:
    """Values of a command line by dotted path, at their origin; `used` once a configuration has taken them."""

    values: dict[str, Any]
    origin: Origin
    used: bool = False

    def put_over(self, document: Located) -> Located:
        """The document with these values over its own."""
        self.used = True
        return document.overridden(self.values, self.origin)


class Follow(Protocol):
    """Reads the files that a configuration names, and the commands inside a wrapper.

    `written` are the texts that a script writes to files, by name; they come before files that are there.
    """

    written: dict[str, str]

    def file(self, named: str, facts: TrainingFacts, over: Overrides | None = None) -> bool:
        """Add the facts of a file that is named, with values of a command line over its own.

        False, and an entry among the missing files, if it is not there.
        """

    def included_text(self, named: str) -> str | None:
        """The text of a script that another one includes; None, and no other trace, if it is not there."""

    def script(self, text: str, name: str, line: int, facts: TrainingFacts, variables: dict[str, str]) -> None:
        """Add the facts of the commands of a shell script that starts after `line`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format: `signs` says how surely a document is of it (0 is not at all), `read` states its facts."""

    name: str
    signs: Callable[[Located], int]
    read: Callable[[Located, TrainingFacts, Follow], None]
    #: Whether the format only adds to the facts of another file (how processes are started, how states are sharded).
    overlay: bool = False


@cache
def readers() -> tuple[Reader, ...]:
    """All readers, in the order of their modules' names."""
    package = import_module("gpuplan.api.imports.formats")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = (import_module(f"{package.__name__}.{name}") for name in names)
    return tuple(module.READER for module in modules if hasattr(module, "READER"))


def reader_of(document: Located) -> Reader | None:
    """The reader with the most signs; None if none knows the document."""
    best = max(readers(), key=lambda reader: reader.signs(document))
    return best if best.signs(document) > 0 else None


def has(document: Located, *paths: str) -> int:
    """How many of the paths are in the document, null values included."""
    count = 0
    for path in paths:
        value = document.value
        parts = path.split(".")
        for part in parts[:-1]:
            value = value.get(part) if isinstance(value, dict) else None
        count += isinstance(value, dict) and parts[-1] in value
    return count


__all__ = ["Follow", "Reader", "has", "reader_of", "readers"]
