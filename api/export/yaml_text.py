"""Data as YAML under a heading of comments."""

from typing import Any

import yaml

from api.export.notes import commented


def yaml_text(documents: list[dict[str, Any]], comments: list[str]) -> str:
    """The documents one after the other, keys in the given order; texts that could be read as something else are quoted."""
    dumped = yaml.safe_dump_all(
        documents, sort_keys=False, allow_unicode=True, width=10_000, explicit_start=len(documents) > 1
    )
    return commented(comments) + dumped
