"""Other people's YAML and JSON as plain values with the line of each key, within bounds of size, depth and expansion.

Their files are read as their tools read them: YAML 1.1 scalars, aliases, several documents, trailing commas and
`Infinity` in JSON. Tags are ignored, so nothing is ever constructed.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gpuplan.api.imports.facts import Origin
from gpuplan.catalog.runtime.errors import UnusableInput

#: PyYAML's events carry marks, anchors and tags, which its stubs omit.
Event = Any
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Largest configuration; the largest of 98 collected ones has 60 kB. Lists of weights and logs of a run have their own bound.
MOST_BYTES = 1024 * 1024
_DEEPEST = 48
#: Values after aliases are expanded; a file of 1 MiB with more is a bomb.
_MOST_VALUES = 200_000

_TRUE = {"true", "yes", "on"}
_FALSE = {"false", "no", "off"}
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_REAL = re.compile(r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]*(?:[eE][-+]?[0-9]+)?")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A document: plain values, and the line of each key and item by its path.

    `changed` are the dotted paths that a command line states over the file, which it does at `command`.
    """

    name: str
    value: Any
    lines: Mapping[Path, int]
    text: str = ""
    changed: frozenset[str] = frozenset()
    command: Origin | None = None

    def at(self, *dotted: str, because: str = "") -> Origin:
        """The origin of the first of these paths that is there."""
        for path in dotted:
            if path in self.changed and self.command is not None:
                return Origin(file=self.command.file, line=self.command.line, because=because)
        line = next((line for path in dotted if (line := self.line(path)) is not None), None)
        return Origin(file=self.name, line=line, because=because)

    def overridden(self, values: Mapping[str, Any], command: Origin) -> "Located":
        """The same document with values by dotted path over its own."""
        made = self.value
        for dotted, value in values.items():
            made = _with(made, dotted.split("."), value)
        return Located(
            name=self.name,
            value=made,
            lines=self.lines,
            text=self.text,
            changed=self.changed | frozenset(values),
            command=command,
        )

    def first(self, *dotted: str) -> Any:
        """The value of the first of these paths that is there."""
        return next((value for path in dotted if (value := self.get(path)) is not None), None)

    def find(self, dotted: str) -> tuple[Any, int | None] | None:
        """The value at a dotted path and its line; None if the path is absent or null."""
        value: Any = self.value
        path: Path = ()
        for part in dotted.split("."):
            if isinstance(value, dict) and part in value:
                value, path = value[part], (*path, part)
            elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value, path = value[int(part)], (*path, int(part))
            else:
                return None
        return None if value is None else (value, self.lines.get(path))

    def get(self, dotted: str) -> Any:
        """The value at a dotted path; None if it is absent."""
        place = self.find(dotted)
        return None if place is None else place[0]

    def line(self, dotted: str) -> int | None:
        """The line of a dotted path; None if it is absent."""
        place = self.find(dotted)
        return None if place is None else place[1]

    def under(self, dotted: str) -> "Located":
        """The part at a dotted path as a document of its own; empty if it is absent."""
        path: Path = tuple(dotted.split("."))
        value = self.get(dotted)
        lines = {where[len(path) :]: line for where, line in self.lines.items() if where[: len(path)] == path}
        inner = value if isinstance(value, dict) else {}
        return Located(name=self.name, value=inner, lines=lines, text=self.text)


def _with(level: Any, keys: list[str], value: Any) -> Any:
    if not keys:
        return value
    if isinstance(level, list) and keys[0].isdigit() and int(keys[0]) < len(level):
        place = int(keys[0])
        return [*level[:place], _with(level[place], keys[1:], value), *level[place + 1 :]]
    inner = level if isinstance(level, dict) else {}
    return inner | {keys[0]: _with(inner.get(keys[0]), keys[1:], value)}


def decoded(content: bytes, name: str) -> str:
    """The text of a file. Raises `UnusableInput` if it is too large, empty or binary."""
    if len(content) > MOST_BYTES:
        raise _refused(
            name, f"larger than {MOST_BYTES // 1024 // 1024} MiB, and no such file is; name the configuration itself"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(name, "not UTF-8 text, so it is binary; name a configuration or a script") from None
    if re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]", text):
        raise _refused(name, "holds control characters, so it is binary; name a configuration or a script")
    if not text.strip():
        raise _refused(name, "empty")
    return text


def read_documents(text: str, name: str) -> list[Located]:
    """The YAML or JSON documents in `text`, those that are mappings.

    Raises `UnusableInput` with the line where it cannot be read, or is nested or expanded beyond the bounds.
    """
    if text.lstrip()[:1] in "{[":
        # JSON has no tab inside a text, and YAML takes none between values.
        text = text.replace("\t", " ")
    try:
        values = list(_Builder(name).documents(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be parsed"
        raise _refused(name, f"neither YAML nor JSON: {problem}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(name, f"neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    return [document for document in values if isinstance(document.value, dict)]


def _refused(name: str, what: str, line: int | None = None) -> UnusableInput:
    return UnusableInput.at(message=f"{name}{f' line {line}' if line else ''}: {what}")


class _Builder:
    """Builds values from parser events: no construction of tags, and bounds on depth and expansion."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.anchors: dict[str, tuple[Any, dict[Path, int], int]] = {}
        self.lines: dict[Path, int] = {}

    def documents(self, text: str) -> Iterator[Located]:
        events: Iterator[Event] = iter(yaml.parse(text, Loader=_Loader))
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors, self.lines = {}, {}
                value = self._value(next(events), events, ())
                yield Located(name=self.name, value=value, lines=self.lines, text=text)

    def _value(self, event: Event, events: Iterator[Event], path: Path) -> Any:
        line = event.start_mark.line + 1
        self._spend(1, line)
        if len(path) > _DEEPEST:
            raise _refused(self.name, f"nested more than {_DEEPEST} levels deep", line)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, path, line)
        before = self.count
        self.lines.setdefault(path, line)
        if isinstance(event, yaml.ScalarEvent):
            value: Any = _text(event.value) if event.style in {"'", '"', "|", ">"} else scalar(event.value)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(events, path)
        else:
            value = self._mapping(events, path)
        if event.anchor:
            anchored_lines = {p[len(path) :]: n for p, n in self.lines.items() if p[: len(path)] == path}
            self.anchors[event.anchor] = (value, anchored_lines, self.count - before + 1)
        return value

    def _aliased(self, event: Event, path: Path, line: int) -> Any:
        known = self.anchors.get(event.anchor)
        if known is None:
            raise _refused(self.name, f"the alias *{event.anchor[:40]} names no anchor before it", line)
        value, lines, size = known
        self._spend(size, line)
        for inner, at in lines.items():
            self.lines.setdefault((*path, *inner), at)
        return value

    def _list(self, events: Iterator[Event], path: Path) -> list[Any]:
        items: list[Any] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._value(event, events, (*path, len(items))))
        return items

    def _mapping(self, events: Iterator[Event], path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = event.value if isinstance(event, yaml.ScalarEvent) else None
            if key is None:
                # A list or mapping as a key, as in templates `{{ x }}`: read past it.
                self._value(event, events, (*path, "?"))
                self._value(next(events), events, (*path, "?"))
                continue
            value_event = next(events)
            self.lines[(*path, key)] = event.start_mark.line + 1
            value = self._value(value_event, events, (*path, key))
            if key == "<<" and not event.style:
                merged += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]
            else:
                made[_text(key)] = value
        for part in merged:
            for key, value in part.items():
                made.setdefault(key, value)
        return made

    def _spend(self, values: int, line: int) -> None:
        self.count += values
        if self.count > _MOST_VALUES:
            raise _refused(self.name, f"expands to more than {_MOST_VALUES:,} values", line)


def _text(text: str) -> str:
    """Text without halves of surrogate pairs, which escapes in JSON may leave."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def scalar(text: str) -> str | int | float | bool | None:
    """A plain scalar by YAML 1.1, with `1e-5` a number as the tools take it, and dates and times left as text."""
    lower = text.lower()
    if lower in {"", "~", "null"}:
        return None
    if lower in _TRUE:
        return True
    if lower in _FALSE:
        return False
    if text[0] in "+-.0123456789":
        return _number(text)
    return _text(text)


def _number(text: str) -> str | int | float:
    plain = text.replace("_", "")
    if _INTEGER.fullmatch(text) and len(plain) <= 40:
        return int(plain)
    if _REAL.fullmatch(text) and any(character.isdigit() for character in text):
        try:
            value = float(plain)
        except ValueError:
            return text
        return value if math.isfinite(value) else text
    return text
