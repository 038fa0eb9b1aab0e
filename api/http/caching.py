"""Answers that a client may keep: strong ETags, `304 Not Modified`, and JSON or CSV as the client asks."""

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from api.csv_cells import plain_rows
from api.http.problems import Refused
from catalog.saved import as_json

JSON = "application/json"
CSV = "text/csv"
#: In `If-None-Match`: whatever there is.
ANY = "*"


def to_json(answer: object) -> bytes:
    """The answer as JSON; a figure that is not finite is a bug, never `NaN` on the wire."""
    return as_json(answer).encode()


def json_with_etag(request: Request, answer: object, *, headers: Mapping[str, str] | None = None) -> Response:
    """A small answer whose ETag is that of its bytes, or 304 where the client holds it."""
    body = to_json(answer)
    etag = etag_of(body)
    kept = not_modified(request, etag)
    return kept or Response(body, media_type=JSON, headers=caching_headers(etag) | dict(headers or {}))


def etag_of(*parts: str | bytes) -> str:
    """A strong ETag that differs where any of the parts that an answer rests on differs."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return f'"{digest.hexdigest()[:32]}"'


def caching_headers(etag: str) -> dict[str, str]:
    """Headers of an answer that may be kept but has to be asked about again."""
    return {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept"}


def not_modified(request: Request, etag: str) -> Response | None:
    """The 304 answer if the client already holds this one (RFC 9110, If-None-Match: weak comparison)."""
    if not _tags(request).isdisjoint({etag, ANY}):
        return Response(status_code=304, headers=caching_headers(etag))
    return None


def holds_any(request: Request) -> bool:
    """Whether the client says that it holds whatever there is, which tells nothing of whether there is something."""
    return ANY in _tags(request)


def kept_or(request: Request, etag: str, make: Callable[[], Response]) -> Response:
    """304 where the client holds the answer of this ETag, else the answer. Raises what `make` raises.

    An answer of which the client only says `*` is made all the same: whether there is one is not known before.
    """
    held = not_modified(request, etag)
    if held is not None and not holds_any(request):
        return held
    made = make()
    return held or made


def _tags(request: Request) -> set[str]:
    lines = request.headers.getlist("if-none-match")
    return {tag.strip().removeprefix("W/") for line in lines for tag in line.split(",")}


def json_or_csv(request: Request) -> str:
    """The media type that the client prefers, JSON where it does not mind. Raises `Refused` (406) for neither."""
    wishes = _accepted(",".join(request.headers.getlist("accept")))
    best = max((JSON, CSV), key=lambda kind: _quality(kind, wishes))
    if _quality(best, wishes) <= 0:
        raise Refused(406, f"only {JSON} and {CSV} can be given here", headers={"Vary": "Accept"})
    return best


def takes_gzip(request: Request) -> bool:
    """Whether the client says that it reads gzip (RFC 9110, section 12.5.3); who says nothing gets what all can read."""
    given = ",".join(request.headers.getlist("accept-encoding"))
    if not given.strip(" ,"):
        return False
    wishes = _accepted(given)
    # `x-gzip` is the same by an older name (section 8.4.1.3).
    return next((wishes[each] for each in ("gzip", "x-gzip", "*") if each in wishes), 0.0) > 0


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The rows under a heading, as RFC 4180 has them; what is not among the columns is left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(plain_rows(rows))
    return text.getvalue().encode()


def _accepted(header: str) -> dict[str, float]:
    """Media ranges, or codings, of an Accept header with their quality; one that is no number counts as 1.

    Whoever names none takes any.
    """
    wishes: dict[str, float] = {}
    for part in header.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if not kind:
            continue
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        wishes[kind] = float(quality) if quality.replace(".", "", 1).isdecimal() else 1.0
    return wishes or {"*/*": 1.0}


def _quality(kind: str, wishes: dict[str, float]) -> float:
    """The most specific range that covers `kind` decides."""
    family = kind.partition("/")[0] + "/*"
    return next((wishes[each] for each in (kind, family, "*/*") if each in wishes), 0.0)
