"""`llama-3-8b tokens=300B by=7d max=$20000`: a job in words, as the document that every door reads.

Each word stands for one field of a job document, which reads its value; what it finds wrong is said of the word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.documents.constraints import region_glob
from catalog.document_fields import nearest
from catalog.errors import Fault, UnusableInput
from catalog.quantities import shown
from catalog.regions import GEOGRAPHIES

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a plan: the field of the job that it is, whether it takes several values, and how it is written."""

    path: tuple[str, ...]
    example: str
    several: bool = False


WORDS: Mapping[str, Word] = {
    "tokens": Word(path=("workload", "tokens"), example="tokens=300B"),
    "samples": Word(path=("workload", "samples"), example="samples=115M"),
    "sequence": Word(path=("workload", "sequence_length"), example="sequence=8192"),
    "by": Word(path=("deadline",), example="by=7d"),
    "start": Word(path=("start",), example="start=2026-12-01T09:00Z"),
    "max": Word(path=("budget_usd",), example="max=$20000"),
    "on": Word(path=("constraints", "accelerators"), example="on=H100,A100", several=True),
    "in": Word(path=("constraints", "regions"), example="in=us,eu", several=True),
    "providers": Word(path=("constraints", "providers"), example="providers=aws,gcp", several=True),
    "kinds": Word(path=("constraints", "price_kinds"), example="kinds=spot,on_demand", several=True),
    "nodes": Word(path=("constraints", "max_nodes"), example="nodes=16"),
    "method": Word(path=("training", "method"), example="method=lora"),
    "rank": Word(path=("training", "rank"), example="rank=16"),
    "precision": Word(path=("training", "precision"), example="precision=bf16"),
    "confidence": Word(path=("confidence",), example="confidence=0.95"),
    "objective": Word(path=("objective",), example="objective=cost"),
    "name": Word(path=("name",), example='name="my run"'),
}
_ALSO = {
    "deadline": "by",
    "budget": "max",
    "accelerators": "on",
    "accelerator": "on",
    "region": "in",
    "regions": "in",
    "geography": "in",
    "provider": "providers",
    "kind": "kinds",
    "max_nodes": "nodes",
}
EXAMPLE = "/gpuplan plan llama-3-8b tokens=300B by=7d max=$20000"
#: Where a geography stands, since `in` takes both.
_GEOGRAPHY = ("constraints", "geography")


def job_of_words(words: Sequence[str]) -> Document:
    """The job document that the words say. Raises `UnusableInput` at each word that nobody knows."""
    faults: list[Fault] = []
    given: dict[str, str] = {}
    models: list[str] = []
    for text in words:
        name, sign, value = text.partition("=")
        if not sign:
            models.append(text)
            continue
        known = _ALSO.get(name.lower(), name.lower())
        if known not in WORDS:
            faults.append(Fault((name[:40],), _unknown(name)))
        elif known in given:
            faults.append(Fault((known,), "is given twice; give it once"))
        elif not value.strip():
            faults.append(Fault((known,), f"has no value; write {WORDS[known].example}"))
        else:
            given[known] = value
    if not models:
        faults.append(Fault(("model",), f"is missing; name a model first: {EXAMPLE}"))
    faults += [_stray(text) for text in models[1:]]
    if faults:
        raise UnusableInput(*faults)
    return document({"model": models[0]} | given)


def document(given: Mapping[str, str]) -> Document:
    """The job document of words by name, `model` among them; their values are read later, with the whole of it."""
    made: Document = {"workload": {"kind": "preset", "model": given["model"]}}
    for name, text in given.items():
        if name == "in":
            _put(made, _GEOGRAPHY, [each for each in _values(text) if each.lower() in _GEOGRAPHIES])
            _put(made, WORDS["in"].path, [each for each in _values(text) if each.lower() not in _GEOGRAPHIES])
        elif name != "model":
            _put(made, WORDS[name].path, _values(text) if WORDS[name].several else text)
    return made


_GEOGRAPHIES = frozenset({*GEOGRAPHIES, "usa", "european_union", "gb"})


def in_words(error: UnusableInput) -> UnusableInput:
    """The same faults, each at the word that it is of; a field without a word keeps its name."""
    by_path = {word.path: name for name, word in WORDS.items()} | {_GEOGRAPHY: "in", ("workload", "model"): "model"}
    found = []
    for fault in error.faults:
        path = tuple(part for part in fault.path if isinstance(part, str))
        name = next((by_path[path[:end]] for end in range(len(path), 0, -1) if path[:end] in by_path), None)
        found.append(fault if name is None else Fault((name,), fault.message))
    return UnusableInput(*found)


def region(text: str) -> str:
    """A region or a glob as one word. Raises `UnusableInput` at `region`."""
    try:
        return region_glob(text)
    except ValueError as error:
        raise UnusableInput.at("region", message=str(error)) from None


def _values(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _put(made: Document, path: tuple[str, ...], value: object) -> None:
    if value == []:
        return
    here = made
    for part in path[:-1]:
        here = here.setdefault(part, {})
    here[path[-1]] = value


def _unknown(name: str) -> str:
    near = nearest(name, [*WORDS, *_ALSO], most=1)
    if near:
        known = _ALSO.get(near[0], near[0])
        return f"unknown word; did you mean {WORDS[known].example}?"
    return f"unknown word; accepted are {', '.join(WORDS)}"


def _stray(text: str) -> Fault:
    message = f'{shown(text)} follows the model; write word=value ({", ".join(WORDS)}), and "quotes" around blanks'
    return Fault(("plan",), message)
