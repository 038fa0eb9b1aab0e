"""The main job: from a training job and a snapshot to the proven cheapest plan, or to why there is none."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from catalog.stages import stage
from planner.answer import Commitment, Infeasible, Phase, Planned, Proof, Sensitivity
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates, over, with_late_and_dear
from planner.candidates.market import Market, markets
from planner.candidates.places import place_notes
from planner.choice import BEST, carbon_mg, cost_micros, in_words, pareto, whole_hours
from planner.estimate.learned import learned_from
from planner.explain.alternatives import alternatives, commitments
from planner.explain.infeasible import explain
from planner.explain.objectives import objective_notes, plans_one_configuration, unknown_carbon
from planner.explain.rivals import cheapest_rival
from planner.explain.sensitivity import NOT_OF_COST, around, break_even_price, sensitivity
from planner.explain.statements import assumptions, region_notes, warnings
from planner.job import TrainingJob
from planner.nets.fallback import fallback
from planner.optimise.single import Certificate, NotProvenError, choose_least, choose_one
from planner.own_steps import timing_note
from planner.pareto import nondominated
from planner.past_runs import PastRun
from planner.phases.cheapest import Best, cheapest_or_why_unsure, with_more_money, with_more_phases
from planner.phases.course import Course
from planner.phases.proof import over_phases
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

Marks = NDArray[np.uint16]
Places = NDArray[np.int64]

#: The enumeration and the solver must agree to this, relatively (HiGHS' tolerances are of this size).
AGREEMENT = 1e-6
#: What alternatives and steps to other deadlines and prices leave aside.
_ON_ONE = (
    "alternatives, and what another deadline or price would change, are told of plans that stay on one configuration; "
    "one that moves may do better"
)


def plan(
    job: TrainingJob,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
    frontier: bool = False,
) -> Planned | Infeasible:
    """The plan of least cost, of one configuration or of several phases, that meets the job's requirements, proven over the snapshot in `columns`.

    Where the job's objective is time or carbon, that is least instead, and cost decides between equals.
    `owned` machines compete at the cost basis of `settings`. `past_runs` of such work, the user's own, shift and
    narrow the estimates. With `frontier` the plan carries the whole cost-time frontier. Raises `UnusableInput`
    for jobs that contradict themselves or the catalogue (unknown regions, dimensions that do not match) and
    `NotProvenError` if the solver and the enumeration disagree, which is a defect.
    """
    start = job.start
    if start is None:
        raise UnusableInput.at("start", message="a time with a zone is needed: it fixes what durations count from")
    work = work_of(job.workload, job.training)
    question = Question(
        job=job,
        work=work,
        markets=markets(columns, owned, settings, start),
        start=start,
        settings=settings,
        learned=learned_from(past_runs, work.task),
    )
    with stage("candidates"):
        found = candidates(question)
    with stage("solve"):
        return best_plan(found, frontier=frontier)


def best_plan(found: Candidates, *, frontier: bool = False) -> Planned | Infeasible:
    """The proven best of these candidates, or why none of them will do."""
    job = found.question.job
    broken = over(found.table, job.deadline_hours, job.budget_usd)
    chosen = BEST[job.objective](found.table, broken == 0)
    best, unsure = cheapest_or_why_unsure(found, chosen)
    if best is None:
        refused = explain(found.question, found)
        more = [said for said in (unsure, with_more_phases(found), with_more_money(found)) if said is not None]
        return replace(refused, warnings=(*more, *refused.warnings))
    return _planned(found, broken, chosen, best, with_frontier=frontier)


def _planned(found: Candidates, broken: Marks, chosen: int | None, best: Best, *, with_frontier: bool) -> Planned:
    question, table, course = found.question, found.table, best.course
    columns = question.markets[0].columns
    front = pareto(table, np.ones(len(table), np.bool_))
    return Planned(
        job=question.job,
        snapshot_id=columns.snapshot_id,
        start=question.start,
        settings=question.settings,
        learned=question.learned,
        phases=course.phases,
        cost=course.cost,
        hours=course.hours,
        deadline_probability=course.deadline_probability,
        proof=Proof(
            certificate=over_phases(
                _certified(question.job, table, front, chosen, best),
                best.searched,
                best.nets,
                len(found.shares),
                1 if plans_one_configuration(question.job) else question.job.constraints.max_phases,
            ),
            offers_considered=found.offers_considered,
            configurations_considered=len(table),
            rejected=with_late_and_dear(found, broken),
        ),
        sensitivity=_sensitivity(found, broken, front, chosen, course),
        alternatives=alternatives(found, front, broken, course.cost.expected, moves=len(course.phases) > 1),
        commitments=_commitments(found, course),
        frontier=tuple(in_words(found, table, int(i)) for i in front) if with_frontier else None,
        assumptions=_assumptions(found, course),
        fallback=None if chosen is None or len(course.phases) > 1 else fallback(found, chosen, course.cost.expected),
        warnings=warnings(course.phases, question.start)
        + region_notes(question.job, columns.regions)
        + unknown_carbon(found),
    )


def _sensitivity(found: Candidates, broken: Marks, front: Places, chosen: int | None, course: Course) -> Sensitivity:
    """What would change the plan: exact for one configuration, steps to one configuration for several phases."""
    job, table = found.question.job, found.table
    if job.objective != "cost":
        return NOT_OF_COST
    if chosen is None or len(course.phases) > 1:
        return around(table, front, (float(course.cost.expected), course.hours.confident), job.deadline_hours)
    price = break_even_price(course.phases[0].choice, cheapest_rival(found, broken, chosen))
    return sensitivity(table, front, chosen, job.deadline_hours, price)


def _commitments(found: Candidates, course: Course) -> tuple[Commitment, ...]:
    """The machines of the plan under kinds with a term, where it stays on one configuration that is not paid already."""
    only = course.phases[0]
    if len(course.phases) > 1 or _market_of(found, only).term_paid:
        return ()
    return commitments(found.question.markets[0], only.choice)


def _assumptions(found: Candidates, course: Course) -> tuple[str, ...]:
    """What all phases take for granted, each sentence once, after what this kind of plan does."""
    question, job = found.question, found.question.job
    said = [*objective_notes(job), *course.notes]
    several = sum(phase.checkpoint_interval_hours is not None for phase in course.phases) > 1
    for phase in course.phases:
        about = place_notes(job, phase.choice) + _about_market(found, phase)
        said += assumptions(question, phase, about, alone=course.phases[-1].role != "standby", of_several=several)
    if job.constraints.max_phases > 1 and not plans_one_configuration(job):
        said.append(_ON_ONE)
    return tuple(dict.fromkeys(said))


def _certified(job: TrainingJob, table: Configurations, front: Places, chosen: int | None, best: Best) -> Certificate:
    """The solver's proof over the frontier, which must name the same figures as the enumeration."""
    limits = {"deadline_hours": job.deadline_hours, "budget_usd": job.budget_usd}
    if best.phased is not None or best.netted is not None:
        usd = np.append(cost_micros(table)[front], best.course.cost.expected) / 1e6
        hours = np.append(table.bill.hours_kept[front], best.course.hours.confident)
        proven = choose_one(usd, hours, **limits)
        return _agree(proven, None if proven is None else proven.objective_usd, best.course.cost.expected / 1e6)
    if chosen is None:
        raise NotProvenError("a plan without phases and without a configuration")
    if job.objective == "cost":
        found = choose_one(cost_micros(table)[front] / 1e6, table.bill.hours_kept[front], **limits)
    else:
        least = {"time": whole_hours, "carbon": carbon_mg}[job.objective](table)
        if job.objective == "carbon":
            front = nondominated(least, cost_micros(table), table.bill.hours_kept)
        usd = cost_micros(table)[front] / 1e6
        found = choose_least(job.objective, least[front] / 1e6, usd, table.bill.hours_kept[front], **limits)
        if found is not None:
            _agree(found, found.objective, float(least[chosen]) / 1e6)
    return _agree(found, None if found is None else found.objective_usd, float(cost_micros(table)[chosen]) / 1e6)


def _agree(certificate: Certificate | None, proven: float | None, expected: float) -> Certificate:
    """The certificate, where it proves what the enumeration found; else a defect is at work."""
    if certificate is None or proven is None or abs(proven - expected) > AGREEMENT * max(1.0, expected):
        raise NotProvenError(f"HiGHS found {certificate} where the enumeration found {expected}")
    return certificate


def _market_of(found: Candidates, phase: Phase) -> Market:
    """The market that a phase's machines come from."""
    return found.question.markets[phase.market]


def _about_market(found: Candidates, phase: Phase) -> tuple[str, ...]:
    """What holds for a commitment already paid, and what the inventory left to assumption about an own machine."""
    market = _market_of(found, phase)
    if market.term_paid:
        return ("the commitment is held and paid for whether used or not: nothing is counted for its hours",)
    if not market.owned:
        return ()
    name = phase.choice.instance_type.name
    type_index = next(i for i, each in enumerate(market.owned) if each.instance_type.name == name)
    machine = market.owned[type_index]
    waits = (f"{name}: works in its free windows only; the hours count the waiting between them",)
    chip = market.snapshot.shapes.accelerator_of_type(type_index)
    timed = timing_note(chip, found.question.work, found.question.job.training)
    return (waits if machine.windows else ()) + timed + machine.assumptions
