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
        answer: PlanAnswer = _adapter(kind).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{first['msg']}: the plan was made by another release; show it with --details, or plan the job again"
        raise UnusableInput.at(*first["loc"], message=message) from None
    return answer


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
