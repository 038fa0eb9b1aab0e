"""What goes wrong, as RFC 9457 problem details."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gpuplan.planner.model.shared import MAY_BE_ABSENT, RENAMED


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """One field at fault: an RFC 6901 pointer into the body, or into the query, path or headers, as `in` says."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    pointer: str
    detail: str
    in_: str | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = field(default=None, metadata=MAY_BE_ABSENT)
    errors: tuple[FieldProblem, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)
