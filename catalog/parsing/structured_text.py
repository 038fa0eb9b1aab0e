"""Parse user text (YAML or JSON) into plain mappings, lists and scalars, or reject it.

YAML is limited to a small dialect: text, numbers, true/false and null, in mappings and lists. `no` and `2026-12-01` stay
text, `4e6` is a number. Anchors, aliases, tags, duplicate keys and documents that are too large or too deep are rejected
with a specific message.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput

#: PyYAML's events carry marks, anchors and tags, which its stubs omit.
Event = Any
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
#: YAML 1.2 core schema, without octal and hexadecimal; a leading zero (`007`) stays text.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(?:nan|NaN|NAN)")
#: Integers with more digits become floats: no quantity needs them exactly.
_EXACT_DIGITS = 40


def read_document(text: bytes | str, *, name: str) -> dict[str, Any]:
    """The mapping in `text`; `name` (a file name) appears in error messages.

    Raises `UnusableInput` for text that is too large (1 MiB), binary, empty, not YAML or JSON, deeper than 32 levels, not a
    mapping, or that uses anchors, aliases, tags or a key twice.
    """
    decoded = _decode(text, name)
    if decoded.lstrip()[:1] == "{" or name.lower().endswith(".json"):
        try:
            return _read_json(decoded, name)
        except json.JSONDecodeError as error:
            if name.lower().endswith(".json"):
                raise _refused(name, f"not valid JSON: {error.msg}", error.lineno, error.colno) from None
    return _read_yaml(decoded, name)


def _refused(name: str, what: str, line: int | None = None, column: int | None = None) -> UnusableInput:
    where = f" line {line}" if line else ""
    where += f", column {column}" if line and column else ""
    return UnusableInput.at(message=f"{name}{where}: {what}")


def _decode(text: bytes | str, name: str) -> str:
    if len(text) > MAX_BYTES:
        raise _refused(
            name, f"larger than {MAX_BYTES:,} bytes (1 MiB), and no job is; a document may have at most that"
        )
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        decoded.encode("utf-8")
    except UnicodeError:
        raise _refused(name, "not UTF-8 text; write a YAML or JSON document in UTF-8") from None
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", decoded):
        raise _refused(name, "holds control characters, so it is binary; write a YAML or JSON document")
    if not decoded.strip():
        raise _refused(name, "empty; write a YAML or JSON document with at least one key")
    return decoded


def _top_level(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", type(None): "nothing"}.get(type(value), "a single value")
        raise _refused(name, f"the document is {kind}; its top level must be a mapping of keys to values")
    return value


# --- JSON ---------------------------------------------------------------------------------------


def _read_json(text: str, name: str) -> dict[str, Any]:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for key, value in pairs:
            if key in document:
                raise _refused(name, f"the key {shown(key)} is given twice; keep one")
            document[key] = value
        return document

    try:
        value = json.loads(text, object_pairs_hook=mapping, parse_int=_integer)
    except RecursionError:
        raise _too_deep(name) from None
    _check_depth(value, name)
    if "\\u" in text:  # only escapes can encode half a surrogate pair
        _refuse_half_characters(value, name)
    return _top_level(value, name)


def _refuse_half_characters(value: object, name: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise _refused(name, "holds half of a surrogate pair, which is no character; write the character") from None


def _too_deep(name: str, line: int | None = None) -> UnusableInput:
    return _refused(name, f"nested more than {MAX_DEPTH} levels deep", line)


def _check_depth(value: object, name: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return
    raise _too_deep(name)


def _members(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


# --- YAML ---------------------------------------------------------------------------------------


def _read_yaml(text: str, name: str) -> dict[str, Any]:
    try:
        return _top_level(_Builder(name).build(text), name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise _refused(name, f"not valid YAML: {error.problem or error.context}", line, column) from None
    except yaml.YAMLError as error:
        raise _refused(name, f"not valid YAML: {str(error).splitlines()[0]}") from None


class _Builder:
    """Builds values from parser events, because only events show aliases and tags."""

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, text: str) -> Any:
        """The one document in `text`."""
        value: Any = None
        documents = 0
        events: Iterator[Event] = iter(yaml.parse(text, Loader=Loader))
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._at(event, "a second document starts here; write one document per file")
                value = self._value(next(events), events, 0)
        return value

    def _at(self, event: Event, what: str) -> UnusableInput:
        return _refused(self.name, what, event.start_mark.line + 1, event.start_mark.column + 1)

    def _value(self, event: Event, events: Iterator[Event], depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            # A plain scalar has style None from one parser and '' from the other.
            return event.value if event.style else _scalar(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, depth)
        return self._mapping(events, depth)

    def _check(self, event: Event, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._at(event, f"the alias *{(event.anchor or '')[:40]} is not accepted; write the value out")
        if event.anchor:
            raise self._at(event, f"the anchor &{event.anchor[:40]} is not accepted; remove it")
        if event.tag:
            raise self._at(event, f"the tag {shown(event.tag)} is not accepted; remove it")
        if depth > MAX_DEPTH:
            raise _too_deep(self.name, event.start_mark.line + 1)

    def _list(self, events: Iterator[Event], depth: int) -> list[Any]:
        items: list[Any] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._value(event, events, depth + 1))
        return items

    def _mapping(self, events: Iterator[Event], depth: int) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            self._check(event, depth)
            if not isinstance(event, yaml.ScalarEvent):
                raise self._at(event, "a key must be text, not a list or a mapping")
            if event.value in document:
                raise self._at(event, f"the key {shown(event.value)} is given twice; keep one")
            document[event.value] = self._value(next(events), events, depth + 1)
        return document


def _scalar(text: str) -> str | int | float | bool | None:
    """A plain scalar by the small schema; text unless it is a number, boolean or null."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _NOT_FINITE.fullmatch(text):
        return float(f"{match[1] or ''}{'inf' if match[2] else 'nan'}")
    return text


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _EXACT_DIGITS else float(digits)
