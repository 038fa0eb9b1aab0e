"""Cursor pages: a cursor pins the snapshot and the filters, so that the pages of one listing are consistent."""

import base64
import binascii
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel

from gpuplan.api.http.response_caching import etag_of
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the next page starts: the match at `index` in this snapshot of a listing; `listed` is the digest of listing
    and filters.
    """

    snapshot_id: str
    listed: str
    index: int

    def text(self) -> str:
        """The opaque text that clients send back."""
        return base64.urlsafe_b64encode(json.dumps([self.snapshot_id, self.listed, self.index]).encode()).decode()


def listing_digest(listing: str, filters: dict[str, str]) -> str:
    """A digest that identifies a listing and its filters."""
    return etag_of(listing, json.dumps(filters, sort_keys=True)).strip('"')[:12]


def read_cursor(text: str, listing: str, filters: dict[str, str]) -> Cursor:
    """Read a cursor. Raises `UnusableInput` if the text is no cursor, or belongs to another listing or other filters."""
    try:
        snapshot_id, digest, index = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _unusable("is not a cursor; accepted: `next_cursor` of the previous page") from error
    if not isinstance(snapshot_id, str) or type(index) is not int or not 0 <= index < 2**31:
        raise _unusable("is not a cursor; accepted: `next_cursor` of the previous page")
    if digest != listing_digest(listing, filters):
        raise _unusable(
            "belongs to another listing or to other filters; use the same listing and filters as on the previous page"
        )
    return Cursor(snapshot_id=snapshot_id, listed=digest, index=index)


@contextmanager
def shown_at_cursor(cursor: Cursor | None) -> Iterator[None]:
    """Report a missing snapshot at the field `cursor`, which named it."""
    try:
        yield
    except NotStored as error:
        if cursor is None:
            raise
        message = "refers to a snapshot that is no longer stored; start again at the first page"
        raise NotStored.at("cursor", message=message) from error


def next_cursor(snapshot_id: str, listing: str, filters: dict[str, str], index: int | None) -> str | None:
    """The cursor of the page that starts at `index`; None if there is no such page."""
    if index is None:
        return None
    return Cursor(snapshot_id=snapshot_id, listed=listing_digest(listing, filters), index=index).text()


def next_link(request: Request, query: BaseModel, cursor: str | None) -> dict[str, str]:
    """The `Link` header of the next page of the same query, if there is one (RFC 8288)."""
    if cursor is None:
        return {}
    given = query.model_dump(exclude_none=True, exclude={"cursor"}) | {"cursor": cursor}
    return {"Link": f'<{request.url.path}?{urlencode(given)}>; rel="next"'}


def _unusable(message: str) -> UnusableInput:
    return UnusableInput.at("cursor", message=message)
