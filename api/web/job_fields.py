"""The form for a job, as data: each field, where it stands in the job document, and what is said beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from api.documents.words import METHODS, OBJECTIVES, OPTIMIZERS, PRECISIONS, PROVIDERS
from catalog.accelerators import accelerators
from catalog.price_kinds import price_kinds
from catalog.regions import GEOGRAPHIES, regions
from planner.workload.presets import presets

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `kind`: text, listed (text with names apart by commas), select (one of the options) or checks (any of them).

    `path` is where it stands in the job document; `suggests` names a list of suggestions.
    """

    name: str
    label: str
    path: tuple[str, ...]
    kind: str = "text"
    hint: str = ""
    options: Callable[[], Options] = tuple
    suggests: str = ""
    example: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Fields that belong together; `folded` parts are closed until something in them is filled in or wrong."""

    title: str
    fields: tuple[Field, ...]
    folded: bool = False
    hint: str = ""


def _words(names: tuple[str, ...]) -> Callable[[], Options]:
    return lambda: tuple((name, name.replace("_", " ")) for name in names)


@cache
def _providers() -> Options:
    said = {"aws": "AWS", "gcp": "GCP", "azure": "Azure", "local": "own machines"}
    return tuple((name, said[name]) for name in PROVIDERS)


@cache
def _kinds() -> Options:
    """Every price kind, those that count when nothing is said first."""
    kinds = sorted(price_kinds().values(), key=lambda kind: not kind.in_default)
    return tuple((kind.name, kind.name.replace("_", " ")) for kind in kinds)


def _geographies() -> Options:
    return tuple(GEOGRAPHIES.items())


@cache
def suggestions() -> dict[str, tuple[str, ...]]:
    """What a field may be filled with, by the name of the list; other text is accepted too where it is understood."""
    return {
        "presets": tuple(sorted(presets())),
        "accelerators": tuple(sorted(accelerators())),
        "places": ("local", *(f"{provider}:{region}" for provider, region in sorted(regions()))),
    }


PARTS = (
    Part(
        title="What to train",
        fields=(
            Field(
                name="model",
                label="Model",
                path=("workload", "model"),
                suggests="presets",
                example="llama-3-8b",
                hint="one of the known ones; type to search",
            ),
            Field(
                name="tokens", label="Tokens", path=("workload", "tokens"), example="300B", hint="for language models"
            ),
            Field(
                name="samples",
                label="or samples",
                path=("workload", "samples"),
                example="115M",
                hint="for models of images, sound and so on",
            ),
            Field(
                name="sequence_length",
                label="Sequence length",
                path=("workload", "sequence_length"),
                example="8192",
                hint="tokens; the model's usual one if empty",
            ),
        ),
    ),
    Part(
        title="Or a transformer by its dimensions",
        folded=True,
        hint="Leave the model above empty then. Tokens and sequence length are needed.",
        fields=(
            Field(name="layers", label="Layers", path=("workload", "layers"), example="32"),
            Field(name="hidden_size", label="Hidden size", path=("workload", "hidden_size"), example="4096"),
            Field(name="ffn_size", label="Feed-forward size", path=("workload", "ffn_size"), example="14336"),
            Field(name="attention_heads", label="Attention heads", path=("workload", "attention_heads"), example="32"),
            Field(name="kv_heads", label="Key-value heads", path=("workload", "kv_heads"), example="8"),
            Field(
                name="vocabulary_size", label="Vocabulary size", path=("workload", "vocabulary_size"), example="128256"
            ),
            Field(name="experts", label="Experts", path=("workload", "experts"), hint="for mixtures of experts"),
            Field(name="active_experts", label="Active experts", path=("workload", "active_experts"), hint="per token"),
        ),
    ),
    Part(
        title="How to train it",
        folded=True,
        fields=(
            Field(name="method", label="Method", path=("training", "method"), kind="select", options=_words(METHODS)),
            Field(
                name="rank",
                label="Rank of adapters",
                path=("training", "rank"),
                example="16",
                hint="with lora or qlora",
            ),
            Field(
                name="precision",
                label="Precision",
                path=("training", "precision"),
                kind="select",
                options=_words(PRECISIONS),
                hint="auto takes the fastest that the accelerator has",
            ),
            Field(
                name="optimizer",
                label="Optimizer",
                path=("training", "optimizer"),
                kind="select",
                options=_words(("adamw", *(name for name in OPTIMIZERS if name != "adamw"))),
            ),
            Field(
                name="global_batch_tokens",
                label="Global batch in tokens",
                path=("workload", "global_batch_tokens"),
                example="4M",
            ),
            Field(
                name="global_batch_samples",
                label="or in samples",
                path=("workload", "global_batch_samples"),
                example="2048",
                hint="for known models",
            ),
        ),
    ),
    Part(
        title="By when and for how much",
        fields=(
            Field(
                name="deadline",
                label="Deadline",
                path=("deadline",),
                example="14d",
                hint="14d, 36h, or a time such as 2026-12-24T09:00Z; empty: any speed",
            ),
            Field(
                name="budget_usd",
                label="Budget in US dollars",
                path=("budget_usd",),
                example="250k",
                hint="binds the expected cost",
            ),
            Field(
                name="confidence",
                label="Confidence",
                path=("confidence",),
                example="90%",
                hint="of finishing by the deadline; 90 % if empty",
            ),
            Field(name="start", label="Start", path=("start",), example="2026-12-01T08:00Z", hint="now if empty"),
        ),
    ),
    Part(
        title="On what",
        fields=(
            Field(
                name="providers",
                label="Providers",
                path=("constraints", "providers"),
                kind="checks",
                options=_providers,
                hint="none ticked: all",
                wide=True,
            ),
            Field(
                name="accelerators",
                label="Accelerators",
                path=("constraints", "accelerators"),
                kind="listed",
                suggests="accelerators",
                example="H100, A100 80GB",
                hint="empty: all; several with commas",
            ),
            Field(
                name="max_nodes",
                label="Most nodes",
                path=("constraints", "max_nodes"),
                example="32",
                hint="32 if empty",
            ),
            Field(
                name="location",
                label="The data lies in",
                path=("data", "location"),
                suggests="places",
                example="aws:us-east-1",
                hint="provider:region, or local",
            ),
            Field(
                name="dataset_gb",
                label="Size of the data",
                path=("data", "dataset_gb"),
                example="4 TB",
                hint="in GB unless a unit is given",
            ),
            Field(
                name="checkpoints",
                label="Checkpoints are kept in",
                path=("data", "checkpoints"),
                example="s3://my-bucket/llama-3-8b",
                hint="s3://, gs://, abfs:// or /mnt/; exports save there and resume from there",
            ),
        ),
    ),
    Part(
        title="Where, at which kinds of price, and by what measure",
        folded=True,
        fields=(
            Field(
                name="geography",
                label="Geography",
                path=("constraints", "geography"),
                kind="checks",
                options=_geographies,
                hint="none ticked: anywhere",
                wide=True,
            ),
            Field(
                name="price_kinds",
                label="Price kinds",
                path=("constraints", "price_kinds"),
                kind="checks",
                options=_kinds,
                hint="none ticked: on demand, spot and owned; a kind with a term costs its whole term",
                wide=True,
            ),
            Field(
                name="regions",
                label="Regions",
                path=("constraints", "regions"),
                kind="listed",
                example="us-east-1, azure:east*",
                hint="empty: all; several with commas",
            ),
            Field(
                name="objective",
                label="Make least",
                path=("objective",),
                kind="select",
                options=_words(OBJECTIVES),
            ),
            Field(name="name", label="Name of the job", path=("name",), hint="the model's if empty"),
        ),
    ),
)

FIELDS = tuple(field for part in PARTS for field in part.fields)
#: Fields that only a transformer by its dimensions has, so that one of them filled in says that it is one.
DIMENSIONS = tuple(field.name for field in PARTS[1].fields)
