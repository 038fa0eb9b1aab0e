"""Rows as a CSV file to keep, made and sent some thousand at a time."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi.responses import StreamingResponse

from api.csv_cells import plain_rows
from api.web.pages import HEADERS

_ROWS_PER_CHUNK = 1_000


def csv_file(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], name: str) -> StreamingResponse:
    """The rows under a heading (RFC 4180) as a file of this name; what is not among the columns is left out."""
    headers = HEADERS | {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_chunks(columns, rows), media_type="text/csv", headers=headers)


def _chunks(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    for number, row in enumerate(plain_rows(rows), 1):
        writer.writerow(row)
        if number % _ROWS_PER_CHUNK == 0:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()
