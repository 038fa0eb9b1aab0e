"""Local data sets counted: samples, and tokens by the bytes of their text."""

import json
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main
from gpuplan.api.imports import dataset_count
from gpuplan.api.imports.dataset_count import count_dataset
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.imports.config_texts import LLAMA_FACTORY

ROWS = [{"prompt": "é" * 10 * (i + 1), "answer": ["x" * 20, {"rest": "y" * 20}], "score": i} for i in range(40)]
TEXT_BYTES = sum(20 * (i + 1) + 40 for i in range(40))


def written(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".json"):
        path.write_text(json.dumps(ROWS))
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n\n" for row in ROWS), encoding="utf-8")
    else:
        polars = pytest.importorskip("polars")
        texts = [f"{row['prompt']}{'x' * 40}" for row in ROWS]
        frame = polars.DataFrame({"text": texts, "score": range(40)})
        frame.write_parquet(path) if name.endswith(".parquet") else frame.write_ipc(path)
    return path


@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data.parquet", "data.arrow"])
def test_samples_and_bytes_of_text_are_those_of_the_rows(tmp_path: Path, name: str) -> None:
    size = count_dataset(written(tmp_path, name))
    assert (size.samples, size.text_bytes, size.read_share) == (40, TEXT_BYTES, 1.0)
    assert size.tokens == TEXT_BYTES / 4


def test_a_folder_is_the_sum_of_its_files_of_one_kind(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path, "a.jsonl")
    written(tmp_path / "deep", "b.jsonl")
    (tmp_path / "dataset_info.json").write_text("{}")
    size = count_dataset(tmp_path)
    assert (size.samples, size.text_bytes) == (80, 2 * TEXT_BYTES)
    (tmp_path / "c.txt").write_text("a line\n")
    with pytest.raises(UnusableInput, match=r"several kinds \(.jsonl, .txt\)"):
        count_dataset(tmp_path)


def test_a_long_file_is_counted_by_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_count, "MOST_BYTES", 1000)
    (tmp_path / "long.txt").write_text("ten bytes\n" * 1000)
    size = count_dataset(tmp_path / "long.txt")
    assert size.samples == pytest.approx(1000)
    assert size.text_bytes == pytest.approx(9000)
    assert size.read_share == pytest.approx(0.1)
    assert "from the first 10 % of its bytes" in size.about


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "is not there"),
        ("data.bin", b"\0", "is no data set that can be counted"),
        ("bad.jsonl", b'{"a": 1}\nno json\n', "bad.jsonl line 2 is no JSON"),
        ("bad.json", b'{"a": 1}', "bad.json is no list of samples"),
        ("deep.jsonl", b"[" * 100_000, "line 1 is no JSON"),
        ("empty.jsonl", b"\n\n", "has no text in it"),
        ("bad.parquet", b"not parquet at all", "cannot be read as .parquet"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UnusableInput, match=message) as refusal:
        count_dataset(tmp_path / name)
    assert refusal.value.faults[0].path == ("--data",)


def test_a_counted_data_set_makes_the_tokens_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sft.yaml").write_text(LLAMA_FACTORY)
    data = written(tmp_path, "data.jsonl")
    assert main(["import", str(tmp_path / "sft.yaml"), "--data", str(data), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    epochs = made["facts"]["epochs"]["value"]
    assert made["job"]["workload"]["tokens"] == pytest.approx(TEXT_BYTES / 4 * epochs)
    assert any("data.jsonl has 40 samples of 112 tokens on average: four bytes" in text for text in made["assumed"])
