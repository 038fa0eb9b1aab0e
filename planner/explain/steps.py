"""What a day more or a thousand dollars less changes: exact steps, and the slopes between them.

Steps are the points of the cost-time frontier around the plan. What a day more or less changes is planned anew. What a
thousand dollars less or more changes is the fastest configuration for that money and the deadline that it needs (or the
best of another objective within the deadline). Slopes
are the duals of the choice relaxed to a mix of configurations (`planner.optimise.relaxed`).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.answer import Choice, Phase, Planned
from planner.candidates.gather import Candidates, over
from planner.choice import BEST, carbon_mg, cost_micros, in_words, pareto, soonest, whole_hours
from planner.explain.frontier3 import surface
from planner.explain.sensitivity import deadline_for
from planner.job import TrainingJob
from planner.optimise.relaxed import relaxed
from planner.optimise.single import Rows
from planner.phases.cheapest import cheapest_course
from planner.phases.course import Course, on_one_configuration

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
    micro-dollars, `extra_hours` (at the asked confidence) and `extra_kg` (None where unknown) are told against the plan;
    `deadline_hours` is what the changed plan needs.
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
        return _impossible(requirement, by)
    kg = [carbon_of(each.phases) for each in (other, plan)]
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


def carbon_of(phases: tuple[Phase, ...]) -> float | None:
    """kg of all phases; None where some phase's carbon is unknown."""
    kg = [phase.carbon_kg for phase in phases]
    return None if None in kg else sum(each for each in kg if each is not None)


def _money(found: Candidates, plan: Planned) -> list[Change]:
    """What a thousand dollars less and more than the plan costs buy, on one configuration.

    Of a plan of least cost less money takes a later deadline, so the fastest run for it is told; of another objective
    the best of that within the deadline.
    """
    table, mine, job = found.table, plan.cost.expected, plan.job
    amount = THOUSAND_MICROS if mine >= 2 * THOUSAND_MICROS else mine // 10
    changes = []
    for by in (-amount, amount) if amount else ():
        among = cost_micros(table) <= mine + by
        if job.objective != "cost":
            among &= over(table, job.deadline_hours, None) == 0
        index = (soonest if job.objective == "cost" else BEST[job.objective])(table, among)
        other = None if index is None else on_one_configuration(found, index)
        # More money that buys no time changes nothing.
        if by < 0 or (other is not None and other.hours.confident < plan.hours.confident) or job.objective != "cost":
            changes.append(_changed("budget_usd", float(by), plan, other))
    return changes


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
