"""CSV cells safe from formula injection: names come from price lists and inventories written by others."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: Characters that start a formula in spreadsheets; tab and line end may precede them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?%?")


def plain_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows, with an apostrophe before texts that would be formulas. Numbers are unchanged."""
    for row in rows:
        risky = [name for name, cell in row.items() if _is_formula(cell)]
        yield {**row, **{name: f"'{row[name]}" for name in risky}} if risky else row


def _is_formula(cell: object) -> bool:
    return isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
