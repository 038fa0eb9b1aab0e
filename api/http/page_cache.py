"""Pages of the catalogue as bytes, kept for whoever asks next: a listing is worked out once per snapshot and query.

Who reads gzip gets them compressed, once for all who ask: a page of 1,000 offers then has a thirtieth of its bytes, on the
way and in memory. Other answers are not compressed: what is made for one asker would cost each its own time, and an
answer that held a secret beside what its asker wrote would tell by its length how alike they are (BREACH). The catalogue
holds no secrets.
"""

import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from cachetools import LRUCache
from fastapi import Request
from fastapi.responses import Response

from gpuplan.api.http.response_caching import caching_headers, not_modified, sends_any, takes_gzip

#: All kept pages together; a page of 1,000 offers has 0.4 MB.
MOST_BYTES = 16 * 1024 * 1024
#: Shorter pages gain nothing.
_WORTH_COMPRESSING_BYTES = 1024
#: The highest (9) would save an eighth more for twice the work.
_LEVEL = 5
_VARY = {"Vary": "Accept, Accept-Encoding"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer's bytes, and the headers that come with it beside those of every page that may be kept."""

    body: bytes
    media_type: str
    headers: dict[str, str]


class PageCache:
    """The pages used last, by ETag, which names all that a page rests on; safe to share between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """With nothing kept yet."""
        self._pages: LRUCache[str, Page] = LRUCache(most_bytes, getsizeof=lambda page: len(page.body))
        self._changing = threading.Lock()

    def answer(self, request: Request, etag: str, make: Callable[[], Page]) -> Response:
        """304 where the client holds the page, else the page, made where it is not kept."""
        zipped = takes_gzip(request)
        if zipped:
            # Other bytes are another representation, and so have a strong ETag of their own (RFC 9110, section 8.8.3).
            etag = f'{etag.removesuffix(chr(34))}-gzip"'
        held = not_modified(request, etag)
        if held is not None:
            held.headers.update(_VARY)
        # `*` is held by whoever never asked before too: whether there is such a page is not known yet.
        if held is not None and not sends_any(request):
            return held
        with self._changing:
            page = self._pages.get(etag)
        if page is None:
            page = _compressed(make()) if zipped else make()
            self._keep(etag, page)
        headers = caching_headers(etag) | page.headers | _VARY
        return held or Response(page.body, media_type=page.media_type, headers=headers)

    def _keep(self, etag: str, page: Page) -> None:
        """A page that would drive out most others is not kept."""
        if len(page.body) <= self._pages.maxsize // 4:
            with self._changing:
                self._pages[etag] = page


def _compressed(page: Page) -> Page:
    if len(page.body) < _WORTH_COMPRESSING_BYTES:
        return page
    body = gzip.compress(page.body, _LEVEL, mtime=0)
    return replace(page, body=body, headers=page.headers | {"Content-Encoding": "gzip"})
