"""Fields of user documents: one reader per field, and readable faults.

A document model derives from `Document` and gives each field a `Reads(reader, schema)`. Pydantic's errors become `Fault`s
that name the field and what it accepts.
"""

import difflib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from gpuplan.catalog.parsing.quantities import shown, whole
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

#: Maximum number of reported faults; the rest is counted.
_MOST_FAULTS = 20
_LONGEST_LIST = 200
#: Longer lists of names are cut to the nearest matches.
_MOST_NAMES = 12
_LONGEST_NAME = 200
_UNKNOWN = "unknown key"


class Document(BaseModel):
    """A mapping that rejects unknown keys and suggests the nearest known key."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Annotation: `reader` (which raises `ValueError`) reads the field, and `schema` describes it."""

    reader: Callable[[object], object]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Use the reader as the only validation."""
        return core_schema.no_info_plain_validator_function(self.reader)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The field's schema in OpenAPI."""
        return dict(self.schema)


def quantity(reader: Callable[[object], object], description: str, *examples: object) -> Reads:
    """A field that takes a number or text with a unit."""
    schema = {"anyOf": [{"type": "number"}, {"type": "string"}], "description": description, "examples": list(examples)}
    return Reads(reader, schema)


def whole_number(low: int, high: int, description: str = "") -> Reads:
    """A field that takes a whole number from `low` to `high`."""
    schema = {
        "anyOf": [{"type": "integer", "minimum": low, "maximum": high}, {"type": "string"}],
        "description": description or f"a whole number from {low} to {high}",
    }
    return Reads(lambda value: whole(value, low=low, high=high), schema)


def yes_or_no(value: object) -> bool:
    """Accept true or false only, not values that resemble them."""
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not accepted; write true or false")
    return value


YesNo = Reads(yes_or_no, {"type": "boolean"})


def label(value: object) -> str:
    """A name on one printable line of at most 200 characters."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{shown(value)} is not accepted; write a name as text")
    if len(value) > _LONGEST_NAME or not value.isprintable():
        raise ValueError(
            f"{shown(value)} is not accepted; write one printable line of at most {_LONGEST_NAME} characters"
        )
    return value.strip()


Label = Reads(label, {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME})

LONGEST_NOTE = 500


def _note(value: object) -> str:
    """One printable line of text."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NOTE or not value.isprintable():
        raise ValueError(
            f"{shown(value)} is not accepted; write one printable line of at most {LONGEST_NOTE} characters"
        )
    return value.strip()


Note = Reads(_note, {"type": "string", "maxLength": LONGEST_NOTE})


def nearest(text: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known spellings most similar to `text`, best first; empty if none is near."""
    folded = {name.lower(): name for name in known}
    return [folded[near] for near in difflib.get_close_matches(text.lower()[:100], list(folded), n=most, cutoff=0.5)]


def choose(value: object, known: Sequence[str], aliases: Mapping[str, str] | None = None) -> str:
    """One of `known`, in any case and with - or blank for _, or the name that an alias denotes.

    Raises `ValueError` with the nearest names and all accepted names.
    """
    if isinstance(value, str):
        match = _spellings(tuple(known), tuple((aliases or {}).items()))
        if _fold(value) in match:
            return match[_fold(value)]
        near = list(dict.fromkeys(match[spelling] for spelling in nearest(_fold(value), match)))
    else:
        near = []
    if near and len(known) > _MOST_NAMES:
        raise ValueError(f"{shown(value)} is not accepted; nearest: {', '.join(near)}")
    hint = f"did you mean {near[0]}? " if near else ""
    raise ValueError(f"{shown(value)} is not accepted; {hint}write one of {', '.join(known)}")


def _spellings(known: tuple[str, ...], aliases: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The name by folded name or alias."""
    return {_fold(spelling): spelling for spelling in known} | {_fold(spelling): name for spelling, name in aliases}


def _fold(word: str) -> str:
    """Fold case; treat dash, blank and underscore as the same."""
    return word[:100].strip().lower().replace("-", "_").replace(" ", "_")


def choice(known: Sequence[str], aliases: Mapping[str, str] | None = None, description: str = "") -> Reads:
    """A field that takes one of `known`."""
    schema = {"type": "string", "enum": list(known)} | ({"description": description} if description else {})
    return Reads(lambda value: choose(value, known, aliases), schema)


def listed(value: object, *, most: int = _LONGEST_LIST) -> object:
    """A list of at most 200 entries, unless `most` differs; a single text counts as a list of one."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and len(value) > most:
        raise ValueError(f"a list of {len(value)} entries is too long; at most {most} are accepted")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Annotation of a tuple: read from a list of at most `most` entries, or from a single text."""

    most: int = _LONGEST_LIST

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the list, then each entry by the tuple's type."""
        return core_schema.no_info_before_validator_function(partial(listed, most=self.most), handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Entries that are texts may be given without a list."""
        several = handler(core) | {"maxItems": self.most}
        entry = several.get("items", {})
        return {"anyOf": [entry, several]} if entry.get("type") == "string" or "enum" in entry else several


def read_as[D: Document](model: type[D], document: object) -> D:
    """`document` as `model`; raises `UnusableInput` with all faults."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise UnusableInput(*faults_of(error.errors(include_url=False), model)) from None


def faults_of(errors: Sequence[Mapping[str, Any]], model: type[BaseModel]) -> tuple[Fault, ...]:
    """Pydantic's errors as readable faults: at most twenty, then the number of the rest."""
    faults = [_fault(error, model) for error in errors[:_MOST_FAULTS]]
    reported: set[str] = set()
    for i, fault in enumerate(faults):
        if fault.message in reported and fault.message.startswith(_UNKNOWN):
            faults[i] = Fault(fault.path, _UNKNOWN)
        reported.add(fault.message)
    if len(errors) > _MOST_FAULTS:
        faults.append(Fault((), f"and {len(errors) - _MOST_FAULTS} more faults"))
    return tuple(faults)


def _fault(error: Mapping[str, Any], model: type[BaseModel]) -> Fault:
    path, holder = _located(error["loc"], model)
    if error["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        return Fault((*path, "kind"), _unknown_kind(error, _fields(holder)[str(path[-1])].annotation))
    return Fault(path, _message(error, holder))


def _located(loc: Sequence[str | int], model: type[BaseModel]) -> tuple[tuple[str | int, ...], type[BaseModel]]:
    """The path in the user's document, and the innermost model along it.

    Pydantic adds the tag of a union's member to the path; the user's document has no such level.
    """
    path: list[str | int] = []
    models: list[type[BaseModel]] = [model]
    holder = model
    for part in loc:
        if len(models) > 1:
            models = [candidate for candidate in models if part in _kinds(candidate)]
            continue
        holder = models[0] if models else holder
        path.append(part[:80] if isinstance(part, str) else part)
        if isinstance(part, str):
            field = _fields(holder).get(part)
            models = _models_in(field.annotation) if field else []
    return tuple(path), holder


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the keys that users write: a Python keyword (`not`) is an alias of its field."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _unknown_kind(error: Mapping[str, Any], annotation: Any) -> str:
    known = [kind for model in _models_in(annotation) for kind in _kinds(model)]
    given = error["input"].get("kind") if isinstance(error["input"], dict) else None
    if given is None:
        return f"is missing, and required; write one of {', '.join(known)}"
    near = nearest(given, known, most=1) if isinstance(given, str) else []
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{shown(given)} is not accepted; {hint}write one of {', '.join(known)}"


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    field = model.model_fields.get("kind")
    return typing.get_args(field.annotation) if field else ()


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The document models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models_in(part)]


def _message(error: Mapping[str, Any], holder: type[BaseModel]) -> str:
    kind, given = error["type"], error.get("input")
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "missing":
        return "is missing, and required"
    if kind == "extra_forbidden":
        return _unknown_key(str(error["loc"][-1]), list(_fields(holder)))
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return f"{shown(given)} is not accepted; write a mapping of keys to values"
    if kind in {"tuple_type", "list_type"}:
        return f"{shown(given)} is not accepted; write a list"
    return f"{shown(given)} is not accepted: {error['msg']}"


def _unknown_key(key: str, known: Sequence[str]) -> str:
    near = nearest(key, known, most=1)
    if near:
        return f"{_UNKNOWN}; did you mean {near[0]}?"
    return f"{_UNKNOWN}; accepted are {', '.join(known)}"
