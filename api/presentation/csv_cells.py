"""CSV files with cells safe from formula injection: names come from price lists and inventories written by others."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

#: Characters that start a formula in spreadsheets; tab and line end may precede them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?%?")


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, line_end: str = "\n") -> None:
    """Write the rows under a header line as in RFC 4180, which asks for line ends of `\\r\\n`; other keys are left out."""
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator=line_end)
    writer.writeheader()
    writer.writerows(plain_rows(rows))


def plain_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows, with an apostrophe before texts that would be formulas. Numbers are unchanged."""
    for row in rows:
        risky = [name for name, cell in row.items() if _is_formula(cell)]
        yield {**row, **{name: f"'{row[name]}" for name in risky}} if risky else row


def _is_formula(cell: object) -> bool:
    return isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
