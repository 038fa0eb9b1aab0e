"""Writes data as YAML below comments."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from gpuplan.api.exports.file_comments import commented
from gpuplan.catalog.parsing.json_object import JsonObject

#: Texts that libyaml writes differently than PyYAML: it escapes above U+FFFF and at U+0085, fails at a lone surrogate,
#: and adds `...` after kept line breaks at the end of the file, among them U+2028 and U+2029.
_NOT_FOR_LIBYAML = re.compile("[\x85\u2028\u2029\ud800-\udfff\U00010000-\U0010ffff]|\n\n\\Z|\\A\n\\Z")


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Represent multi-line scripts as readable blocks."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _dumper(base: type) -> Any:
    made: Any = type("_Dumper", (base,), {})
    made.add_representer(str, _text)
    return made


_PLAIN = _dumper(yaml.SafeDumper)
#: libyaml gives the same text in a third of the time; PyYAML without libyaml is only slower.
_QUICK = _dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper))


def yaml_text(documents: list[JsonObject], comments: list[str]) -> str:
    """The documents in order, with keys in the given order; ambiguous texts are quoted.

    Values may be any text. Keys are our own names: not empty and shorter than a line.
    """
    dumped: str = yaml.dump_all(
        documents,
        Dumper=_PLAIN if any(_NOT_FOR_LIBYAML.search(text) for text in _texts(documents)) else _QUICK,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        explicit_start=len(documents) > 1,
    )
    return commented(comments) + dumped


def _texts(value: Any) -> Iterator[str]:
    """All texts of the data except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
