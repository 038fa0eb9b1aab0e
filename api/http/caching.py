"""Answers that a client may keep: strong ETags, `304 Not Modified`, and JSON or CSV as the client asks."""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from api.csv_cells import plain_rows
from api.http.problems import Refused
from catalog.saved import as_json

JSON = "application/json"
CSV = "text/csv"


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
    held = request.headers.getlist("if-none-match")
    tags = {tag.strip().removeprefix("W/") for line in held for tag in line.split(",")}
    if etag in tags or "*" in tags:
        return Response(status_code=304, headers=caching_headers(etag))
    return None


def json_or_csv(request: Request) -> str:
    """The media type that the client prefers, JSON where it does not mind. Raises `Refused` (406) for neither."""
    wishes = _accepted(",".join(request.headers.getlist("accept")))
    best = max((JSON, CSV), key=lambda kind: _quality(kind, wishes))
    if _quality(best, wishes) <= 0:
        raise Refused(406, f"only {JSON} and {CSV} can be given here", headers={"Vary": "Accept"})
    return best


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The rows under a heading, as RFC 4180 has them; what is not among the columns is left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(plain_rows(rows))
    return text.getvalue().encode()


def _accepted(header: str) -> dict[str, float]:
    """Media ranges of an Accept header with their quality; a quality that is no number counts as 1.

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
