"""CSV downloads, streamed in chunks of some thousand rows."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi.responses import StreamingResponse

from gpuplan.api.presentation.csv_cells import plain_rows
from gpuplan.api.web.page_rendering import HEADERS

_ROWS_PER_CHUNK = 1_000


def csv_file(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], name: str) -> StreamingResponse:
    """The rows under a header (RFC 4180) as a file of this name, limited to `columns`."""
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
