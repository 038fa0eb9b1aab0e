"""Reads answers of `plan` from JSON into their types."""

from collections.abc import Mapping
from typing import Any

from gpuplan.api.schemas.stored_answers import read_stored
from gpuplan.catalog.parsing.quantities import shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.plan import InfeasibleAnswer, Plan, PlanAnswer, PlannedAnswer

_ANOTHER_RELEASE = "the plan was made by another release; show it with --json, or plan the job again"
_NOT_A_PLAN = "this release writes it otherwise; give the output of `gpuplan plan --json`"


def read_answer(document: Mapping[str, Any]) -> PlanAnswer:
    """The typed answer of `plan` in a document. Raises `UnusableInput` at the first field unknown to this release."""
    if document["outcome"] == "planned":
        plan = _upgraded(document.get("plan"))
        return read_stored(PlannedAnswer, {**document, "plan": plan}, otherwise=_ANOTHER_RELEASE)
    return read_stored(InfeasibleAnswer, document, otherwise=_ANOTHER_RELEASE)


def read_plan(document: Mapping[str, Any]) -> Plan:
    """The plan of an answer from anyone, which need not have the rest of an answer and converts no type.

    Raises `UnusableInput` as `read_answer` does, and for an infeasible answer.
    """
    outcome = document.get("outcome")
    if outcome == "infeasible":
        message = "is infeasible, so there is nothing to export; relax a requirement and plan again"
        raise UnusableInput.at("outcome", message=message)
    if outcome != "planned":
        message = f"{shown(outcome)} is not accepted; give the output of `gpuplan plan --json`"
        raise UnusableInput.at("outcome", message=message)
    try:
        return read_stored(Plan, _upgraded(document.get("plan")), otherwise=_NOT_A_PLAN, strict=True)
    except UnusableInput as error:
        raise error.under("plan") from None


def _upgraded(plan: Any) -> Any:
    """The plan with what earlier releases lacked: they named the median of the hours expected."""
    hours = plan.get("hours") if isinstance(plan, Mapping) else None
    if not isinstance(hours, Mapping) or "median" in hours or "expected" not in hours:
        return plan
    return {**plan, "hours": {"median": hours["expected"]} | dict(hours)}
