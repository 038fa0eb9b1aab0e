"""The short answer of `plan`, feasible or not."""

from gpuplan.api.presentation.sections import Section
from gpuplan.api.presentation.short_infeasible import short_infeasible
from gpuplan.api.presentation.short_plan import short_plan
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer


def short_answer(answer: PlannedAnswer | InfeasibleAnswer) -> tuple[Section, ...]:
    """The most important sections, at most a screen of lines."""
    return short_plan(answer.plan) if isinstance(answer, PlannedAnswer) else short_infeasible(answer.infeasible)
