"""Style, scripts and pictures of the page, each under an address that holds the hash of its bytes.

So a browser may keep them for good: another content is another address. All are read and compressed once.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.http.caching import takes_gzip

STATIC = Path(__file__).parent / "static"
#: A year, the most that HTTP caches are asked to keep anything (RFC 9111 leaves more to custom).
KEPT_FOR_GOOD = "public, max-age=31536000, immutable"
#: What is served, by ending; other files there (licences, lists of hashes) go along in the wheel alone.
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file: its bytes plain and compressed, its media type, and where it is served."""

    body: bytes
    compressed: bytes
    media_type: str
    url: str


@cache
def assets() -> dict[str, Asset]:
    """Every file that is served, by name."""
    return {path.name: _read(path) for path in sorted(STATIC.iterdir()) if path.suffix in MEDIA_TYPES}


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    digest = hashlib.sha256(body).hexdigest()[:16]
    return Asset(
        body=body,
        compressed=gzip.compress(body, 9, mtime=0),
        media_type=MEDIA_TYPES[path.suffix],
        url=f"/static/{digest}/{path.name}",
    )


def asset_url(name: str) -> str:
    """Where a file is served. Raises `KeyError` for one that there is not, which is a slip in a template."""
    return assets()[name].url


@router.get("/static/{digest}/{name}", include_in_schema=False)
async def static(request: Request, digest: str, name: str) -> Response:
    """One file; an address with another hash is of another release, and is not answered with this one's bytes."""
    found = assets().get(name)
    if found is None or found.url != f"/static/{digest}/{name}":
        return Response(
            "no such file in this release\n",
            status_code=404,
            media_type="text/plain",
            headers={"Cache-Control": "no-store"},
        )
    headers = {"Cache-Control": KEPT_FOR_GOOD, "Vary": "Accept-Encoding"}
    if takes_gzip(request):
        return Response(found.compressed, media_type=found.media_type, headers=headers | {"Content-Encoding": "gzip"})
    return Response(found.body, media_type=found.media_type, headers=headers)
