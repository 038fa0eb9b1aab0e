"""What a day more or a thousand dollars less changes: exact steps, and the slopes between them.

Steps are the points of the cost-time frontier around the plan. What a day more or less changes is planned anew. What a
thousand dollars less or more changes is the fastest configuration for that money: the deadline that it needs. Slopes
are the duals of the choice relaxed to a mix of configurations (`planner.optimise.relaxed`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice, Planned
from planner.candidates.gather import Candidates, over
from planner.choice import BEST, carbon_mg, cost_micros, in_words, pareto, soonest, whole_hours
from planner.explain.frontier3 import surface
from planner.explain.sensitivity import deadline_for
from planner.job import TrainingJob
from planner.optimise.relaxed import relaxed
from planner.optimise.single import Rows
from planner.phases.cheapest import cheapest_course
from planner.phases.course import Course

Ints = NDArray[np.int64]

#: Steps shown to either side.
MOST_STEPS = 5
DAY_HOURS = 24.0
#: Dollars less and more that are asked about; of a plan below twice that, a tenth of its cost.
THOUSAND_MICROS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A point of the frontier: the least deadline that allows it, and what it costs more than the plan (less: negative)."""

    deadline_hours: float
    extra: int
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What another deadline (`deadline`) or another sum of money (`budget_usd`) changes.

    `by` is in hours or micro-dollars. Without a plan at that (`extra` None) the changed requirement cannot be met. `extra`
    micro-dollars and `extra_hours` (at the asked confidence) are told against the plan; `deadline_hours` is what the
    changed plan needs.
    """

    requirement: str
    by: float
    extra: int | None
    extra_hours: float | None
    deadline_hours: float | None
    phases: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps to either side of the plan, nearest first, single changes, and duals by requirement in `of` per unit.

    Units of the objective are USD, hours or kg; a dual is what one more hour, dollar or kg allowed takes off it.
    """

    slower: tuple[Step, ...]
    faster: tuple[Step, ...]
    changes: tuple[Change, ...]
    duals: dict[str, float]


def steps(found: Candidates, plan: Planned, free: Candidates | None) -> Steps:
    """Everything around a plan of the job whose configurations are `found`.

    `free` are the configurations of known carbon without a carbon
    budget: given where carbon decides, since a mix may draw on those over the budget.
    """
    table = found.table
    front = pareto(table, np.ones(len(table), np.bool_))
    cost, hours = cost_micros(table)[front], table.bill.hours_kept[front]
    mine = plan.cost.expected
    slower = front[(cost < mine) & (hours > plan.hours.confident)]
    faster = front[(hours < plan.hours.confident) & (cost > mine)][::-1]
    return Steps(
        slower=tuple(_step(found, index, mine) for index in slower[:MOST_STEPS].tolist()),
        faster=tuple(_step(found, index, mine) for index in faster[:MOST_STEPS].tolist()),
        changes=(*_days(found, plan), *_money(found, plan)),
        duals=duals(plan.job, found, front) if free is None else duals(plan.job, free, surface(free.table)),
    )


def _step(found: Candidates, index: int, mine: int) -> Step:
    choice = in_words(found, found.table, index)
    return Step(deadline_hours=deadline_for(choice.hours.confident), extra=choice.cost.expected - mine, choice=choice)


def _days(found: Candidates, plan: Planned) -> list[Change]:
    """The plan with a day more and with a day less; nothing where there is no deadline."""
    deadline = plan.job.deadline_hours
    if deadline is None:
        return []
    return [
        _changed("deadline", by, plan, _by(found, deadline + by)) for by in (DAY_HOURS, -DAY_HOURS) if deadline + by > 0
    ]


def _by(found: Candidates, deadline_hours: float) -> Course | None:
    """What `plan` would choose with another deadline, from the same configurations: no deadline rules any of them out."""
    job = replace(found.question.job, deadline_hours=deadline_hours)
    chosen = BEST[job.objective](found.table, over(found.table, deadline_hours, job.budget_usd) == 0)
    best = cheapest_course(replace(found, question=replace(found.question, job=job)), chosen)
    return None if best is None else best.course


def _changed(requirement: str, by: float, plan: Planned, other: Course | None) -> Change:
    if other is None:
        return Change(requirement=requirement, by=by, extra=None, extra_hours=None, deadline_hours=None, phases=())
    return Change(
        requirement=requirement,
        by=by,
        extra=other.cost.expected - plan.cost.expected,
        extra_hours=other.hours.confident - plan.hours.confident,
        deadline_hours=deadline_for(other.hours.confident),
        phases=tuple(phase.choice for phase in other.phases),
    )


def _money(found: Candidates, plan: Planned) -> list[Change]:
    """The fastest run for a thousand dollars less and more than the plan costs."""
    table, mine = found.table, plan.cost.expected
    amount = THOUSAND_MICROS if mine >= 2 * THOUSAND_MICROS else mine // 10
    changes = []
    for by in (-amount, amount):
        among = cost_micros(table) <= mine + by
        index = soonest(table, among) if amount else None
        choice = None if index is None else in_words(found, table, index)
        # More money that buys no time changes nothing.
        if amount and (by < 0 or (choice is not None and choice.hours.confident < plan.hours.confident)):
            changes.append(_paid(by, choice, plan))
    return changes


def _paid(by: int, choice: Choice | None, plan: Planned) -> Change:
    return Change(
        requirement="budget_usd",
        by=float(by),
        extra=None if choice is None else choice.cost.expected - plan.cost.expected,
        extra_hours=None if choice is None else choice.hours.confident - plan.hours.confident,
        deadline_hours=None if choice is None else deadline_for(choice.hours.confident),
        phases=() if choice is None else (choice,),
    )


def duals(job: TrainingJob, found: Candidates, front: Ints) -> dict[str, float]:
    """What one more hour, dollar or kg takes off the objective, by the requirement that the job states."""
    table = found.table
    if not len(front):
        return {}
    usd, hours = cost_micros(table)[front] / 1e6, table.bill.hours_kept[front]
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
