"""Pages of the catalogue as bytes, kept for whoever asks next: a listing is worked out once per snapshot and query."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response

from api.http.caching import caching_headers, not_modified

#: All kept pages together; a page of 1,000 offers has 0.4 MB.
MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer's bytes, and the headers that come with it beside those of every page that may be kept."""

    body: bytes
    media_type: str
    headers: dict[str, str]


class KeptPages:
    """The pages used last, by ETag, which names all that a page rests on; safe to share between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """With nothing kept yet."""
        self._most_bytes, self._bytes = most_bytes, 0
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._changing = threading.Lock()

    def answer(self, request: Request, etag: str, make: Callable[[], Page]) -> Response:
        """304 where the client holds the page, else the page, made where it is not kept."""
        held = not_modified(request, etag)
        # `*` is held by whoever never asked before too: whether there is such a page is not known yet.
        if held is not None and request.headers["if-none-match"].strip() != "*":
            return held
        page = self._pages.get(etag)
        if page is None:
            page = make()
        self._keep(etag, page)
        return held or Response(page.body, media_type=page.media_type, headers=caching_headers(etag) | page.headers)

    def _keep(self, etag: str, page: Page) -> None:
        """A page that would drive out most others is not kept."""
        if len(page.body) > self._most_bytes // 4:
            return
        with self._changing:
            if etag not in self._pages:
                self._bytes += len(page.body)
            self._pages[etag] = page
            self._pages.move_to_end(etag)
            while self._bytes > self._most_bytes:
                _, oldest = self._pages.popitem(last=False)
                self._bytes -= len(oldest.body)
