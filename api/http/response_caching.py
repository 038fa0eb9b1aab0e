"""Responses in JSON or CSV by content negotiation; cacheable ones have strong ETags and `304 Not Modified`."""

import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.presentation.csv_cells import write_csv
from gpuplan.catalog.store.schema.column_types import as_json
from gpuplan.planner.model.wire import wire

JSON = "application/json"
CSV = "text/csv"
#: In `If-None-Match`: matches any representation.
ANY = "*"


def to_json(answer: object) -> bytes:
    """The answer as JSON; refuses non-finite numbers, so that `NaN` never reaches the wire."""
    return as_json(answer).encode()


def json_answer(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A typed answer, or one that is JSON already, without an ETag."""
    return Response(to_json(wire(answer)), status_code=status, media_type=JSON, headers=headers)


def json_with_etag(request: Request, answer: object, *, headers: Mapping[str, str] | None = None) -> Response:
    """A small answer whose ETag is the hash of its bytes, or 304 if the client has it."""
    body = to_json(wire(answer))
    etag = etag_of(body)
    unchanged = not_modified(request, etag)
    return unchanged or Response(body, media_type=JSON, headers=caching_headers(etag) | dict(headers or {}))


def etag_of(*parts: str | bytes) -> str:
    """A strong ETag that changes with any of these parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return f'"{digest.hexdigest()[:32]}"'


def caching_headers(etag: str) -> dict[str, str]:
    """Headers of a response that may be cached but must be revalidated."""
    return {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept"}


def not_modified(request: Request, etag: str) -> Response | None:
    """The 304 response if the client already has this one (RFC 9110, If-None-Match: weak comparison)."""
    if not _tags(request).isdisjoint({etag, ANY}):
        return Response(status_code=304, headers=caching_headers(etag))
    return None


def sends_any(request: Request) -> bool:
    """Whether the client sent `If-None-Match: *`, which does not prove that there is a representation."""
    return ANY in _tags(request)


def cached_or(request: Request, etag: str, make: Callable[[], Response]) -> Response:
    """304 if the client has the response with this ETag, else the response. Raises what `make` raises.

    With `*` the response is made as well, because only that shows whether there is one.
    """
    unchanged = not_modified(request, etag)
    if unchanged is not None and not sends_any(request):
        return unchanged
    made = make()
    return unchanged or made


def _tags(request: Request) -> set[str]:
    lines = request.headers.getlist("if-none-match")
    return {tag.strip().removeprefix("W/") for line in lines for tag in line.split(",")}


def json_or_csv(request: Request) -> str:
    """The media type that the client prefers, JSON by default. Raises `Refused` (406) if it accepts neither."""
    wishes = _accepted(",".join(request.headers.getlist("accept")))
    best = max((JSON, CSV), key=lambda kind: _quality(kind, wishes))
    if _quality(best, wishes) <= 0:
        raise Refused(406, f"only {JSON} and {CSV} are available here", headers={"Vary": "Accept"})
    return best


def takes_gzip(request: Request) -> bool:
    """Whether the client accepts gzip (RFC 9110, section 12.5.3); without the header nothing is compressed."""
    given = ",".join(request.headers.getlist("accept-encoding"))
    if not given.strip(" ,"):
        return False
    wishes = _accepted(given)
    # `x-gzip` is an older name of the same coding (section 8.4.1.3).
    return next((wishes[coding] for coding in ("gzip", "x-gzip", "*") if coding in wishes), 0.0) > 0


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The rows as the body of a response."""
    text = io.StringIO()
    write_csv(text, columns, rows, line_end="\r\n")
    return text.getvalue().encode()


def _accepted(header: str) -> dict[str, float]:
    """Media ranges or codings of an Accept header with their quality; an invalid quality counts as 1.

    Without the header every type is accepted.
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
    """The quality of `kind`, from the most specific range that covers it."""
    family = kind.partition("/")[0] + "/*"
    return next((wishes[media_range] for media_range in (kind, family, "*/*") if media_range in wishes), 0.0)
