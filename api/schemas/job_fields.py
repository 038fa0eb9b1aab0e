"""Fields of a job in every interface, derived from their declarations in `planner/model`."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

from gpuplan.catalog.parsing.document_fields import Document, Listed, YesNo
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, Preset, Profile, Training, TrainingJob
from gpuplan.planner.model.job_field import Group, JobField
from gpuplan.planner.model.workloads import Transformer

#: The parts of a job document by their key; a preset comes before other workloads, whose fields share names with it.
PARTS: tuple[tuple[str, type], ...] = (
    ("workload", Preset),
    ("workload", Transformer),
    ("workload", Explicit),
    ("workload", Profile),
    ("training", Training),
    ("", TrainingJob),
    ("constraints", Constraints),
    ("data", DataSource),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenField:
    """One field as people write it: its path in a job document, its metadata, and its default (None: none).

    `several` values may stand in a list. `part` is the class that declares it.
    """

    path: tuple[str, ...]
    about: JobField
    part: type
    several: bool
    default: Any

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path[-1]

    @property
    def label(self) -> str:
        """The name of the field in forms."""
        return self.about.label or self.name.replace("_", " ").capitalize()

    @property
    def example(self) -> str:
        """A value as people write it; by default the first text among the examples of its reader."""
        examples = self.about.reads.schema.get("examples", ()) if self.about.reads is not None else ()
        return self.about.example or next((example for example in examples if isinstance(example, str)), "")

    @property
    def choices(self) -> Mapping[str, str]:
        """The names that the field takes, with their labels; empty if any text may be given."""
        if self.about.choices is not None:
            return self.about.choices()
        if self._is_boolean:
            return {"true": "yes", "false": "no"} if self.default else {"false": "no", "true": "yes"}
        names = self.about.reads.schema.get("enum", ()) if self.about.reads is not None else ()
        return {name: name.replace("_", " ") for name in names}

    @property
    def kind(self) -> str:
        """How a form takes the field: text, listed (comma-separated names), select (one option), checks (any options)."""
        if self.several:
            return "checks" if self.choices else "listed"
        return "select" if self.choices else "text"

    @property
    def hint(self) -> str:
        """The help as a form shows it, without markup, with the default of a number."""
        parts = ["comma-separated"] if self.kind == "listed" else []
        parts.append(self.about.help.replace("`", ""))
        if self.kind == "text" and isinstance(self.default, int | float) and self.default:
            parts.append(f"default: {self.default}")
        return "; ".join(parts)

    def value_of(self, texts: Sequence[str]) -> object:
        """What texts of a form, or of a word, stand for in a job document, whose reader checks it."""
        if self.several:
            return [name.strip() for text in texts for name in text.split(",") if name.strip()]
        if self._is_boolean:
            return {"true": True, "false": False}.get(texts[0].strip().lower(), texts[0])
        return texts[0]

    @property
    def _is_boolean(self) -> bool:
        return self.about.reads is YesNo


@cache
def job_fields() -> tuple[WrittenField, ...]:
    """All fields of a job but its parts, in the order of `PARTS`."""
    return tuple(
        WrittenField(
            path=(part, key) if part else (key,),
            about=about,
            part=owner,
            several=get_origin(_value_type(declared)) is tuple,
            default=_default(declared, about),
        )
        for part, owner in PARTS
        for key, (declared, about) in declared_fields(owner).items()
        if about.reads is not None or part
    )


def form_fields(group: Group) -> tuple[WrittenField, ...]:
    """The fields of a group in forms; where it has others, those of the workload come first among the work, else last."""
    chosen = [field for field in job_fields() if field.about.group == group]
    return tuple(sorted(chosen, key=lambda field: (field.path[0] == "workload") == (group != "work")))


@cache
def declared_fields(part: type) -> Mapping[str, tuple[Field[Any], JobField]]:
    """The fields of a part that documents have, with their metadata, by their keys in documents."""
    return {
        about.key or declared.name: (declared, about)
        for declared in fields(part)
        for about in get_args(declared.type)[1:]
        if isinstance(about, JobField)
    }


class DerivedDocument(Document):
    """A document with the fields of the dataclass `of` that have metadata; a field of the class body replaces one."""

    about: ClassVar[Mapping[str, JobField]] = {}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Derived fields, which no type checker knows."""

    def __init_subclass__(cls, *, of: type | None = None, **options: Any) -> None:
        """Annotate the class before pydantic collects its fields."""
        super().__init_subclass__(**options)
        if of is None:
            return
        written = declared_fields(of)
        cls.about = {key: about for key, (_, about) in written.items()}
        replaced = get_annotations(cls)
        cls.__annotations__ = {key: annotation for key, annotation in replaced.items() if key not in written}
        for key, (declared, about) in written.items():
            cls.__annotations__[key] = replaced.get(key) or _annotation(declared, about)
            if key not in replaced and (about.optional or declared.default is not MISSING):
                setattr(cls, key, _default(declared, about))


def _annotation(declared: Field[Any], about: JobField) -> Any:
    """What pydantic reads the field by."""
    if about.reads is None:
        raise TypeError(f"{declared.name} has no reader; give it one, or replace the field in the document's class")
    annotated: Any = Annotated
    value = _value_type(declared)
    if get_origin(value) is tuple:
        return annotated[tuple[annotated[str, about.reads], ...], Listed()]
    annotation = annotated[value, about.reads]
    return annotation | None if about.optional or declared.default is None else annotation


def _value_type(declared: Field[Any]) -> Any:
    """The type of a field's value, without None."""
    annotated = get_args(declared.type)[0]
    if isinstance(annotated, UnionType):
        return next(member for member in get_args(annotated) if member is not NoneType)
    return annotated


def _default(declared: Field[Any], about: JobField) -> Any:
    return None if about.optional or declared.default is MISSING else declared.default
