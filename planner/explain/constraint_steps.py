"""Effects of a day more or a thousand dollars less: exact steps, and the slopes between them.

Steps are the points of the cost-time frontier around the plan. A day more or less is planned anew. A thousand dollars less
or more leads to the fastest configuration for that money, and the deadline that it needs (or, for another objective, to
its best within the deadline). Slopes are the duals of the choice relaxed to a mix of configurations (`relaxed_choice`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import (
    BEST,
    carbon_mg,
    cost_micros,
    in_words,
    pareto,
    soonest,
    whole_hours,
)
from gpuplan.planner.explain.pareto_cost_time_carbon import surface
from gpuplan.planner.explain.sensitivity import deadline_for
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice, PhaseChoice, Planned
from gpuplan.planner.strategies.schedule import Schedule, on_one_configuration
from gpuplan.planner.strategies.single.choice_model import Rows, relaxed
from gpuplan.planner.strategies.strategy_choice import cheapest_schedule

Ints = NDArray[np.int64]

#: Steps shown on either side.
MOST_STEPS = 5
DAY_HOURS = 24.0
#: Dollars less and more; for a plan below twice this amount, a tenth of its cost.
THOUSAND_MICROS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A point of the frontier: the least deadline that allows it, and its extra cost over the plan (negative: less)."""

    deadline_hours: float
    extra: int
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The effect of another deadline (`deadline`) or another sum of money (`budget_usd`).

    `by` is in hours or micro-dollars. If `extra` is None, no plan meets the changed requirement. `extra` micro-dollars,
    `extra_hours` (at the requested confidence) and `extra_kg` (None if unknown) are relative to the plan. `deadline_hours` is
    the deadline that the changed plan needs.
    """

    requirement: str
    by: float
    extra: int | None
    extra_hours: float | None
    extra_kg: float | None
    deadline_hours: float | None
    phases: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps to either side of the plan, nearest first, single changes, and the dual of each requirement.

    The objective is in USD, hours or kg; a dual is how much one more hour, dollar or kg lowers it.
    """

    slower: tuple[Step, ...]
    faster: tuple[Step, ...]
    changes: tuple[Change, ...]
    duals: dict[str, float]


def steps(candidates: Candidates, plan: Planned, free: Candidates | None) -> Steps:
    """All steps around a plan of the job with these candidates.

    `free` are the configurations of known carbon without a carbon budget: given where carbon matters, since a mix may use
    configurations over the budget.
    """
    table = candidates.table
    front = pareto(table, np.ones(len(table), np.bool_))
    cost, hours = cost_micros(table)[front], table.cost_breakdown.hours_at_confidence[front]
    mine = plan.cost.expected
    slower = front[(cost < mine) & (hours > plan.hours.confident)]
    faster = front[(hours < plan.hours.confident) & (cost > mine)][::-1]
    return Steps(
        slower=tuple(_step(candidates, index, mine) for index in slower[:MOST_STEPS].tolist()),
        faster=tuple(_step(candidates, index, mine) for index in faster[:MOST_STEPS].tolist()),
        changes=(*_days(candidates, plan), *_money(candidates, plan)),
        duals=duals(plan.job, candidates, front) if free is None else duals(plan.job, free, surface(free.table)),
    )


def _step(candidates: Candidates, index: int, mine: int) -> Step:
    choice = in_words(candidates, candidates.table, index)
    return Step(deadline_hours=deadline_for(choice.hours.confident), extra=choice.cost.expected - mine, choice=choice)


def _days(candidates: Candidates, plan: Planned) -> list[Change]:
    """The plan with a day more and with a day less; empty without a deadline."""
    deadline = plan.job.deadline_hours
    if deadline is None:
        return []
    return [
        _changed("deadline", by, plan, _by(candidates, deadline + by))
        for by in (DAY_HOURS, -DAY_HOURS)
        if deadline + by > 0
    ]


def _by(candidates: Candidates, deadline_hours: float) -> Schedule | None:
    """The best schedule with another deadline, from the same configurations: no deadline excludes any of them."""
    job = replace(candidates.question.job, deadline_hours=deadline_hours)
    chosen = BEST[job.objective](candidates.table, over(candidates.table, deadline_hours, job.budget_usd) == 0)
    best = cheapest_schedule(replace(candidates, question=replace(candidates.question, job=job)), chosen)
    return None if best is None else best.schedule


def _changed(requirement: str, by: float, plan: Planned, other: Schedule | None) -> Change:
    if other is None:
        return _impossible(requirement, by)
    kg = [carbon_of(run.phases) for run in (other, plan)]
    return Change(
        requirement=requirement,
        by=by,
        extra=other.cost.expected - plan.cost.expected,
        extra_hours=other.hours.confident - plan.hours.confident,
        extra_kg=None if kg[0] is None or kg[1] is None else kg[0] - kg[1],
        deadline_hours=deadline_for(other.hours.confident),
        phases=tuple(phase.choice for phase in other.phases),
    )


def _impossible(requirement: str, by: float) -> Change:
    return Change(
        requirement=requirement, by=by, extra=None, extra_hours=None, extra_kg=None, deadline_hours=None, phases=()
    )


def carbon_of(phases: tuple[PhaseChoice, ...]) -> float | None:
    """kg of all phases; None if any phase's carbon is unknown."""
    kg = [phase.carbon_kg for phase in phases]
    return None if None in kg else sum(phase_kg for phase_kg in kg if phase_kg is not None)


def _money(candidates: Candidates, plan: Planned) -> list[Change]:
    """What a thousand dollars less and more than the cost of the plan buy, on one configuration.

    For a plan of least cost, less money needs a later deadline, so this is the fastest run for the money. For another
    objective it is the best run within the deadline.
    """
    table, mine, job = candidates.table, plan.cost.expected, plan.job
    amount = THOUSAND_MICROS if mine >= 2 * THOUSAND_MICROS else mine // 10
    changes = []
    for by in (-amount, amount) if amount else ():
        among = cost_micros(table) <= mine + by
        if job.objective != "cost":
            among &= over(table, job.deadline_hours, None) == 0
        index = (soonest if job.objective == "cost" else BEST[job.objective])(table, among)
        other = None if index is None else on_one_configuration(candidates, index)
        # More money that buys no time has no effect.
        if by < 0 or (other is not None and other.hours.confident < plan.hours.confident) or job.objective != "cost":
            changes.append(_changed("budget_usd", float(by), plan, other))
    return changes


def duals(job: TrainingJob, candidates: Candidates, front: Ints) -> dict[str, float]:
    """How much one more hour, dollar or kg lowers the objective, by the requirement that the job states."""
    table = candidates.table
    if not len(front):
        return {}
    usd, hours = cost_micros(table)[front] / 1e6, table.cost_breakdown.hours_at_confidence[front]
    limits = (
        ("deadline", hours, job.deadline_hours),
        ("budget_usd", usd, job.budget_usd),
        ("constraints.carbon_budget_kg", table.carbon_kg[front], job.constraints.carbon_budget_kg),
    )
    rows: Rows = {name: (values, limit) for name, values, limit in limits if limit is not None}
    if not rows:
        return {}
    objective = {"cost": usd, "time": whole_hours(table)[front] / 1e6, "carbon": carbon_mg(table)[front] / 1e6}
    mix = relaxed(objective[job.objective], rows)
    return {} if mix is None else mix.worth
