"""Known models by name, from `presets.csv` and `counted_models.csv`: one row each, with source and published size."""

import csv
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from gpuplan.catalog.runtime.errors import UnusableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetRow:
    """One published model.

    `architecture` selects how it is counted; `unit` is that of its throughput (tokens or samples). Dimensions are those of
    `Transformer`; other architectures have 0 there and their own dimensions in `details`. `global_batch_tokens` or
    `global_batch_samples` (one of the two) is the batch of the paper in `batch_source`. `note` states what the row leaves
    out or assumes.
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
    """Every preset by name, in the order of the tables: models with dimensions, then models with published totals only."""
    known = [_preset(row) for row in _table("presets.csv")]
    known += [_preset(_whole(row)) for row in _table("counted_models.csv")]
    return {row.name: row for row in known}


def _table(name: str) -> list[dict[str, str]]:
    text = (files("gpuplan.planner.workload") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


#: Columns of `counted_models.csv` that become details of a preset.
_TOTALS = (
    *("parameters", "gflops", "melements", "passes", "saved", "steps", "tables", "exchanged"),
    *("adapter_width", "adapter_gflops", "narrowest"),
)


def _whole(row: dict[str, str]) -> dict[str, str]:
    """A row of totals as a row of presets, without dimensions and with a fixed size."""
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
        "batch_source": "a usual batch for such networks",
    }


#: Suffixes of models with the same dimensions: how they were tuned, or the format of the weights.
_RELEASE = re.compile(r"([-_ ](instruct|chat|it|hf))+$")
#: Further suffixes of ids on Hugging Face and Ollama: a release or format of the weights, the training data, or the
#: context length.
_VARIANT = re.compile(
    r"[-_ :](instruct|chat|it|pt|hf|base|thinking|reasoning|latest|deduped|uncased|in21k|224|v0\.\d|v1-\d|1m|\d+k|\d{4}|1\.0"
    r"|gguf|awq|gptq|fp8|fp16|bf16|bnb|[48]bit)$"
)
#: The publisher in `mistralai/Mistral-7B-v0.1`; at least 3 characters must follow, so that `ViT-B/16` is not split.
_PUBLISHER = re.compile(r"^[a-z0-9][a-z0-9_.-]*/(?=.{3})")
#: Least similarity, from 0 to 1, of a spelling that is suggested for another.
_NEAR = 0.75


def find_preset(text: str, path: tuple[str | int, ...] = ("workload", "model")) -> PresetRow:
    """The preset that `text` names, ignoring case and punctuation; ids on Hugging Face are accepted too.

    Raises `UnusableInput` at `path` if there is none, with the nearest names of one kind of model, else with all families.
    """
    if text in presets():
        return presets()[text]
    for spelling in _shorter(text[:_LONGEST]):
        if (name := _spellings().get(spelling)) is not None:
            return presets()[name]
    names = ", ".join(_nearest(_fold(text[:80])))
    accepted = f"nearest: {names}" if names else f"none is near (gpuplan presets lists all); there are {_families()}"
    raise UnusableInput.at(*path, message=f"unknown model {text[:80]!r}; {accepted}; {_BY_DIMENSIONS}")


#: What to give for a language model that is no preset.
_BY_DIMENSIONS = (
    "for another transformer, give workload.kind transformer with the numbers of its config.json: "
    "layers, hidden_size, attention_heads and so on"
)


def _nearest(spelling: str) -> list[str]:
    """At most five names near `spelling`, of the family it starts with if there is one, all of the kind of the nearest."""
    family = max((family for family in _family_names() if spelling.startswith(family)), key=len, default="")
    relatives = [known for known in _spellings() if family and known.startswith(family)]
    near = difflib.get_close_matches(spelling, relatives or list(_spellings()), n=5, cutoff=0.0 if relatives else _NEAR)
    names = list(dict.fromkeys(_spellings()[close] for close in near))
    return [name for name in names if _kind(name) == _kind(names[0])]


@cache
def _family_names() -> set[str]:
    """The first word of every preset, such as `llama`; shorter ones than three letters start too many other names."""
    words = (re.split(r"[^a-z]", name, maxsplit=1)[0] for name in presets())
    return {word for word in words if len(word) > 2}


def _kind(name: str) -> str:
    """The class of work of a preset; language models with and without experts are one kind."""
    task = presets()[name].task
    return "language" if task == "mixture-of-experts" else task


#: Most characters of a name or id that are compared.
_LONGEST = 200


def planned_as(text: str) -> str | None:
    """A note if `text` names another model than the preset used for it; None if it is only another spelling."""
    row = find_preset(text)
    return (
        None
        if _fold(text) == _fold(row.name)
        else f"{text.strip()} is planned as {row.name}, a model of its dimensions"
    )


def _shorter(text: str) -> Iterator[str]:
    """Folded spellings of a name: the whole name, without the prefix `meta-`, and with ever fewer suffixes."""
    model = _PUBLISHER.sub("", text.lower().strip())
    for start in dict.fromkeys((model, model.removeprefix("meta-"))):
        left = start
        yield _fold(left)
        while (shorter := _VARIANT.sub("", left)) != left:
            left = shorter
            yield _fold(left)


#: Display names of the classes of work.
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
    "graph": "graph networks",
}


@cache
def _families() -> str:
    """Every class of work with its first preset."""
    names: dict[str, str] = {}
    for row in presets().values():
        names.setdefault(row.task, row.name)
    return ", ".join(f"{_CLASSES[task]} ({name})" for task, name in names.items())


@cache
def _spellings() -> dict[str, str]:
    """Name by folded spelling; a name has precedence over an alias of another row."""
    known = {_fold(name): name for name in presets()}
    for row in presets().values():
        for alias in row.aliases:
            known.setdefault(_fold(alias), row.name)
    return known


def _fold(text: str) -> str:
    """Spelling without case, publisher, release and punctuation except between digits: `Llama 3.1 8B` -> `llama3.1-8b`."""
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
