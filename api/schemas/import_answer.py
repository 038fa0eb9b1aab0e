"""The answer of an import: the job that configurations of other tools describe, and what it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.shared import RENAMED


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFact:
    """A value that was understood, and the file and line or the framework's default that it comes from."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    value: bool | int | float | str
    from_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFact:
    """What a job needs and no text states: the field of the request that gives it, and why it is needed."""

    field: str
    say: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer:
    """A job document, and what it rests on. `job` can be planned once nothing is `missing`."""

    format: str
    facts: dict[str, ImportedFact]
    job: JsonObject
    assumed: tuple[str, ...]
    missing: tuple[MissingFact, ...]
    missing_files: tuple[str, ...]
    not_understood: tuple[str, ...]
