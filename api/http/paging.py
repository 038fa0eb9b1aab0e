"""Cursor pages: a cursor pins the snapshot and the filters, so that pages of one listing fit together."""

import base64
import binascii
import json
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel

from api.http.caching import etag_of
from catalog.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the next page starts: the `index`-th match of these filters in this snapshot."""

    snapshot_id: str
    filters: str
    index: int

    def text(self) -> str:
        """As clients carry it; its inside is nobody's business."""
        return base64.urlsafe_b64encode(json.dumps([self.snapshot_id, self.filters, self.index]).encode()).decode()


def filters_digest(filters: dict[str, str]) -> str:
    """A short name for a set of filters."""
    return etag_of(json.dumps(filters, sort_keys=True)).strip('"')[:12]


def read_cursor(text: str, filters: dict[str, str]) -> Cursor:
    """The cursor in `text`. Raises `UnusableInput` if it is none, or was given for other filters."""
    try:
        snapshot_id, digest, index = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _unusable("is no cursor; accepted: `next_cursor` of the page before") from error
    if not isinstance(snapshot_id, str) or not isinstance(index, int) or not 0 <= index < 2**31:
        raise _unusable("is no cursor; accepted: `next_cursor` of the page before")
    if digest != filters_digest(filters):
        raise _unusable("belongs to a listing with other filters; leave the filters as they were on the page before")
    return Cursor(snapshot_id=snapshot_id, filters=digest, index=index)


def next_cursor(snapshot_id: str, filters: dict[str, str], index: int | None) -> str | None:
    """The cursor of the page that starts at `index`; None if there is none."""
    if index is None:
        return None
    return Cursor(snapshot_id=snapshot_id, filters=filters_digest(filters), index=index).text()


def next_link(request: Request, query: BaseModel, cursor: str | None) -> dict[str, str]:
    """The header that names the next page of the same query, where there is one (RFC 8288)."""
    if cursor is None:
        return {}
    given = query.model_dump(exclude_none=True, exclude={"cursor"}) | {"cursor": cursor}
    return {"Link": f'<{request.url.path}?{urlencode(given)}>; rel="next"'}


def _unusable(message: str) -> UnusableInput:
    return UnusableInput.at("cursor", message=message)
