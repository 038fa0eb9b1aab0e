"""Known models by name: `presets.csv`, one row each, with the paper it comes from and its published size."""

import csv
import difflib
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from catalog.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetRow:
    """One published model.

    `architecture` says how it is counted, `unit` what its throughput counts (tokens or samples).
    Dimensions are those of `Transformer` and 0 for other architectures, whose own stand in `details`.
    `global_batch_tokens` or `global_batch_samples` is the batch of the paper (one of the two, from
    `batch_source`); `note` is what the row leaves out or assumes.
    """

    name: str
    aliases: tuple[str, ...]
    architecture: str
    task: str
    unit: str
    published_parameters: float
    layers: int
    decoder_layers: int
    hidden_size: int
    ffn_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    vocabulary_size: int
    sequence_length: int
    gated_mlp: bool
    causal: bool
    experts: int
    active_experts: int
    shared_experts: int
    expert_ffn_size: int
    dense_layers: int
    tied_embeddings: bool
    image_size: int
    details: tuple[tuple[str, str], ...]
    global_batch_tokens: float
    global_batch_samples: float
    batch_source: str
    source: str
    note: str


#: One of each kind, named where nothing is near.
_COMMON = (
    "gpt2",
    "llama-3-8b",
    "mixtral-8x7b",
    "bert-large",
    "t5-base",
    "vit-b/16",
    "resnet-50",
    "stable-diffusion-1.5",
)
_TEXT = {"name", "architecture", "task", "unit", "batch_source", "source", "note"}
_YES_NO = {"gated_mlp", "causal", "tied_embeddings"}
_REAL = {"published_parameters", "global_batch_tokens", "global_batch_samples"}


@cache
def presets() -> dict[str, PresetRow]:
    """Every preset by name, in the order of the tables: models by their dimensions, then those known by their totals."""
    known = [_preset(row) for row in _table("presets.csv")]
    known += [_preset(_whole(row)) for row in _table("counted_models.csv")]
    return {row.name: row for row in known}


def _table(name: str) -> list[dict[str, str]]:
    text = (files("planner.workload") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


#: Columns of `counted_models.csv` that stand in the details of a preset.
_TOTALS = ("parameters", "gflops", "melements", "passes", "steps", "tables", "exchanged")


def _whole(row: dict[str, str]) -> dict[str, str]:
    """A row of totals as a row of presets: no dimensions, and no sizes that could be varied."""
    row = row | {"sequence_length": row["length"]}
    tables = float(row["tables"] or 0)
    blank = {field.name: "" for field in fields(PresetRow)}
    return blank | {
        **{name: row[name] for name in row if name in blank},
        "architecture": "whole",
        "published_parameters": str(float(row["parameters"]) + tables),
        "details": " ".join(f"{name}={row[name]}" for name in _TOTALS if row[name]),
        "global_batch_tokens": row["global_batch"] if row["unit"] == "tokens" else "",
        "global_batch_samples": row["global_batch"] if row["unit"] == "samples" else "",
        "batch_source": f"the batch of the source: {row['source']}",
    }


#: What publishers append to a model of the same dimensions: how it was tuned, or the format of its weights.
_RELEASE = re.compile(r"([-_ ](instruct|chat|it|hf))+$")


def find_preset(text: str, path: tuple[str | int, ...] = ("workload", "model")) -> PresetRow:
    """The preset that `text` names, whatever its case and punctuation.

    Raises `UnusableInput` at `path` with the nearest names if there is none.
    """
    name = text if text in presets() else _spellings().get(_fold(text))
    if name is not None:
        return presets()[name]
    near = difflib.get_close_matches(_fold(text[:80]), list(_spellings()), n=5, cutoff=0.5)
    names = ", ".join(dict.fromkeys(_spellings()[spelling] for spelling in near))
    accepted = f"nearest: {names}" if names else f"accepted, among others: {', '.join(_COMMON)}"
    raise UnusableInput.at(*path, message=f"unknown model {text[:80]!r}; {accepted}")


@cache
def _spellings() -> dict[str, str]:
    """Folded spelling -> name; a name wins over another row's alias."""
    known = {_fold(name): name for name in presets()}
    for row in presets().values():
        for alias in row.aliases:
            known.setdefault(_fold(alias), row.name)
    return known


def _fold(text: str) -> str:
    """Spelling without case, publisher, release and punctuation, but between digits: `Llama 3.1 8B` -> `llama3.1-8b`."""
    model = text.lower().strip()
    model = re.sub(r"^(meta-llama|mistralai|qwen|google|microsoft|openai|facebook|stabilityai|deepseek-ai)/", "", model)
    model = _RELEASE.sub("", model)
    apart = re.sub(r"(?<=[0-9])[^a-z0-9.]+(?=[0-9])", "-", model)
    return re.sub(r"(?<![0-9])[^a-z0-9]+|[^a-z0-9]+(?![0-9])", "", apart)


def _preset(row: dict[str, str]) -> PresetRow:
    values: dict[str, object] = {}
    for name, text in row.items():
        if name in _TEXT:
            values[name] = text
        elif name in _YES_NO:
            values[name] = text == "yes"
        elif name in _REAL:
            values[name] = float(text or 0)
        elif name == "aliases":
            values[name] = tuple(alias for alias in text.split(";") if alias)
        elif name == "details":
            pairs = (pair.split("=", 1) for pair in text.split())
            values[name] = tuple((key, value) for key, value in pairs)
        else:
            values[name] = int(text or 0)
    return PresetRow(**values)  # type: ignore[arg-type]
