"""Parses a job from words such as `llama-3-8b tokens=300B by=7d max=$20000` into a job document.

A word sets one field of the document, whose schema reads the value; faults are reported at the word. In place of a model
stands a run with its machines, as people state it: `20 h on 8 x A100 like=llama-2-7b by=1d`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from copy import deepcopy

from gpuplan.api.schemas.job_fields import WrittenField, job_fields
from gpuplan.catalog.model.accelerators import accelerator_family, accelerators
from gpuplan.catalog.model.regions import GEOGRAPHIES
from gpuplan.catalog.parsing.document_fields import nearest
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.parsing.place_names import GEOGRAPHY_ALIASES, region_glob
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.job import Explicit, Profile, Transformer

_MODEL, _GEOGRAPHY, _REGIONS = ("workload", "model"), ("constraints", "geography"), ("constraints", "regions")
_GEOGRAPHIES = frozenset({*GEOGRAPHIES, *GEOGRAPHY_ALIASES})
#: Every field of a job with a preset; `in` takes geographies too.
_FIELDS = tuple(
    field
    for field in job_fields()
    if field.part not in {Transformer, Explicit, Profile} and field.path not in {_MODEL, _GEOGRAPHY}
)


def word_of(field: WrittenField) -> str:
    """The word that sets a field."""
    return field.about.words[0] if field.about.words else field.name


def example_of(field: WrittenField) -> str:
    """A field as a word with its value."""
    example = field.example or list(field.choices)[-1]
    return f'{word_of(field)}="{example}"' if " " in example else f"{word_of(field)}={example}"


WORDS: Mapping[str, WrittenField] = {word_of(field): field for field in _FIELDS}
#: Words whose values say by themselves what they set; the first that knows a value takes it.
_BY_VALUE = ("method", "stage", "framework", "precision", "software", "kinds", "objective", "providers")
#: Other names of a word, such as the path of its field in a job file (`training.method`).
_ALSO = {
    also: word_of(field) for field in _FIELDS for also in (field.name, ".".join(field.path), *field.about.words)
} | {"geography": "in", ".".join(_GEOGRAPHY): "in"}
#: Words that are not the name of their field.
_SHORT = tuple(word for word, field in WORDS.items() if word != field.name)
#: So many words that are not understood are named.
_MOST_NAMED = 5
#: Typographic quotes, dashes and spaces from keyboards and chats.
_PLAIN_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\u00a0": " ", "\u202f": " "})
#: A run as people state it; the words of a job may begin with it.
_RUN = re.compile(r"(?P<hours>\d[\d.,]*\s?[a-z]+)\s+on\s+(?P<on>\d+\s*[x*]?\s*[a-z][\w.-]*)", re.IGNORECASE)
EXAMPLE = "/gpuplan plan llama-3-8b tokens=300B by=7d max=$20000"


def job_of_words(words: Sequence[str], *, example: str = EXAMPLE) -> JsonObject:
    """The job document of the words; `example` is shown without a model. Raises `UnusableInput` at every unknown word."""
    run, words = _run_before(words)
    faults: list[Fault] = []
    given: dict[str, str] = {}
    models: list[str] = []
    for text in words:
        name, sign, value = text.partition("=")
        if run and name.lower() == "like" and value:
            models.insert(0, value)
            continue
        if not sign and (models or run) and (field := field_of_value(text)) is not None:
            if not WORDS[field].several and field in given:
                faults.append(
                    Fault((field,), f"is given twice, as {shown(given[field])} and {shown(text)}; give it once")
                )
            given[field] = f"{given[field]},{text}" if field in given else text
            continue
        if not sign or name.lower() in {"model", ".".join(_MODEL)}:
            models.append(value if sign else text)
            continue
        known = _ALSO.get(name.lower(), name.lower())
        if known not in WORDS:
            faults.append(Fault((name[:40],), _unknown(name)))
        elif known in given:
            faults.append(Fault((known,), "is given twice; give it once"))
        elif not value.strip():
            faults.append(Fault((known,), f"has no value; write {example_of(WORDS[known])}"))
        else:
            given[known] = value
    if not any(models):
        what = "say which model the run trained: like=llama-3-8b" if run else f"name a model first: {example}"
        faults.append(Fault(("like",) if run else ("model",), f"is missing; {what}"))
    faults += [_unknown_words(models[1:])] if len(models) > 1 else []
    if faults:
        raise UnusableInput(*faults)
    made = document({"model": models[0]} | given)
    if run:
        # Other words of the workload stay: the schema says that a measured run does not take them.
        rest = {name: value for name, value in made["workload"].items() if name != "model"}
        made["workload"] = rest | {"kind": "measured", **run, "like": models[0]}
        made.setdefault("name", f"a run like {models[0]}")
    return made


def split_words(text: str) -> list[str]:
    """The words of a line; `"two words"` are one. Raises `UnusableInput` for a quote that does not end."""
    lexer = shlex.shlex(text.translate(_PLAIN_QUOTES), posix=True)
    lexer.whitespace_split = True
    lexer.quotes, lexer.escape, lexer.commenters = '"', "", ""
    try:
        return list(lexer)
    except ValueError:
        raise UnusableInput.at(message='a quote (") is not closed; close it, or leave it out') from None


def is_sentence(text: str) -> bool:
    """Whether a text is the words of a job in one line, rather than a name or path: a run, or a word=value after blanks."""
    return _RUN.match(text) is not None or re.search(r"\S\s+\w+=", text) is not None


def _run_before(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """The machines and hours of a run that the words begin with, and the words after it; empty without one."""
    for end in range(min(len(words), 6), 0, -1):
        if (run := _RUN.fullmatch(" ".join(words[:end]))) is not None:
            return run.groupdict(), words[end:]
    return {}, words


def field_of_value(text: str) -> str | None:
    """The word whose value `text` can only be, such as method for `lora` or vendors for `nvidia`; None if there is none."""
    value = text.lower()
    for name in _BY_VALUE:
        if {value, value.replace("-", "_")} & set(WORDS[name].choices):
            return name
    if value in {accelerator.vendor.lower() for accelerator in accelerators().values()}:
        return "vendors"
    try:
        accelerator_family(text)
    except UnusableInput:
        return None
    return "on"


def document(given: Mapping[str, str]) -> JsonObject:
    """The job document of words by name, including `model`; the schema reads their values later."""
    made: JsonObject = {"workload": {"kind": "preset", "model": given["model"]}}
    for name, text in given.items():
        if name == "model":
            continue
        _set(made, name, text)
    return made


def _set(made: JsonObject, name: str, text: str) -> None:
    path, value = WORDS[name].path, WORDS[name].value_of([text])
    if path == _REGIONS and isinstance(value, list):
        _put(made, _GEOGRAPHY, [place for place in value if place.lower() in _GEOGRAPHIES])
        value = [place for place in value if place.lower() not in _GEOGRAPHIES]
    _put(made, path, value)


def known_word(name: str) -> str | None:
    """The word that a name stands for, such as `by` for `deadline`; None for an unknown one."""
    known = _ALSO.get(name.strip().lower(), name.strip().lower())
    return known if known in WORDS else None


def changed_by(job: JsonObject, changes: Mapping[str, str | None]) -> JsonObject:
    """The job document with words changed, or removed where None; the schema reads their values later."""
    made = deepcopy(job)
    for name, text in changes.items():
        for path in (WORDS[name].path, *((_GEOGRAPHY,) if name == "in" else ())):
            level = made
            for part in path[:-1]:
                level = level.setdefault(part, {})
            level.pop(path[-1], None)
        if text is not None:
            _set(made, name, text)
    return made


def in_words(error: UnusableInput) -> UnusableInput:
    """The same faults at their words; a field without a word keeps its name."""
    by_path = {field.path: name for name, field in WORDS.items()} | {_GEOGRAPHY: "in", _MODEL: "model"}
    faults = []
    for fault in error.faults:
        path = tuple(part for part in fault.path if isinstance(part, str))
        name = next((by_path[path[:end]] for end in range(len(path), 0, -1) if path[:end] in by_path), None)
        faults.append(fault if name is None else Fault((name,), fault.message))
    return UnusableInput(*faults)


def region(text: str) -> str:
    """A region or a glob as one word. Raises `UnusableInput` at `region`."""
    try:
        return region_glob(text)
    except ValueError as error:
        raise UnusableInput.at("region", message=str(error)) from None


def _put(made: JsonObject, path: tuple[str, ...], value: object) -> None:
    if value == []:
        return
    level = made
    for part in path[:-1]:
        level = level.setdefault(part, {})
    level[path[-1]] = value


def _unknown(name: str) -> str:
    if name.lower() in ("epoch", "epochs"):
        return "unknown word; give the tokens or samples of all epochs together, as in samples=115M"
    near = nearest(name, [*WORDS, *_ALSO], most=1)
    if near:
        known = _ALSO.get(near[0], near[0])
        return f"unknown word; did you mean {example_of(WORDS[known])}?"
    return f"unknown word; accepted are {', '.join(WORDS)}"


def _unknown_words(texts: Sequence[str]) -> Fault:
    named = ", ".join(map(shown, texts[:_MOST_NAMED]))
    others = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    follow = "follows" if len(texts) == 1 else "follow"
    message = (
        f"{named}{others} {follow} the model; write word=value, as in llama-3-8b lora tokens=200M by=1d max=50 nvidia, with "
        f'"quotes" around blanks; words are the fields of a job file, and {", ".join(_SHORT)}'
    )
    return Fault(("model",), message)
