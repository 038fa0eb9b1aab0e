"""Data as YAML under a heading of comments."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from api.export.notes import commented

#: Texts that libyaml writes otherwise than PyYAML does: escaped past U+FFFF and at U+0085, not at all where half of a
#: pair of surrogates stands alone, and with `...` at the end of the file behind kept newlines.
_NOT_FOR_LIBYAML = re.compile("[\x85\ud800-\udfff\U00010000-\U0010ffff]|\n\n\\Z|\\A\n\\Z")


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Scripts of several lines are blocks that people can read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _dumper(base: type) -> Any:
    made: Any = type("_Dumper", (base,), {})
    made.add_representer(str, _text)
    return made


_PLAIN = _dumper(yaml.SafeDumper)
#: The same text in a third of the time; a PyYAML that was built without libyaml is slow, and says nothing else.
_QUICK = _dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper))


def yaml_text(documents: list[dict[str, Any]], comments: list[str]) -> str:
    """The documents one after the other, keys in the given order; texts that could be read as something else are quoted.

    Values may be any text, keys are names of ours: no longer than a line, not empty.
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
    """Every text in the data but its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
