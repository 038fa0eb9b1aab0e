"""A model id is looked up in the local hub cache, and on the hub only where asked."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gpuplan.api.imports.model_lookup import is_model_id, model_facts
from gpuplan.api.imports.named_datasets import hub_size, named_size
from gpuplan.api.imports.reading import read_text
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import AXOLOTL, LLAMA

SIZES = {
    "size": {
        "splits": [
            {"config": config, "split": split, "num_rows": rows, "num_bytes_memory": 400 * rows}
            for config, split, rows in (("default", "train", 1000), ("default", "test", 10), ("long", "train_all", 7))
        ]
    }
}


class _Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = {"/me/mine/resolve/main/config.json": LLAMA, "/size?dataset=me%2Ftexts": SIZES}.get(self.path)
        self.send_response(401 if answer is None else 200)
        self.end_headers()
        self.wfile.write(b"" if answer is None else json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    server = HTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
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


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("detail", "samples"),
    [("", 1000), ("train", 1000), ("test", 10), ("train[:20%]", 200), ("train[:30]", 30), ("long", 7)],
)
def test_the_size_of_a_split_is_that_of_the_hub(detail: str, samples: int) -> None:
    size = hub_size("me/texts", detail)
    assert (size.samples, size.tokens) == (samples, 100 * samples)


@pytest.mark.usefixtures("hub")
def test_a_data_set_or_split_that_the_hub_does_not_tell_is_refused_with_what_to_give() -> None:
    with pytest.raises(UnusableInput, match="answers 401 for me/gated; give --samples, --tokens or --data"):
        hub_size("me/gated")
    with pytest.raises(UnusableInput, match="lists default/test, default/train, long/train_all for me/texts"):
        hub_size("me/texts", "validation")


@pytest.mark.usefixtures("hub")
def test_the_data_set_of_a_configuration_is_looked_up_only_online_and_files_only_within_the_root(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.jsonl").write_text('{"a": "text"}\n')
    (root / "mine.jsonl").write_text('{"a": "text"}\n' * 3)
    facts = read_text(AXOLOTL.replace("data.jsonl", "me/texts"), "a.yml")
    assert named_size(facts, root, root, online=False) is None
    looked_up = named_size(facts, root, root, online=True)
    assert looked_up is not None
    assert looked_up.samples == 1000
    local = read_text(AXOLOTL.replace("data.jsonl", "./mine.jsonl"), "a.yml")
    size = named_size(local, root, root, online=False)
    assert size is not None
    assert size.samples == 3
    outside = read_text(AXOLOTL.replace("data.jsonl", "../outside.jsonl"), "a.yml")
    assert named_size(outside, root, root, online=False) is None
    two = read_text(AXOLOTL.replace("datasets:", "datasets:\n  - path: me/texts"), "a.yml")
    assert named_size(two, root, root, online=True) is None
