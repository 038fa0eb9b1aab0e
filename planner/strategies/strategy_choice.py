"""The choice among three strategies: one configuration, two phases, and spot with a standby.

Each strategy returns its best schedule with a bound. The plan is the cheapest of them. The price of one limits the search of
the next: pairs of two phases come first, unless many are left.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.money import usd_display
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_carbon import weighs_carbon
from gpuplan.planner.candidates.configuration_choice import cheapest, cost_micros
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.strategies.phased.phase_search import (
    NOTHING_TO_SEARCH,
    Phased,
    Searched,
    cheapest_in_phases,
    search_phases,
)
from gpuplan.planner.strategies.schedule import Schedule, in_phases, on_one_configuration
from gpuplan.planner.strategies.standby.standby_pairs import (
    NO_STANDBY,
    StandbyPlan,
    StandbySearch,
    search_standby_plans,
)
from gpuplan.planner.strategies.standby.standby_schedule import standby_schedule

Marks = NDArray[np.bool_]


def plans_one_configuration(job: TrainingJob) -> bool:
    """Whether a plan of this job stays on one configuration: moves are compared in dollars, not in hours or kg."""
    return job.objective != "cost" or weighs_carbon(job)


def may_change_machines(job: TrainingJob) -> bool:
    """Whether a plan of this job may have two phases or a standby."""
    return job.constraints.max_phases > 1 and not plans_one_configuration(job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The cheapest schedule, the two-phase plan behind it if there is one, and how far both searches went.

    `forgone` is a schedule with a move that is cheaper, but by less than a move has to save.
    """

    schedule: Schedule
    forgone: Schedule | None = None
    phased: Phased | None = None
    searched: Searched = NOTHING_TO_SEARCH
    standby_search: StandbySearch = NO_STANDBY

    @property
    def standby_plan(self) -> StandbyPlan | None:
        """The pair of spot and standby behind the schedule, if it has one."""
        return self.standby_search.best


def cheapest_schedule(candidates: Candidates, chosen: int | None) -> Best | None:
    """The cheapest schedule that meets deadline and budget, or None if there is none.

    `chosen` is the best single configuration, if one is feasible. Two phases or a standby win only if they save more than
    `least_saving_of_a_move_percent` of the cost without them.
    """
    return cheapest_or_why_unsure(candidates, chosen)[0]


def cheapest_or_why_unsure(candidates: Candidates, chosen: int | None) -> tuple[Best | None, str | None]:
    """The cheapest schedule, and where there is none, a sentence if some schedules were not compared."""
    one = None if chosen is None else on_one_configuration(candidates, chosen)
    if plans_one_configuration(candidates.question.job):
        return (None if one is None else Best(schedule=one)), None
    moving, searched, standby_search = _cheapest_move(candidates, inf if one is None else float(one.cost.expected))
    phased = None if standby_search.best is not None else searched.best
    if moving is not None and moving.cost.expected < limit_micros(candidates, chosen):
        return Best(schedule=moving, phased=phased, searched=searched, standby_search=standby_search), None
    if one is not None:
        searched, standby_search = _without_moves(searched, standby_search, limit_micros(candidates, chosen) / 1e6)
        return Best(schedule=one, forgone=moving, searched=searched, standby_search=standby_search), None
    return None, _not_compared(min(searched.left_usd, standby_search.left_open_usd))


def cheapest_below(
    candidates: Candidates, chosen: int | None, most_micros: float, *, using: Marks | None = None
) -> tuple[Schedule | None, bool]:
    """The schedule of `cheapest_schedule` if that costs less than `most_micros`; else one that does not, or None.

    The second value says whether this is proven: no schedule that was left out of the comparison may cost less.

    With `using`, the marked configurations of one offer, it is known that no plan with a move and without these costs less
    than `most_micros`: only pairs of spot and standby with one of these are searched.
    """
    one = None if chosen is None else on_one_configuration(candidates, chosen)
    if plans_one_configuration(candidates.question.job):
        return one, True
    most_micros = min(most_micros, limit_micros(candidates, chosen))
    moving, searched, standby_search = _cheapest_move(candidates, most_micros, using)
    wins = moving is not None and moving.cost.expected < most_micros
    least_micros = moving.cost.expected if moving is not None and wins else most_micros
    proven = min(searched.left_usd, standby_search.left_open_usd) >= least_micros / 1e6
    return moving if wins else one, proven


def _cheapest_move(
    candidates: Candidates, most_micros: float, using: Marks | None = None
) -> tuple[Schedule | None, Searched, StandbySearch]:
    """The cheapest schedule with a move below `most_micros`, and both searches; that of standbys has a best if it is one."""
    standbys = _Standbys(candidates, using)
    searched = search_phases(candidates, most_micros, lambda: standbys.least_micros(most_micros))
    phased = searched.best
    least_micros = standbys.least_micros(most_micros if phased is None else float(phased.plan.micros))
    if phased is None or least_micros < phased.plan.micros:
        return standbys.schedule, searched, standbys.search
    return in_phases(candidates, phased), searched, replace(standbys.search, best=None)


class _Standbys:
    """The cheapest plan with a standby, searched for once: its schedule, and how far the search went."""

    def __init__(self, candidates: Candidates, using: Marks | None) -> None:
        self._candidates, self._using, self._done = candidates, using, False
        self.schedule: Schedule | None = None
        self.search = NO_STANDBY

    def least_micros(self, most_micros: float) -> float:
        """Its cost, or inf where none costs less than `most_micros` and keeps the budget; later limits are ignored."""
        if not self._done:
            self._done = True
            self.search = search_standby_plans(self._candidates, most_micros, self._using)
            schedule = None if self.search.best is None else standby_schedule(self._candidates, self.search.best)
            if schedule is not None and _within_budget(self._candidates, schedule):
                self.schedule = schedule
            else:
                self.search = replace(self.search, best=None)
        return inf if self.schedule is None else float(self.schedule.cost.expected)


def _without_moves(
    searched: Searched, standby_search: StandbySearch, limit_usd: float
) -> tuple[Searched, StandbySearch]:
    """Both searches where no move saves enough; pairs left out matter only if they may cost less than the limit."""
    left = searched.left_usd if searched.left_usd < limit_usd else inf
    left_open = standby_search.left_open_usd if standby_search.left_open_usd < limit_usd else inf
    return (
        replace(searched, best=None, left_usd=left),
        replace(standby_search, best=None, left_open_usd=left_open),
    )


def _not_compared(least_usd: float) -> str | None:
    """A sentence for a job without a plan, if no plan that was not compared costs less than `least_usd`."""
    if least_usd == inf:
        return None
    return (
        "not proven: too many pairs of configurations were left to compare all of them; a plan of two phases or with a "
        f"standby may exist, but costs at least {usd_display(round(max(least_usd, 0.0) * 1e6))}"
    )


def _within_budget(candidates: Candidates, schedule: Schedule) -> bool:
    """Whether the stated cost of a schedule is within the stated budget."""
    budget = candidates.question.job.budget_usd
    return budget is None or schedule.cost.expected / 1e6 <= budget


def limit_micros(candidates: Candidates, chosen: int | None) -> float:
    """The cost that a plan with a move must stay below, in micro-dollars: inf where no plan without one is feasible."""
    if chosen is None:
        return inf
    least = candidates.question.settings.least_saving_of_a_move_percent
    return float(cost_micros(candidates.table)[chosen]) * (1 - least / 100)


#: Budgets are stated in whole cents, rounded up.
_MICROS_PER_CENT = 10_000


def with_extra_phases(candidates: Candidates) -> str | None:
    """A sentence for a job without a plan that allows one phase and has a plan of two."""
    job = candidates.question.job
    if job.constraints.max_phases > 1 or plans_one_configuration(job):
        return None
    extended = replace(job, constraints=replace(job.constraints, max_phases=2))
    phased = cheapest_in_phases(replace(candidates, question=replace(candidates.question, job=extended)), inf)
    if phased is None:
        return None
    usd = usd_display(round(phased.plan.micros))
    return f"constraints.max_phases of 2 is enough: 2 phases meet the requirements for {usd}"


def with_higher_budget(candidates: Candidates) -> str | None:
    """A sentence for a job without a plan that a larger budget gives two phases or a standby, else None.

    The other suggestions name the budgets that single configurations need. Two phases or a standby may need less.
    """
    job = candidates.question.job
    if job.budget_usd is None or plans_one_configuration(job):
        return None
    richer = replace(candidates, question=replace(candidates.question, job=replace(job, budget_usd=None)))
    best = cheapest_schedule(richer, cheapest(candidates.table, over(candidates.table, job.deadline_hours, None) == 0))
    if best is None or len(best.schedule.phases) < 2:
        return None
    stands_by = any(phase.role == "standby" for phase in best.schedule.phases)
    how = "spot with a standby" if stands_by else "2 phases"
    enough = -(-best.schedule.cost.expected // _MICROS_PER_CENT) * _MICROS_PER_CENT
    return f"budget_usd of {usd_display(enough)} is enough: {how} would meet the other requirements for that"
