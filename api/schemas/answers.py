"""Reads answers of `plan` from JSON into their types."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import InfeasibleAnswer, PlanAnswer, PlannedAnswer


def read_answer(document: Mapping[str, Any]) -> PlanAnswer:
    """The typed answer of `plan` in a document. Raises `UnusableInput` at the first field unknown to this release."""
    kind = PlannedAnswer if document["outcome"] == "planned" else InfeasibleAnswer
    try:
        answer: PlanAnswer = _adapter(kind).validate_python(_upgraded(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{first['msg']}: the plan was made by another release; show it with --json, or plan the job again"
        raise UnusableInput.at(*first["loc"], message=message) from None
    return answer


def _upgraded(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document with what earlier releases lacked: they named the median of the hours expected."""
    hours = (document.get("plan") or {}).get("hours")
    if not hours or "median" in hours:
        return document
    return {**document, "plan": document["plan"] | {"hours": {"median": hours["expected"]} | hours}}


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
