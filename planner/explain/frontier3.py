"""Cost against time against carbon: every configuration that no other beats in all three, and the knee among them.

The rule of the knee: of each measure take the least that any considered point has; a point's *factor* is the most by
which one of its three measures exceeds its least, max(cost / least cost, hours / least hours, kg / least kg). The knee
is the point of least factor: nobody can promise to stay within a smaller multiple of the best in all three at once
(a minimax regret, in proportions, so that units and outliers do not matter). Equal factors: the cheapest, then the
fastest. Considered are the points within deadline, budget and carbon budget; where there are none, all.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates, over
from planner.choice import carbon_mg, cost_micros, in_words
from planner.explain.objectives import unknown_carbon
from planner.job import TrainingJob
from planner.pareto import nondominated
from planner.question import Question

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: What is smaller than this share of the most on the frontier counts as this share: a factor of zero or of nothing is none.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One trade of cost (and hours at the asked confidence, both in `choice`) against carbon.

    `within`: it keeps deadline, budget and carbon budget. `factor` is how many times the least of some measure it has.
    """

    choice: Choice
    carbon_kg: float
    within: bool
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier3:
    """All points, fastest first, and which is the knee (None where carbon is known of nothing).

    `among` is how many points the knee was chosen among. `unknown` says of what nobody knows the carbon: left out.
    """

    points: tuple[Point, ...]
    knee: int | None
    among: int
    unknown: tuple[str, ...]
    configurations: int


def of_known_carbon(question: Question) -> Candidates:
    """Every configuration of known carbon, whatever the carbon budget; constraints hold."""
    constraints = replace(question.job.constraints, carbon_budget_kg=None)
    return candidates(replace(question, job=replace(question.job, objective="carbon", constraints=constraints)))


def frontier3(job: TrainingJob, found: Candidates) -> Frontier3:
    """The frontier of a job over configurations `of_known_carbon`; deadline, budget and carbon budget do not limit it."""
    table = found.table
    front = surface(table)
    within = (over(table, job.deadline_hours, job.budget_usd) == 0)[front]
    if job.constraints.carbon_budget_kg is not None:
        within &= table.carbon_kg[front] <= job.constraints.carbon_budget_kg * (1 + 1e-9)
    considered = within if within.any() else np.ones(len(front), np.bool_)
    factor = factors(_measures(table, front), considered)
    return Frontier3(
        points=_points(found, front, within, factor),
        knee=knee(factor, considered, _measures(table, front)),
        among=int(considered.sum()),
        unknown=unknown_carbon(found),
        configurations=len(table),
    )


def surface(table: Configurations) -> Ints:
    """Elements that no other beats in hours (at the asked confidence), cost and carbon; all carbon is known."""
    return nondominated(table.bill.hours_kept, cost_micros(table), carbon_mg(table))


def _measures(table: Configurations, front: Ints) -> Floats:
    """[3, points]: USD, hours, kg."""
    return np.stack((cost_micros(table)[front] / 1e6, table.bill.hours_kept[front], carbon_mg(table)[front] / 1e6))


def factors(measures: Floats, considered: Flags) -> Floats:
    """Per point the most by which a measure exceeds the least of the considered points; `measures` is [3, points]."""
    if not considered.any():
        return np.zeros(measures.shape[1])
    most = measures[:, considered].max(axis=1)
    floor = np.maximum(measures[:, considered].min(axis=1), most * _LEAST_SHARE)
    # A measure that is zero everywhere tells no points apart.
    floor = np.where(floor > 0, floor, 1.0)[:, None]
    return np.asarray((np.maximum(measures, floor) / floor).max(axis=0), np.float64)


def knee(factor: Floats, considered: Flags, measures: Floats) -> int | None:
    """The considered point of least factor; of equal ones the cheapest, then the fastest."""
    at = np.flatnonzero(considered)
    if not len(at):
        return None
    order = np.lexsort((measures[1, at], measures[0, at], factor[at]))
    return int(at[order[0]])


def _points(found: Candidates, front: Ints, within: Flags, factor: Floats) -> tuple[Point, ...]:
    table = found.table
    return tuple(
        Point(
            choice=in_words(found, table, index),
            carbon_kg=float(table.carbon_kg[index]),
            within=bool(within[i]),
            factor=float(factor[i]),
        )
        for i, index in enumerate(front.tolist())
    )
