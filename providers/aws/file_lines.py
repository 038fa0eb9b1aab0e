"""Read the relevant lines of a price file of hundreds of megabytes, in constant memory.

The CSV begins with a preamble of some lines, then the names of the columns (from "SKU"), then a line per price. Lines are
filtered as bytes first, because parsing all of them would take minutes.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import httpx

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.aws.price_rows import plain_name
from gpuplan.providers.error_redaction import shown_url
from gpuplan.providers.feed_client import open_stream, patiently, web_client

#: Longer than any preamble; a file without a header by then is not a price file.
MOST_PREAMBLE_LINES = 100
#: Longer than any line of a price file; bounds the memory.
LONGEST_LINE_BYTES = 1_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
type Line = dict[str, str]


def read_patiently[T](url: str, read: Callable[[httpx.Response], T]) -> T:
    """The result of `read` on the open answer of `url`, restarted if the connection breaks.

    Raises `NotThere` for a 404, `ProviderFailure` for a persistent failure and for an HTML page.
    """

    def read_attempt() -> T:
        with web_client() as client, open_stream(client, url) as response:
            if response.headers.get("content-type", "").startswith("text/html"):
                raise ProviderFailure(f"{shown_url(url)}: answered with an HTML page; check the endpoint and any proxy")
            return read(response)

    return patiently(read_attempt, url)


def csv_lines(response: httpx.Response, needles: Mapping[str, str]) -> Iterator[Line]:
    """The lines of a price file that contain every needle, by the plain names of the columns, without empty cells.

    `needles` maps the plain name of a column to the text to find; a needle whose column the file lacks is ignored. Raises
    `httpx.RemoteProtocolError` for a file that ends in the middle of a line, `ProviderFailure` for one without a header.
    """
    lines = split_lines(response.iter_bytes())
    columns = _columns(lines, shown_url(str(response.url)))
    wanted = [text.encode() for column, text in needles.items() if column in columns]
    line = b""
    for line in lines:
        if all(needle in line for needle in wanted):
            cells = _whole_cells(line, len(columns))
            yield {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if cell.strip()}
    if line.strip():
        _whole_cells(line, len(columns))


def _whole_cells(line: bytes, count: int) -> list[str]:
    cells = _cells(line)
    if len(cells) < count:
        raise httpx.RemoteProtocolError("the file ends or breaks in the middle of a line")
    return cells


def _cells(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode("utf-8", "replace")]), [])
    except csv.Error as error:
        raise httpx.RemoteProtocolError(f"a line of the file cannot be read ({error})") from error


def _columns(lines: Iterator[bytes], shown: str) -> list[str]:
    for line in islice(lines, MOST_PREAMBLE_LINES):
        cells = _cells(line.removeprefix(BYTE_ORDER_MARK))
        if len(cells) > 1 and plain_name(cells[0]) == "sku":
            return [plain_name(cell) for cell in cells]
    raise ProviderFailure(f"{shown}: no line of column names that begins with SKU; this is no AWS price file")


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream of bytes, without line ends; the last line may lack one."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > LONGEST_LINE_BYTES:
            raise httpx.RemoteProtocolError("a line of the file does not end")
    if rest:
        yield rest
