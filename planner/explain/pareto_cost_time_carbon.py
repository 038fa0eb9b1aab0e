"""Cost, time and carbon: every configuration that no other dominates in all three, and the knee of this frontier.

The rule of the knee: for each measure take the least value of all considered points. The *factor* of a point is the
largest ratio of its three measures to these, max(cost / least cost, hours / least hours, kg / least kg). The knee is the
point of least factor: no other point stays within a smaller multiple of the best in all three at once (a minimax regret,
in proportions, so that units and outliers do not matter). Of equal factors: the cheapest, then the fastest. Considered are
the points within deadline, budget and carbon budget; if there are none, all points.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over
from gpuplan.planner.candidates.configuration_choice import carbon_mg, cost_micros, in_words
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.pareto_filter import nondominated
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.terms_notes import unknown_carbon
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Values below this share of the largest on the frontier count as this share: a ratio to zero is not a factor.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One trade-off of cost (and hours at the requested confidence, both in `choice`) against carbon.

    `within`: it meets deadline, budget and carbon budget. `factor` is its largest ratio to the least of a measure.
    """

    choice: Choice
    carbon_kg: float
    within: bool
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonFrontier:
    """All points, fastest first, and the index of the knee (None if no carbon is known).

    `among` is the number of points that the knee was chosen from. `unknown` are sentences on what is left out for its unknown
    carbon.
    """

    points: tuple[Point, ...]
    knee: int | None
    among: int
    unknown: tuple[str, ...]
    configurations: int


def of_known_carbon(question: Question) -> Candidates:
    """Every configuration of known carbon that the constraints allow, at any carbon budget."""
    constraints = replace(question.job.constraints, carbon_budget_kg=None)
    return candidates(replace(question, job=replace(question.job, objective="carbon", constraints=constraints)))


def pareto_cost_time_carbon(job: TrainingJob, candidates: Candidates) -> CarbonFrontier:
    """The frontier of a job over configurations `of_known_carbon`; deadline, budget and carbon budget do not limit it."""
    table = candidates.table
    front = surface(table)
    within = (over(table, job.deadline_hours, job.budget_usd) == 0)[front]
    if job.constraints.carbon_budget_kg is not None:
        within &= table.carbon_kg[front] <= job.constraints.carbon_budget_kg * (1 + 1e-9)
    considered = within if within.any() else np.ones(len(front), np.bool_)
    factor = factors(_measures(table, front), considered)
    return CarbonFrontier(
        points=_points(candidates, front, within, factor),
        knee=knee(factor, considered, _measures(table, front)),
        among=int(considered.sum()),
        unknown=unknown_carbon(candidates),
        configurations=len(table),
    )


def surface(table: Configurations) -> Ints:
    """Configurations that no other dominates in hours (at the requested confidence), cost and carbon, all of it known."""
    return nondominated(table.cost_breakdown.hours_at_confidence, cost_micros(table), carbon_mg(table))


def _measures(table: Configurations, front: Ints) -> Floats:
    """[3, points]: USD, hours, kg."""
    return np.stack(
        (
            cost_micros(table)[front] / 1e6,
            table.cost_breakdown.hours_at_confidence[front],
            carbon_mg(table)[front] / 1e6,
        )
    )


def factors(measures: Floats, considered: Flags) -> Floats:
    """Per point the largest ratio of a measure to the least of the considered points; `measures` is [3, points]."""
    if not considered.any():
        return np.zeros(measures.shape[1])
    most = measures[:, considered].max(axis=1)
    floor = np.maximum(measures[:, considered].min(axis=1), most * _LEAST_SHARE)
    # A measure that is zero everywhere does not distinguish points.
    floor = np.where(floor > 0, floor, 1.0)[:, None]
    return np.asarray((np.maximum(measures, floor) / floor).max(axis=0), np.float64)


def knee(factor: Floats, considered: Flags, measures: Floats) -> int | None:
    """The considered point of least factor; of equal ones the cheapest, then the fastest."""
    at = np.flatnonzero(considered)
    if not len(at):
        return None
    order = np.lexsort((measures[1, at], measures[0, at], factor[at]))
    return int(at[order[0]])


def _points(candidates: Candidates, front: Ints, within: Flags, factor: Floats) -> tuple[Point, ...]:
    table = candidates.table
    return tuple(
        Point(
            choice=in_words(candidates, table, index),
            carbon_kg=float(table.carbon_kg[index]),
            within=bool(within[i]),
            factor=float(factor[i]),
        )
        for i, index in enumerate(front.tolist())
    )
