"""Style and scripts: addresses by content, kept for good, compressed, and of others only what is listed with its hash."""

import gzip
import hashlib
import json

import httpx
import pytest

from gpuplan.api.web.assets import CACHE_FOREVER, STATIC, assets


def test_what_comes_from_others_is_as_it_was_published() -> None:
    listed = json.loads((STATIC / "vendored.json").read_text())
    for name, about in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == about["sha256"]
        assert (STATIC / about["licence"]).stat().st_size > 100
        assert about["version"] in (STATIC / name).read_text()
    assert {path.name for path in STATIC.glob("*.min.js")} == set(listed)


@pytest.mark.parametrize("name", ["gpuplan.css", "page.js", "tabs.js", "chart.js", "htmx.min.js", "icon.svg"])
def test_an_asset_is_kept_for_good_under_the_hash_of_its_bytes(client: httpx.Client, name: str) -> None:
    url = assets()[name].url
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest().startswith(url.split("/")[2])
    plain = client.get(url, headers={"accept-encoding": "identity"})
    compressed = client.get(url, headers={"accept-encoding": "br, gzip;q=0.8"})
    assert plain.headers["cache-control"] == compressed.headers["cache-control"] == CACHE_FOREVER
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert plain.content == compressed.content == (STATIC / name).read_bytes()
    assert gzip.decompress(assets()[name].compressed) == plain.content
    assert "content-encoding" not in client.get(url, headers={"accept-encoding": "gzip;q=0"}).headers


@pytest.mark.parametrize(
    "path", ["/static/0000000000000000/gpuplan.css", "/static/x/vendored.json", "/static/x/..%2fpages.py"]
)
def test_nothing_else_is_served(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers.get("cache-control") in {"no-store", None}
