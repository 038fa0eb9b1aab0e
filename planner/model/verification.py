"""The answer of `verify`: a plan compared with its snapshot, figure by figure."""

from dataclasses import dataclass
from typing import Any, Literal

from gpuplan.planner.model.shared import JsonObject, Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongFigure:
    """A figure that is not what it should be."""

    figure: str
    """A pointer into the plan."""
    check: str
    stated: Any
    found: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule, and how many figures it was applied to."""

    check: str
    says: str
    basis: str
    passed: bool
    figures: int
    wrong: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked, on what basis, and what is wrong."""

    id: str
    of: str
    snapshot_id: str
    made_by: str
    wrong: tuple[WrongFigure, ...]
    """At most the first hundred."""
    wrong_count: int
    checks: tuple[Check, ...]
    bases: dict[str, str]
    covers: JsonObject
    """What the bound was compared with, and how far the plan is from it."""
    taken_on_trust: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationMeta:
    """When it was checked, how long that took, and by which release."""

    checked_at: Moment
    milliseconds: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationAnswer:
    """Whether every figure of the plan holds."""

    outcome: Literal["verified", "not_verified"]
    verification: Verification
    meta: VerificationMeta
