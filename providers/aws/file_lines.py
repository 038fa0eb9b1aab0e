"""A price file of hundreds of megabytes as the few lines that matter, in constant memory.

The CSV begins with a preamble of some lines, then the names of the columns (from "SKU"), then a line
per price. Lines are looked at as bytes first: parsing all of them would take minutes.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import httpx

from catalog.errors import ProviderFailure
from providers.aws.price_rows import plain_name
from providers.said import shown_url
from providers.web import opened, patiently, web_client

#: No preamble is longer than this; what has no header by then is no price file.
MOST_PREAMBLE_LINES = 100
#: A line longer than this is no line of a price file, and must not fill the memory.
LONGEST_LINE_BYTES = 1_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
type Line = dict[str, str]


def read_patiently[T](url: str, read: Callable[[httpx.Response], T]) -> T:
    """What `read` makes of the open answer of `url`, from the start again if the connection breaks.

    Raises `NotThere` for a 404, `ProviderFailure` for what still fails after some attempts and for an HTML page.
    """

    def once() -> T:
        with web_client() as client, opened(client, url) as response:
            if response.headers.get("content-type", "").startswith("text/html"):
                raise ProviderFailure(f"{shown_url(url)}: answered with an HTML page; check the endpoint and any proxy")
            return read(response)

    return patiently(once, url)


def csv_lines(response: httpx.Response, needles: Mapping[str, str]) -> Iterator[Line]:
    """The lines of a price file that hold every needle, by the plain names of the columns; empty cells left out.

    `needles` are texts by the plain name of the column they stand in: one whose column the file lacks is
    not looked for. Raises `httpx.RemoteProtocolError` for a file that ends in the middle of a line,
    `ProviderFailure` for one without a header.
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
    """The lines of a stream of bytes, without their ends; the last may lack one."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > LONGEST_LINE_BYTES:
            raise httpx.RemoteProtocolError("a line of the file does not end")
    if rest:
        yield rest
