"""Planning one job on a snapshot: the provably cheapest plan, or why there is none."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.catalog.model.money import usd_display
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.runtime.stage_timing import stage
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.availability.next_choices import planned_ladder
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over, with_late_and_dear
from gpuplan.planner.candidates.configuration_choice import BEST, carbon_mg, cost_micros, in_words, pareto, whole_hours
from gpuplan.planner.candidates.configurations import Configurations, joined
from gpuplan.planner.candidates.live_chances import live_chances
from gpuplan.planner.candidates.markets import Market, markets
from gpuplan.planner.candidates.pareto_filter import nondominated
from gpuplan.planner.candidates.place_costs import place_notes
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.alternatives import alternatives, cheaper_with_another_framework, commitments
from gpuplan.planner.explain.assumptions_and_warnings import actions, assumptions, region_notes, warnings
from gpuplan.planner.explain.cheapest_rival import cheapest_rival
from gpuplan.planner.explain.data_gravity import data_gravity
from gpuplan.planner.explain.infeasibility import explain
from gpuplan.planner.explain.plan_doubts import AskedOfPhases, asked_of, plan_doubts
from gpuplan.planner.explain.sensitivity import NOT_OF_COST, around, break_even_price, sensitivity
from gpuplan.planner.explain.software_warnings import software_warnings
from gpuplan.planner.explain.terms_notes import larger_quota, objective_notes, unknown_carbon
from gpuplan.planner.model.certificate import SolverCertificate
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import (
    CommitmentOffer,
    NoPlan,
    PhaseChoice,
    Planned,
    Proof,
    SensitivityRanges,
    StandbyChoice,
)
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.measured_steps import timing_note
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.strategies.optimality_proof import over_phases
from gpuplan.planner.strategies.schedule import Schedule, on_one_configuration
from gpuplan.planner.strategies.single.choice_model import NotProvenError, choose_least, choose_one
from gpuplan.planner.strategies.standby.contingency_standby import fallback
from gpuplan.planner.strategies.strategy_choice import (
    Best,
    cheapest_or_why_unsure,
    may_change_machines,
    with_extra_phases,
    with_higher_budget,
)
from gpuplan.planner.workload import work_of

Marks = NDArray[np.uint32]
Places = NDArray[np.int64]

#: Relative tolerance between the enumeration and the solver, of the size of HiGHS' tolerances.
AGREEMENT = 1e-6
#: A limit of alternatives and of the sensitivity.
_ON_ONE = (
    "alternatives and the effects of another deadline or price cover plans that stay on one configuration; "
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
    capacity: CapacityAnswers | None = None,
) -> Planned | NoPlan:
    """The provably best plan that meets the job's requirements: one configuration, two phases, or spot with a standby.

    Among single configurations the least expected cost of the capacity ladder decides with which one the plan begins; its
    proof is that of the cheapest plan if obtained. If the job's objective is time or carbon, the plan minimises that, and cost decides between equal plans.
    `owned` machines compete at the cost basis of `settings`. `past_runs` of the user shift and
    narrow the estimates. With `frontier`, the plan includes the whole cost-time frontier. `capacity` are
    the answers of clouds that were asked about machines: they set the chances of its ladder. Raises `UnusableInput`
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
        markets=markets(columns, owned, settings, start, job.constraints.quotas),
        start=start,
        settings=settings,
        learned=learned_from(past_runs, work.task),
        live=live_chances(capacity, columns, start),
    )
    with stage("candidates"):
        candidate_set = candidates(question)
    with stage("solve"):
        cheapest = _cheapest(candidate_set)
    if isinstance(cheapest, NoPlan):
        return cheapest
    with stage("ladder"):
        begun = planned_ladder(candidate_set, cheapest.best.schedule)
    with stage("explain"):
        planned = _in_words(cheapest, begun.only, with_frontier=frontier)
        return replace(planned, ladder=begun.ladder, capacity=capacity)


def best_plan(candidates: Candidates) -> Planned | NoPlan:
    """The proven best plan over these candidates if its machines are obtained, or why none meets the requirements."""
    cheapest = _cheapest(candidates)
    return cheapest if isinstance(cheapest, NoPlan) else _in_words(cheapest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cheapest:
    """The best plan if its machines are obtained, with its proof.

    `broken` has the bits of deadline and budget for each configuration of the table, `front` its frontier of cost and
    hours; `chosen` is the best configuration that meets both, if there is one.
    """

    candidates: Candidates
    broken: Marks
    front: Places
    chosen: int | None
    best: Best
    certificate: SolverCertificate


def _cheapest(candidates: Candidates) -> _Cheapest | NoPlan:
    """The best plan if its machines are obtained, or why none meets the requirements."""
    question, job, table = candidates.question, candidates.question.job, candidates.table
    broken = over(table, job.deadline_hours, job.budget_usd)
    chosen = BEST[job.objective](table, broken == 0)
    best, unsure = cheapest_or_why_unsure(candidates, chosen)
    if best is None:
        refused = explain(question, candidates)
        notes = [
            note for note in (unsure, with_extra_phases(candidates), with_higher_budget(candidates)) if note is not None
        ]
        return replace(refused, warnings=(*notes, *refused.warnings))
    front = pareto(table, np.ones(len(table), np.bool_))
    certificate = _certified(job, table, front, chosen, best)
    if may_change_machines(job):
        certificate = over_phases(
            certificate,
            best.searched,
            best.standby_search,
            len(candidates.shares),
            least_saving_percent=question.settings.least_saving_of_a_move_percent,
        )
    return _Cheapest(
        candidates=candidates, broken=broken, front=front, chosen=chosen, best=best, certificate=certificate
    )


def _in_words(cheapest: _Cheapest, first: Configurations | None = None, *, with_frontier: bool = False) -> Planned:
    """The cheapest plan, or the plan on the only configuration of `first`; the proof is that of the cheapest."""
    candidates, best, front, broken = cheapest.candidates, cheapest.best, cheapest.front, cheapest.broken
    question, table = candidates.question, candidates.table
    schedule = best.schedule
    if first is not None:
        schedule = on_one_configuration(replace(candidates, table=first, shares=first), 0)
    chosen = cheapest.chosen if first is None and len(schedule.phases) == 1 else None
    micros = schedule.cost.expected
    assumed = _assumptions(candidates, schedule)
    asked = tuple(asked_of(question, phase) for phase in schedule.phases)
    return Planned(
        job=question.job,
        snapshot_id=question.markets[0].columns.snapshot_id,
        start=question.start,
        settings=question.settings,
        learned=question.learned,
        phases=schedule.phases,
        cost=schedule.cost,
        hours=schedule.hours,
        deadline_probability=schedule.deadline_probability,
        proof=Proof(
            certificate=cheapest.certificate,
            offers_considered=candidates.offers_considered,
            configurations_considered=len(table),
            rejected=with_late_and_dear(candidates, broken),
        ),
        sensitivity=_sensitivity(candidates, broken, front, chosen, schedule),
        alternatives=alternatives(candidates, front, broken, micros, moves=len(schedule.phases) > 1),
        other_framework=cheaper_with_another_framework(question, micros),
        commitments=_commitments(candidates, schedule.phases),
        frontier=tuple(in_words(candidates, table, int(i)) for i in front) if with_frontier else None,
        assumptions=assumed if first is not None else (*_forgone(question, best), *assumed),
        doubts=plan_doubts(candidates, schedule.phases, asked),
        fallback=_standby_beside(candidates, chosen, first, micros),
        warnings=_warnings(candidates, broken, schedule, asked),
        actions=_actions(candidates, schedule, best.schedule.cost.expected),
    )


def _standby_beside(
    candidates: Candidates, chosen: int | None, first: Configurations | None, micros: int
) -> StandbyChoice | None:
    """The standby beside a plan on a configuration of the candidates, or on the only one of `first`."""
    if first is not None:
        among = joined([candidates.table, first])
        candidates, chosen = replace(candidates, table=among, shares=among), len(candidates.table)
    return None if chosen is None else fallback(candidates, chosen, micros)


def _warnings(candidates: Candidates, broken: Marks, schedule: Schedule, asked: AskedOfPhases) -> tuple[str, ...]:
    question = candidates.question
    return (
        warnings(schedule.phases, question.start, question.job.training.framework)
        + software_warnings(question, schedule.phases, asked)
        + region_notes(question.job, question.markets[0].columns.regions)
        + unknown_carbon(candidates)
        + data_gravity(candidates, broken, schedule)
    )


def _actions(candidates: Candidates, schedule: Schedule, least_micros: int) -> tuple[str, ...]:
    """What to do before the start; a larger quota saves something over `least_micros`."""
    question = candidates.question
    return (
        *larger_quota(candidates, least_micros),
        *actions(schedule.phases, question.start, question.markets[0].quotas),
    )


def _sensitivity(
    candidates: Candidates, broken: Marks, front: Places, chosen: int | None, schedule: Schedule
) -> SensitivityRanges:
    """Sensitivity: exact for the cheapest configuration (`chosen`); for another plan, steps to single configurations."""
    job, table = candidates.question.job, candidates.table
    if job.objective != "cost":
        return NOT_OF_COST
    if chosen is None:
        return around(table, front, (float(schedule.cost.expected), schedule.hours.confident), job.deadline_hours)
    price = break_even_price(schedule.phases[0].choice, cheapest_rival(candidates, broken, chosen))
    return sensitivity(table, front, chosen, job.deadline_hours, price)


def _commitments(candidates: Candidates, phases: tuple[PhaseChoice, ...]) -> tuple[CommitmentOffer, ...]:
    """The plan's machines under kinds with a term, if it stays on one configuration that is not yet paid for."""
    only = phases[0]
    if len(phases) > 1 or _market_of(candidates, only).term_paid:
        return ()
    return commitments(candidates.question.markets[0], only.choice)


def _forgone(question: Question, best: Best) -> tuple[str, ...]:
    """A sentence on the move that would save something, but less than a move has to."""
    if best.forgone is None:
        return ()
    saved = best.schedule.cost.expected - best.forgone.cost.expected
    first, second = (phase.choice for phase in best.forgone.phases)
    least = question.settings.least_saving_of_a_move_percent
    moving = f"{first.nodes} x {first.instance_type.name} and then {second.nodes} x {second.instance_type.name}"
    saving = f"{usd_display(saved)} ({saved / best.schedule.cost.expected:.1%})"
    sentence = (
        f"{moving} would save {saving}, less than the {least:g} % that a change of machines has to save "
        "(least_saving_of_a_move_percent)"
    )
    return (sentence,)


def _assumptions(candidates: Candidates, schedule: Schedule) -> tuple[str, ...]:
    """The assumptions of the plan and of all its phases, without repetitions."""
    question, job = candidates.question, candidates.question.job
    sentences = [*objective_notes(job), *schedule.notes]
    several = sum(phase.checkpoint_interval_hours is not None for phase in schedule.phases) > 1
    for phase in schedule.phases:
        about = place_notes(job, phase.choice) + _about_market(candidates, phase)
        sentences += assumptions(
            question, phase, about, alone=schedule.phases[-1].role != "standby", of_several=several
        )
    if may_change_machines(job):
        sentences.append(_ON_ONE)
    return tuple(dict.fromkeys(sentences))


def _certified(
    job: TrainingJob, table: Configurations, front: Places, chosen: int | None, best: Best
) -> SolverCertificate:
    """The solver's proof over the frontier; its figures must equal those of the enumeration."""
    limits = {"deadline_hours": job.deadline_hours, "budget_usd": job.budget_usd}
    if best.phased is not None or best.standby_plan is not None:
        usd = np.append(cost_micros(table)[front], best.schedule.cost.expected) / 1e6
        hours = np.append(table.cost_breakdown.hours_at_confidence[front], best.schedule.hours.confident)
        proven = choose_one(usd, hours, **limits)
        return _agree(proven, None if proven is None else proven.objective_usd, best.schedule.cost.expected / 1e6)
    if chosen is None:
        raise NotProvenError("a plan without phases and without a configuration")
    if job.objective == "cost":
        solution = choose_one(
            cost_micros(table)[front] / 1e6, table.cost_breakdown.hours_at_confidence[front], **limits
        )
    else:
        least = {"time": whole_hours, "carbon": carbon_mg}[job.objective](table)
        if job.objective == "carbon":
            front = nondominated(least, cost_micros(table), table.cost_breakdown.hours_at_confidence)
        usd = cost_micros(table)[front] / 1e6
        solution = choose_least(
            job.objective, least[front] / 1e6, usd, table.cost_breakdown.hours_at_confidence[front], **limits
        )
        if solution is not None:
            _agree(solution, solution.objective, float(least[chosen]) / 1e6)
    return _agree(
        solution, None if solution is None else solution.objective_usd, float(cost_micros(table)[chosen]) / 1e6
    )


def _agree(certificate: SolverCertificate | None, proven: float | None, expected: float) -> SolverCertificate:
    """The certificate, where it proves what the enumeration found; else a defect is at work."""
    if certificate is None or proven is None or abs(proven - expected) > AGREEMENT * max(1.0, expected):
        raise NotProvenError(f"HiGHS found {certificate} where the enumeration found {expected}")
    return certificate


def _market_of(candidates: Candidates, phase: PhaseChoice) -> Market:
    """The market that a phase's machines come from."""
    return candidates.question.markets[phase.market]


def _about_market(candidates: Candidates, phase: PhaseChoice) -> tuple[str, ...]:
    """Assumptions about existing commitments, and about properties that the inventory leaves open."""
    market = _market_of(candidates, phase)
    if market.term_paid:
        return ("the commitment is held and paid for whether used or not: nothing is counted for its hours",)
    if not market.owned:
        return ()
    name = phase.choice.instance_type.name
    type_index = next(i for i, owned_machine in enumerate(market.owned) if owned_machine.instance_type.name == name)
    machine = market.owned[type_index]
    waits = (f"{name}: works in its free windows only; the hours count the waiting between them",)
    chip = market.snapshot.shapes.accelerator_of_type(type_index)
    timed = timing_note(chip, candidates.question.work, candidates.question.job.training)
    return (waits if machine.windows else ()) + timed + machine.assumptions
