"""Reads answers of `plan` from JSON into their types."""

from collections.abc import Mapping
from typing import Any

from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer

_ANOTHER_RELEASE = "the plan was made by another release; show it with --json, or plan the job again"


def read_answer(document: Mapping[str, Any]) -> PlanAnswer:
    """The typed answer of `plan` in a document. Raises `UnusableInput` at the first field unknown to this release."""
    if document["outcome"] == "planned":
        return read_stored(PlannedAnswer, _upgraded(document), otherwise=_ANOTHER_RELEASE)
    return read_stored(InfeasibleAnswer, document, otherwise=_ANOTHER_RELEASE)


def _upgraded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document with what earlier releases lacked: they named the median of the hours expected."""
    hours = (document.get("plan") or {}).get("hours")
    if not hours or "median" in hours:
        return document
    return {**document, "plan": document["plan"] | {"hours": {"median": hours["expected"]} | hours}}
