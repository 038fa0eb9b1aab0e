"""A CSV or JSON document of rates as rows of texts, each with the line or place that a message names."""

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gpuplan.catalog.runtime.errors import ProviderFailure

#: A row of the document: texts by column; a missing or empty value is "".
type Row = dict[str, str]

NEEDED = ("instance_type", "accelerator", "accelerator_count", "price_kind")
#: The columns of a list, as docs/own-rates.md explains them: those of the neocloud facts, and the fabric between nodes.
COLUMNS = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "accelerator",
    "accelerator_count",
    "accelerator_memory_gib",
    "vcpus",
    "memory_gib",
    "local_disk_gb",
    "internode_gbps",
    "fabric",
    "intranode_link",
    "price_kind",
    "usd_per_hour",
    "min_nodes",
    "max_nodes",
    "billing_step_seconds",
    "observed_at",
    "source",
    "note",
    "currency",
    "amount",
)
MOST_ROWS = 20_000


def document_rows(text: str, where: str) -> list[tuple[str, Row]]:
    """The rows, each with its place ("line 3" of a CSV file, "entry 2" of a JSON list).

    Raises `ProviderFailure`, naming the column, for a document that is no such list as a whole.
    """
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if not start:
        raise ProviderFailure(f"{where}: is empty; earlier prices stay")
    if start == "<":
        raise ProviderFailure(f"{where}: is an HTML or XML page, neither CSV nor JSON; check the address and any proxy")
    rows = list(_json_rows(text, where) if start in "[{" else _csv_rows(text, where))
    if not rows:
        raise ProviderFailure(f"{where}: has no rows; earlier prices stay")
    return rows


def _csv_rows(text: str, where: str) -> Iterator[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_columns([name.strip() for name in reader.fieldnames or ()], where)
        reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        for row in reader:
            place = f"line {reader.line_num}"
            if None in row or None in row.values():
                raise ProviderFailure(
                    f"{where}: {place} does not have the {len(reader.fieldnames)} cells of its header"
                )
            yield place, {name: value.strip() for name, value in row.items()}
            _check_size(reader.line_num, where)
    except csv.Error as error:
        raise ProviderFailure(f"{where}: line {reader.line_num} is not CSV ({error})") from error


def _json_rows(text: str, where: str) -> Iterator[tuple[str, Row]]:
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise ProviderFailure(f"{where}: is not whole JSON ({error})") from error
    if not isinstance(document, list):
        raise ProviderFailure(f"{where}: its top level is no list; write a list of objects, one per price")
    _check_size(len(document), where)
    for number, entry in enumerate(document, start=1):
        place = f"entry {number}"
        if not isinstance(entry, dict):
            raise ProviderFailure(f"{where}: {place} is no object with columns as keys")
        _check_columns(list(entry), f"{where}: {place}")
        yield place, {name: _text(value, f"{where}: {place}: {name}") for name, value in entry.items()}


def _text(value: Any, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal | None):
        raise ProviderFailure(f"{what} is {value!r:.40}, neither text nor a number")
    return "" if value is None else str(value).strip()


def _check_columns(names: list[str], where: str) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        hint = "; separate columns by commas" if len(names) == 1 else ""
        raise ProviderFailure(f"{where}: column {missing[0]} is missing{hint}")
    if unknown:
        raise ProviderFailure(f"{where}: column {unknown[0]!r:.40} is unknown; accepted: {', '.join(COLUMNS)}")
    if not {"usd_per_hour", "amount"} & set(names):
        raise ProviderFailure(f"{where}: neither column usd_per_hour nor amount (with currency) is there")
    if len(set(names)) < len(names):
        raise ProviderFailure(f"{where}: a column is there twice; keep one")


def _check_size(rows: int, where: str) -> None:
    if rows > MOST_ROWS:
        raise ProviderFailure(f"{where}: has more than {MOST_ROWS:,} rows; list only machines with accelerators")
