"""Static files of the page, served under addresses that contain the hash of their bytes.

Browsers may cache them forever, because changed content has another address. Files are read and compressed once.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gpuplan.api.http.response_caching import takes_gzip

STATIC = Path(__file__).parent / "static"
#: One year, the customary maximum for HTTP caches.
CACHE_FOREVER = "public, max-age=31536000, immutable"
#: Media types of served files, by suffix. Other files (licences, hash lists) are only part of the wheel.
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file: plain and compressed bytes, media type and address."""

    body: bytes
    compressed: bytes
    media_type: str
    url: str


@cache
def assets() -> dict[str, Asset]:
    """All served files by name."""
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
    """The address of a file. Raises `KeyError` for an unknown name, which is a bug in a template."""
    return assets()[name].url


@router.get("/static/{digest}/{name}", include_in_schema=False)
async def static(request: Request, digest: str, name: str) -> Response:
    """Serve one file. An address with another hash belongs to another release and is refused."""
    asset = assets().get(name)
    if asset is None or asset.url != f"/static/{digest}/{name}":
        return Response(
            "no such file in this release\n",
            status_code=404,
            media_type="text/plain",
            headers={"Cache-Control": "no-store"},
        )
    headers = {"Cache-Control": CACHE_FOREVER, "Vary": "Accept-Encoding"}
    if takes_gzip(request):
        return Response(asset.compressed, media_type=asset.media_type, headers=headers | {"Content-Encoding": "gzip"})
    return Response(asset.body, media_type=asset.media_type, headers=headers)
