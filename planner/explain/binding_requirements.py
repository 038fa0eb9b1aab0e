"""Which requirement binds: how much the plan would gain if only this requirement were given up.

Every configuration, on up to four times the allowed nodes, is marked with the requirements that it breaks. The gain of
giving up r is that of the best configuration that breaks none but r. This is exact over plans of one configuration.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.configuration_choice import BEST, carbon_mg, cost_micros, in_words, whole_hours
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.job_requirements import BIT, present
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.infeasibility import asked, everything, needed
from gpuplan.planner.model.outcome import Choice, Planned

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One requirement that the job states.

    `gain` is how much giving it up lowers the objective, in millionths of its unit (micro-dollars, micro-hours, milligrams);
    0 if it does not bind. If it binds, `needed` is the least that it must allow for the plan `choice`.
    """

    requirement: str
    asked: str
    gain: int
    needed: str | None = None
    choice: Choice | None = None
    carbon_kg: float | None = None


def whole(table: Configurations, objective: str) -> Floats:
    """The objective of each configuration in millionths of its unit; nan where unknown."""
    measures = {"cost": cost_micros, "time": whole_hours, "carbon": carbon_mg}
    return measures[objective](table)


def reached(plan: Planned) -> float:
    """The objective of a plan in millionths of its unit."""
    if plan.job.objective == "time":
        return float(np.rint(plan.hours.confident * 1e6))
    if plan.job.objective == "carbon":
        return float(np.rint(sum(phase.carbon_kg or 0.0 for phase in plan.phases) * 1e6))
    return float(plan.cost.expected)


def bindings(question: Question, plan: Planned) -> tuple[Binding, ...]:
    """Every requirement of the job, those of the largest gain first."""
    job = question.job
    tables = everything(question)
    result = []
    for name in present(job, limited_by_quotas=bool(question.markets[0].quotas)):
        if name == "objective":
            continue
        best = Binding(requirement=name, asked=asked(job, name), gain=0)
        for relaxed, marks in tables:
            among = marks & ~BIT[name] == 0
            index = BEST[job.objective](relaxed.table, among)
            if index is None:
                continue
            gain = round(reached(plan) - float(whole(relaxed.table, job.objective)[index]))
            if gain > best.gain:
                choice, kg = in_words(relaxed, relaxed.table, index), float(relaxed.table.carbon_kg[index])
                best = Binding(
                    requirement=name,
                    asked=asked(job, name),
                    gain=gain,
                    needed=needed(name, choice, kg),
                    choice=choice,
                    carbon_kg=None if np.isnan(kg) else kg,
                )
        result.append(best)
    return tuple(sorted(result, key=lambda binding: -binding.gain))
