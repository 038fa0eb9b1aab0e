"""The main job: from a training job and a snapshot to the proven cheapest plan, or to why there is none."""

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from planner.answer import Infeasible, Planned, Proof
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates, of_the_same_machine, over, with_late_and_dear
from planner.candidates.market import Market, markets
from planner.candidates.places import place_notes
from planner.choice import BEST, carbon_mg, cost_micros, in_words, pareto, whole_hours
from planner.cost.bill import deadline_probability
from planner.estimate.learned import learned_from
from planner.explain.alternatives import alternatives, commitments
from planner.explain.infeasible import explain
from planner.explain.objectives import objective_notes, unknown_carbon
from planner.explain.sensitivity import NOT_OF_COST, break_even_price, sensitivity
from planner.explain.statements import assumptions, region_notes, warnings
from planner.job import TrainingJob
from planner.optimise.single import Certificate, NotProvenError, choose_least, choose_one
from planner.own_steps import timing_note
from planner.pareto import nondominated
from planner.past_runs import PastRun
from planner.phase import phase
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

Marks = NDArray[np.uint16]
Places = NDArray[np.int64]

#: The enumeration and the solver must agree to this, relatively (HiGHS' tolerances are of this size).
AGREEMENT = 1e-6


def plan(
    job: TrainingJob,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
    frontier: bool = False,
) -> Planned | Infeasible:
    """The configuration of least cost that meets the job's requirements, proven over the snapshot in `columns`.

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
    found = candidates(question)
    broken = over(found.table, job.deadline_hours, job.budget_usd)
    chosen = BEST[job.objective](found.table, broken == 0)
    if chosen is None:
        return explain(question, found)
    return _planned(found, broken, chosen, with_frontier=frontier)


def _planned(found: Candidates, broken: Marks, chosen: int, *, with_frontier: bool) -> Planned:
    question, table = found.question, found.table
    job, settings = question.job, question.settings
    columns, deadline = question.markets[0].columns, job.deadline_hours
    best = phase(found, table, chosen)
    front = pareto(table, np.ones(len(table), np.bool_))
    return Planned(
        job=job,
        snapshot_id=columns.snapshot_id,
        start=question.start,
        settings=settings,
        learned=question.learned,
        phases=(best,),
        cost=best.choice.cost,
        hours=best.choice.hours,
        deadline_probability=None if deadline is None else deadline_probability(table.bill, chosen, deadline, settings),
        proof=Proof(
            certificate=_certified(job, table, front, chosen),
            offers_considered=found.offers_considered,
            configurations_considered=len(table),
            rejected=with_late_and_dear(found, broken),
        ),
        sensitivity=NOT_OF_COST
        if job.objective != "cost"
        else sensitivity(table, front, chosen, deadline, break_even_price(best.choice, _rivals(found, broken, chosen))),
        alternatives=alternatives(found, table, broken, best.choice),
        commitments=() if _market_of(found, chosen).term_paid else commitments(question.markets[0], best.choice),
        frontier=tuple(in_words(found, table, int(i)) for i in front) if with_frontier else None,
        assumptions=objective_notes(job)
        + assumptions(question, best, place_notes(job, best.choice) + _about_market(found, chosen)),
        warnings=warnings(best, question.start) + region_notes(job, columns.regions) + unknown_carbon(found),
    )


def _certified(job: TrainingJob, table: Configurations, front: Places, chosen: int) -> Certificate:
    """The solver's proof over the frontier, which must name the same figures as the enumeration."""
    limits = {"deadline_hours": job.deadline_hours, "budget_usd": job.budget_usd}
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


def _rivals(found: Candidates, broken: Marks, chosen: int) -> list[float]:
    """The cheapest feasible cost on any other offer, in micro-dollars: of other machines, and of the same elsewhere."""
    job, table = found.question.job, found.table
    market, place = int(table.market[chosen]), int(table.place[chosen])
    same = of_the_same_machine(found, market, place)
    elsewhere = (over(same, job.deadline_hours, job.budget_usd) == 0) & (same.place != place)
    others = (broken == 0) & ~((table.place == place) & (table.market == market))
    costs = np.concatenate((cost_micros(same)[elsewhere], cost_micros(table)[others]))
    return [float(costs.min())] if len(costs) else []


def _market_of(found: Candidates, chosen: int) -> Market:
    """The market that the chosen configuration comes from."""
    return found.question.markets[int(found.table.market[chosen])]


def _about_market(found: Candidates, chosen: int) -> tuple[str, ...]:
    """What holds for a commitment already paid, and what the inventory left to assumption about an own machine."""
    market = _market_of(found, chosen)
    if market.term_paid:
        return ("the commitment is held and paid for whether used or not: nothing is counted for its hours",)
    if not market.owned:
        return ()
    type_index = int(market.snapshot.type_index[int(found.table.place[chosen])])
    machine = market.owned[type_index]
    name = machine.instance_type.name
    waits = (f"{name}: works in its free windows only; the hours count the waiting between them",)
    chip = market.snapshot.shapes.accelerator_of_type(type_index)
    timed = timing_note(chip, found.question.work, found.question.job.training)
    return (waits if machine.windows else ()) + timed + machine.assumptions
