"""Known models by name: `presets.csv`, one row each, with the paper it comes from and its published size."""

import csv
import difflib
import re
from collections.abc import Iterator
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
#: What ids on Hugging Face say besides: a release of the weights, what the model was trained on, or its context.
_VARIANT = re.compile(r"[-_ ](instruct|chat|it|hf|base|deduped|uncased|in21k|224|v0\.\d|v1-\d|\d+k|\d{4}|\d+\.\d)$")
#: Whoever publishes it, as in `mistralai/Mistral-7B-v0.1`; what follows is a name and no number, as it is in `ViT-B/16`.
_PUBLISHER = re.compile(r"^[a-z0-9][a-z0-9_.-]*/(?=.{3})")
#: How alike two spellings are, from 0 to 1, of which one may be meant by the other.
_NEAR = 0.75


def find_preset(text: str, path: tuple[str | int, ...] = ("workload", "model")) -> PresetRow:
    """The preset that `text` names, whatever its case and punctuation, as an id on Hugging Face too.

    Raises `UnusableInput` at `path` if there is none, with the names that are near, else with the families there are.
    """
    if text in presets():
        return presets()[text]
    for spelling in _shorter(text[:_LONGEST]):
        if (name := _spellings().get(spelling)) is not None:
            return presets()[name]
    near = difflib.get_close_matches(_fold(text[:80]), list(_spellings()), n=5, cutoff=_NEAR)
    names = ", ".join(dict.fromkeys(_spellings()[spelling] for spelling in near))
    accepted = f"nearest: {names}" if names else f"none is near; there are {_families()}"
    raise UnusableInput.at(*path, message=f"unknown model {text[:80]!r}; {accepted}")


#: Characters that any name or id has at most.
_LONGEST = 200


def planned_as(text: str) -> str | None:
    """What to say where `text` is another name than that of the preset it stands for; None where it only spells it."""
    row = find_preset(text)
    return (
        None
        if _fold(text) == _fold(row.name)
        else f"{text.strip()} is planned as {row.name}, a model of its dimensions"
    )


def _shorter(text: str) -> Iterator[str]:
    """Folded spellings of a name: as it is, without `meta-` before it, and ever less of what stands behind it."""
    model = _PUBLISHER.sub("", text.lower().strip())
    for start in dict.fromkeys((model, model.removeprefix("meta-"))):
        left = start
        yield _fold(left)
        while (shorter := _VARIANT.sub("", left)) != left:
            left = shorter
            yield _fold(left)


#: What a family is called by the class of its work.
_CLASSES = {
    "language": "language models",
    "mixture-of-experts": "mixtures of experts",
    "encoder": "encoders",
    "encoder-decoder": "encoder-decoders",
    "vision-transformer": "vision transformers",
    "convolutional": "convolutional models",
    "detection": "detectors",
    "recurrent": "recurrent models",
    "diffusion": "diffusion models",
    "gan": "GANs",
    "recommender": "recommenders",
}


@cache
def _families() -> str:
    """Every class of work with a preset of each of its first families."""
    found: dict[str, dict[str, str]] = {}
    for row in presets().values():
        found.setdefault(row.task, {}).setdefault(re.split(r"[-.0-9/]", row.name)[0], row.name)
    return "; ".join(f"{_CLASSES[task]} ({', '.join(list(each.values())[:4])})" for task, each in found.items())


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
    model = _RELEASE.sub("", _PUBLISHER.sub("", text.lower().strip()))
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
