"""Pages that are kept: made once, within their bytes, and never under the name of another."""

import gzip

import pytest
from fastapi.responses import Response
from starlette.requests import Request

from gpuplan.api.http.page_cache import Page, PageCache


def asked(**headers: str) -> Request:
    return Request(
        {"type": "http", "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]}
    )


class Making:
    """Makes pages of so many bytes and counts them."""

    def __init__(self, size: int) -> None:
        self.size, self.made = size, 0

    def __call__(self) -> Page:
        self.made += 1
        return Page(body=b"x" * self.size, media_type="application/json", headers={"Link": "<next>"})


def ask(pages: PageCache, etag: str, make: Making) -> Response:
    return pages.answer(asked(), etag, make)


def test_a_page_is_made_once_and_given_again_with_its_headers() -> None:
    pages, make = PageCache(), Making(10)
    first, again = (ask(pages, '"a"', make) for _ in range(2))
    assert make.made == 1
    assert first.body == again.body
    assert (again.headers["etag"], again.headers["link"]) == ('"a"', "<next>")


def test_a_client_that_holds_the_page_gets_none_and_none_is_made() -> None:
    make = Making(10)
    answer = PageCache().answer(asked(if_none_match='"b", "a"'), '"a"', make)
    assert (answer.status_code, make.made) == (304, 0)


def test_pages_used_longest_ago_are_forgotten_first() -> None:
    pages, makes = PageCache(most_bytes=40), [Making(10) for _ in range(5)]
    for number in (0, 1, 2, 3, 0, 4, 0, 1):
        ask(pages, f'"{number}"', makes[number])
    assert [make.made for make in makes] == [1, 2, 1, 1, 1]


def test_a_page_that_would_drive_out_the_others_is_not_kept() -> None:
    pages, small, large = PageCache(most_bytes=40), Making(10), Making(11)
    for etag, make in (('"s"', small), ('"l"', large), ('"l"', large), ('"s"', small)):
        ask(pages, etag, make)
    assert (small.made, large.made) == (1, 2)


def test_who_reads_gzip_gets_the_page_compressed_once_and_under_a_name_of_its_own() -> None:
    pages, make = PageCache(), Making(5_000)
    plain = ask(pages, '"a"', make)
    zipped = [pages.answer(asked(accept_encoding="br, gzip"), '"a"', make) for _ in range(2)]
    assert make.made == 2
    assert [response.headers["content-encoding"] for response in zipped] == ["gzip", "gzip"]
    assert gzip.decompress(bytes(zipped[0].body)) == plain.body
    assert zipped[0].body == zipped[1].body
    assert (plain.headers["etag"], zipped[0].headers["etag"]) == ('"a"', '"a-gzip"')
    assert "content-encoding" not in plain.headers
    assert {response.headers["vary"] for response in (plain, *zipped)} == {"Accept, Accept-Encoding"}
    held = pages.answer(asked(accept_encoding="gzip", if_none_match='"a-gzip"'), '"a"', make)
    assert (held.status_code, held.headers["vary"]) == (304, "Accept, Accept-Encoding")
    assert pages.answer(asked(accept_encoding="gzip", if_none_match='"a"'), '"a"', make).status_code == 200
    assert "content-encoding" not in pages.answer(asked(accept_encoding="gzip;q=0"), '"a"', make).headers


def test_a_short_page_is_never_compressed() -> None:
    answer = PageCache().answer(asked(accept_encoding="gzip"), '"a"', Making(1_000))
    assert "content-encoding" not in answer.headers
    assert len(answer.body) == 1_000


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ([], False),
        ([""], False),
        (["gzip"], True),
        (["br, GZIP ; q=0.5"], True),
        (["deflate", "gzip"], True),
        (["x-gzip"], True),
        (["*"], True),
        (["*;q=0"], False),
        (["*;q=0, gzip"], True),
        (["gzip;q=0, *"], False),
        (["gzip;q=0.000"], False),
        (["identity"], False),
    ],
)
def test_gzip_is_given_to_who_reads_it(lines: list[str], read: bool) -> None:
    headers = [(b"accept-encoding", line.encode()) for line in lines]
    answer = PageCache().answer(Request({"type": "http", "headers": headers}), '"a"', Making(9_000))
    assert (answer.headers.get("content-encoding") == "gzip") is read
