"""The answer of `POST /v1/verify`: a plan held against its snapshot, figure by figure."""

from typing import Any, Literal, TypedDict

from gpuplan_client.answers.parts import JsonObject, Moment


class WrongFigure(TypedDict):
    """A figure that is not what it should be."""

    figure: str
    """A pointer into the plan."""
    check: str
    stated: Any
    found: Any
    why: str


class Check(TypedDict):
    """One rule, and how many figures it was held against."""

    check: str
    says: str
    basis: str
    passed: bool
    figures: int
    wrong: int


class Verification(TypedDict):
    """What was checked, on what basis, and what is wrong."""

    id: str
    of: str
    snapshot_id: str
    made_by: str
    wrong: list[WrongFigure]
    wrong_count: int
    checks: list[Check]
    bases: dict[str, str]
    covers: JsonObject
    """What the bound was held against, and how far the plan is from it."""
    taken_on_trust: list[str]


class CheckedMeta(TypedDict):
    """When it was checked, how long that took, and by which release."""

    checked_at: Moment
    milliseconds: float
    version: str


class VerificationAnswer(TypedDict):
    """Whether every figure of the plan holds."""

    outcome: Literal["verified", "not_verified"]
    verification: Verification
    meta: CheckedMeta
