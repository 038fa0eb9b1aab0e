"""Data as YAML under a heading of comments."""

from typing import Any

import yaml

from api.export.notes import commented


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, with scripts of several lines as blocks that people can read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(documents: list[dict[str, Any]], comments: list[str]) -> str:
    """The documents one after the other, keys in the given order; texts that could be read as something else are quoted."""
    dumped: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        explicit_start=len(documents) > 1,
    )
    return commented(comments) + dumped
