"""Cursor pages: a cursor pins the snapshot and the filters, so that pages of one listing fit together."""

import base64
import binascii
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel

from api.http.caching import etag_of
from catalog.errors import UnusableInput
from catalog.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the next page starts: the `index`-th match in this snapshot of a listing, which `listed` names by a digest."""

    snapshot_id: str
    listed: str
    index: int

    def text(self) -> str:
        """As clients carry it; its inside is nobody's business."""
        return base64.urlsafe_b64encode(json.dumps([self.snapshot_id, self.listed, self.index]).encode()).decode()


def listing_digest(listing: str, filters: dict[str, str]) -> str:
    """A short name for what is listed, which no other listing and no other filters have."""
    return etag_of(listing, json.dumps(filters, sort_keys=True)).strip('"')[:12]


def read_cursor(text: str, listing: str, filters: dict[str, str]) -> Cursor:
    """The cursor in `text`. Raises `UnusableInput` if it is none, or was given by another listing or for other filters."""
    try:
        snapshot_id, digest, index = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _unusable("is no cursor; accepted: `next_cursor` of the page before") from error
    if not isinstance(snapshot_id, str) or type(index) is not int or not 0 <= index < 2**31:
        raise _unusable("is no cursor; accepted: `next_cursor` of the page before")
    if digest != listing_digest(listing, filters):
        raise _unusable("belongs to another listing, or to other filters; leave both as they were on the page before")
    return Cursor(snapshot_id=snapshot_id, listed=digest, index=index)


@contextmanager
def told_at_cursor(cursor: Cursor | None) -> Iterator[None]:
    """Around what looks up the snapshot that a cursor pins: one that has gone is told at the cursor, which named it."""
    try:
        yield
    except NotStored as error:
        if cursor is None:
            raise
        message = "rests on a snapshot that is no longer stored; begin at the first page"
        raise NotStored.at("cursor", message=message) from error


def next_cursor(snapshot_id: str, listing: str, filters: dict[str, str], index: int | None) -> str | None:
    """The cursor of the page that starts at `index`; None if there is none."""
    if index is None:
        return None
    return Cursor(snapshot_id=snapshot_id, listed=listing_digest(listing, filters), index=index).text()


def next_link(request: Request, query: BaseModel, cursor: str | None) -> dict[str, str]:
    """The header that names the next page of the same query, where there is one (RFC 8288)."""
    if cursor is None:
        return {}
    given = query.model_dump(exclude_none=True, exclude={"cursor"}) | {"cursor": cursor}
    return {"Link": f'<{request.url.path}?{urlencode(given)}>; rel="next"'}


def _unusable(message: str) -> UnusableInput:
    return UnusableInput.at("cursor", message=message)
