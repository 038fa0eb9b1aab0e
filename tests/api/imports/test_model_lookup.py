"""A model id is looked up in the local hub cache, and on the hub only where asked."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gpuplan.api.imports.model_lookup import is_model_id, model_facts
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import LLAMA


class _Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        there = self.path == "/me/mine/resolve/main/config.json"
        self.send_response(200 if there else 401)
        self.end_headers()
        self.wfile.write(json.dumps(LLAMA).encode() if there else b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    server = HTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("hub")
def test_the_hub_is_asked_only_online() -> None:
    assert model_facts("me/mine", online=False).number("layers") is None
    assert model_facts("me/mine", online=True).number("layers") == 32


@pytest.mark.usefixtures("hub")
def test_a_gated_model_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnusableInput, match="answers 401 for me/gated"):
        model_facts("me/gated", online=True)


@pytest.mark.usefixtures("hub")
def test_the_local_cache_of_the_hub_is_read(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--me--cached" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(LLAMA))
    assert model_facts("me/cached", online=False).number("layers") == 32


def test_a_path_is_no_model_id() -> None:
    assert is_model_id("Qwen/Qwen3-8B")
    assert not is_model_id("../x/y")
    assert not is_model_id("a/b/c")
