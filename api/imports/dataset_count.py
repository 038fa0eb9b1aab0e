"""How much a local data set has: samples, and tokens by the bytes of their text.

JSON lines, JSON, CSV and text are read as they are; parquet and arrow files by polars, where it is installed. No tokenizer is run:
four bytes of text count as one token, about what tokenizers of 32,000 to 150,000 words make of English.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuplan.catalog.runtime.errors import UnusableInput

BYTES_PER_TOKEN = 4
#: Beyond so many bytes of a file, the rest is taken to be like them.
MOST_BYTES = 64 * 1024 * 1024
#: Rows of a parquet or arrow file that stand for all.
MOST_ROWS = 10_000
_MOST_FILES = 10_000
_LINES = (".jsonl", ".ndjson")
_FRAMES = (".parquet", ".arrow", ".feather")
_TEXTS = (".txt", ".csv", ".tsv")
_ENDINGS = (*_LINES, ".json", *_TEXTS, *_FRAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSize:
    """Samples and bytes of text of a data set; `read_share` is the part of its bytes that was read."""

    name: str
    samples: float
    text_bytes: float
    read_share: float = 1.0

    @property
    def tokens(self) -> float:
        """Tokens of all samples, once through."""
        return self.text_bytes / BYTES_PER_TOKEN

    @property
    def about(self) -> str:
        """The size as one phrase."""
        read = "" if self.read_share >= 1 else f", from the first {100 * self.read_share:.0f} % of its bytes"
        return f"{self.samples:,.0f} samples of {self.tokens / self.samples:,.0f} tokens on average{read}"


def count_dataset(path: Path) -> DatasetSize:
    """The size of a file, or of the files of a folder of one kind. Raises `UnusableInput` at `--data`."""
    files = _files_of(path)
    counts = [_count(file) for file in files]
    samples, text = sum(one[0] for one in counts), sum(one[1] for one in counts)
    if not samples or not text:
        raise UnusableInput.at("--data", message=f"{str(path)!r} has no text in it")
    whole = sum(file.stat().st_size for file in files)
    return DatasetSize(
        name=path.name, samples=samples, text_bytes=text, read_share=sum(one[2] for one in counts) / max(whole, 1)
    )


def is_countable(path: Path) -> bool:
    """Whether this is a file in a format that is counted."""
    return path.suffix in _ENDINGS and path.is_file()


def _files_of(path: Path) -> list[Path]:
    if not path.exists():
        raise UnusableInput.at("--data", message=f"{str(path)!r} is not there")
    if path.is_file():
        files = [path]
    else:
        every = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())[
            : _MOST_FILES + 1
        ]
        kinds = {file.suffix for file in every if file.suffix != ".json"} or {".json"}
        files = [file for file in every if file.suffix in kinds]
        if len(kinds) > 1 or len(every) > _MOST_FILES:
            listed = ", ".join(sorted(kinds))
            message = f"{str(path)!r} has files of several kinds ({listed}) or too many; name the files of the data set"
            raise UnusableInput.at("--data", message=message)
    if not files or files[0].suffix not in _ENDINGS:
        message = f"{str(path)!r} is no data set that can be counted; accepted are {', '.join(_ENDINGS)}, or a folder of one kind"
        raise UnusableInput.at("--data", message=message)
    return files


def _count(file: Path) -> tuple[float, float, float]:
    """Samples, bytes of text, and bytes read of one file."""
    if file.suffix in _FRAMES:
        return _frame(file)
    try:
        return _json(file) if file.suffix == ".json" else _lines(file)
    except OSError as error:
        raise UnusableInput.at("--data", message=f"cannot read {str(file)!r}: {error.strerror}") from None


def _lines(file: Path) -> tuple[float, float, float]:
    """Every line with text is a sample; of JSON lines the texts count. A long file is taken to go on as it begins."""
    samples = text = read = 0
    is_json, size = file.suffix in _LINES, file.stat().st_size
    with file.open("rb") as lines:
        for number, line in enumerate(lines):
            read += len(line)
            if line.strip():
                samples += 1
                text += _text_bytes(_parsed(line, f"{file.name} line {number + 1}")) if is_json else len(line.strip())
            if read >= MOST_BYTES:
                break
    return samples * size / max(read, 1), text * size / max(read, 1), read


def _json(file: Path) -> tuple[float, float, float]:
    """Every element of a list is a sample."""
    size = file.stat().st_size
    if size > MOST_BYTES:
        message = f"{str(file)!r} is larger than {MOST_BYTES // 2**20} MiB; give it as JSON lines"
        raise UnusableInput.at("--data", message=message)
    document = _parsed(file.read_bytes(), file.name)
    if not isinstance(document, list):
        raise UnusableInput.at("--data", message=f"{file.name} is no list of samples")
    return len(document), sum(map(_text_bytes, document)), size


def _frame(file: Path) -> tuple[float, float, float]:
    """Samples, bytes of text by the first rows, and bytes of a parquet or arrow file."""
    try:
        import polars
        from polars.exceptions import PolarsError
    except ImportError:
        message = f"{file.suffix} files are counted by polars, which is not installed: pip install polars"
        raise UnusableInput.at("--data", message=message) from None
    try:
        rows = polars.scan_parquet(file) if file.suffix == ".parquet" else polars.scan_ipc(file)
        count = rows.select(polars.len()).collect().item()
        first = rows.head(MOST_ROWS).collect().rows()
    except (PolarsError, OSError) as error:
        reason = str(error).splitlines()[0][:120]
        raise UnusableInput.at("--data", message=f"{str(file)!r} cannot be read as {file.suffix}: {reason}") from None
    size = file.stat().st_size
    if not first:
        return 0.0, 0.0, size
    return count, sum(map(_text_bytes, first)) * count / len(first), size * len(first) / count


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableInput.at("--data", message=f"{where} is no JSON") from None


def _text_bytes(value: Any) -> int:
    """Bytes of all texts in a sample."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        return sum(map(_text_bytes, value.values()))
    return sum(map(_text_bytes, value)) if isinstance(value, list | tuple) else 0
