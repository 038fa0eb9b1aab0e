"""The cheapest way to run a job, of every kind there is: each kind names its best, and the least of them is the plan."""

from dataclasses import dataclass, replace

from catalog.money import usd_display
from planner.candidates.gather import Candidates, over
from planner.choice import cheapest, cost_micros
from planner.explain.objectives import plans_one_configuration
from planner.nets.course import under_net
from planner.nets.offers import NO_STANDBY, NetSearch, Netted, search_under_net
from planner.phases.course import Course, in_phases, on_one_configuration
from planner.phases.search import NOTHING_TO_SEARCH, Phased, Searched, cheapest_in_phases, search_phases


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The cheapest course, what it was chosen from if it has phases, and how far the searches for phases and standbys went."""

    course: Course
    phased: Phased | None = None
    searched: Searched = NOTHING_TO_SEARCH
    nets: NetSearch = NO_STANDBY

    @property
    def netted(self) -> Netted | None:
        """The pair that the course is, if it is one."""
        return self.nets.best


def cheapest_course(found: Candidates, chosen: int | None) -> Best | None:
    """The cheapest course that keeps deadline and budget, or None if there is none.

    `chosen` is the best single configuration, if one is feasible. A kind of plan with moves is taken where it costs
    less by more than `least_saving_of_a_move_percent` of the cost without. New kinds are compared here: each gives a
    `Course`, or None if it has nothing cheaper than the limit it is given.
    """
    return cheapest_or_why_unsure(found, chosen)[0]


def cheapest_or_why_unsure(found: Candidates, chosen: int | None) -> tuple[Best | None, str | None]:
    """The same; where there is none though not all was compared, also a sentence that says so."""
    one = None if chosen is None else on_one_configuration(found, chosen)
    if plans_one_configuration(found.question.job):
        return (None if one is None else Best(course=one)), None
    limit = limit_micros(found, chosen)
    searched = search_phases(found, limit)
    phased = searched.best
    nets = search_under_net(found, limit if phased is None else float(phased.found.micros))
    course = None if nets.best is None else under_net(found, nets.best)
    if course is not None and _within_budget(found, course):
        return Best(course=course, searched=searched, nets=nets), None
    nets = replace(nets, best=None)
    if phased is not None:
        return Best(course=in_phases(found, phased), phased=phased, searched=searched, nets=nets), None
    if one is not None:
        return Best(course=one, searched=searched, nets=nets), None
    return None, _not_compared(min(searched.left_usd, nets.left_open_usd))


def _not_compared(least_usd: float) -> str | None:
    """What is left open of a job without a plan, by what any plan not compared costs at least."""
    if least_usd == float("inf"):
        return None
    return (
        "not proven: too many sets of configurations were left to compare all of them; a plan in several phases or with a "
        f"standby may exist, for no less than {usd_display(round(max(least_usd, 0.0) * 1e6))}"
    )


def _within_budget(found: Candidates, course: Course) -> bool:
    """Whether a course costs no more than the budget, both as they are stated."""
    budget = found.question.job.budget_usd
    return budget is None or course.cost.expected / 1e6 <= budget


def limit_micros(found: Candidates, chosen: int | None) -> float:
    """What a plan with moves must cost less than, in micro-dollars: inf where none without is feasible."""
    if chosen is None:
        return float("inf")
    least = found.question.settings.least_saving_of_a_move_percent
    return float(cost_micros(found.table)[chosen]) * (1 - least / 100)


#: As many phases as a plan may have.
MOST_PHASES = 3
#: Budgets are said in whole cents, rounded up.
_MICROS_PER_CENT = 10_000


def with_more_phases(found: Candidates) -> str | None:
    """A sentence for a job without a plan that has one in more phases than it allows."""
    job = found.question.job
    if job.constraints.max_phases >= MOST_PHASES or plans_one_configuration(job):
        return None
    more = replace(job, constraints=replace(job.constraints, max_phases=MOST_PHASES))
    phased = cheapest_in_phases(replace(found, question=replace(found.question, job=more)), float("inf"))
    if phased is None:
        return None
    count, usd = len(phased.found.steps), usd_display(round(phased.found.micros))
    return f"constraints.max_phases of {count} would do: {count} phases keep the requirements for {usd}"


def with_more_money(found: Candidates) -> str | None:
    """A sentence for a job without a plan that has one with a move or a standby for a larger budget; None if it has not.

    Budgets that configurations by themselves need are among the ways out; with moves less may do.
    """
    job = found.question.job
    if job.budget_usd is None or plans_one_configuration(job):
        return None
    richer = replace(found, question=replace(found.question, job=replace(job, budget_usd=None)))
    best = cheapest_course(richer, cheapest(found.table, over(found.table, job.deadline_hours, None) == 0))
    if best is None or len(best.course.phases) < 2:
        return None
    stands_by = any(each.role == "standby" for each in best.course.phases)
    how = "spot with a standby" if stands_by else f"{len(best.course.phases)} phases"
    enough = -(-best.course.cost.expected // _MICROS_PER_CENT) * _MICROS_PER_CENT
    return f"budget_usd of {usd_display(enough)} is enough: {how} would keep the other requirements for that"
