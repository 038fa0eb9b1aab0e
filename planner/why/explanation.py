"""Why the plan is what it is: comparison with a named supply, binding requirements, small changes, and the frontier.

The answer about a named supply X rests on whole plans of the same snapshot: the best plan on X alone, and, if the plan
uses X, the best plan without X. Both are restrictions of the question, so neither is better than the plan, and the
difference is what X costs or is worth, part by part.

`break_even` has the price at which X would win, alone or in part.
"""

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, over
from gpuplan.planner.candidates.configuration_carbon import weighs_carbon
from gpuplan.planner.candidates.configuration_choice import BEST
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.markets import markets
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.explain.binding_requirements import Binding, bindings
from gpuplan.planner.explain.break_even import BreakEven, Joining, break_even, joining
from gpuplan.planner.explain.constraint_steps import Steps, steps
from gpuplan.planner.explain.named_supply import WHOLE_CELLS, Named, Supply, marked, named, narrowed, offered
from gpuplan.planner.explain.pareto_cost_time_carbon import CarbonFrontier, of_known_carbon, pareto_cost_time_carbon
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice, NoPlan, Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.planning import best_plan
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.strategies.strategy_choice import cheapest_schedule
from gpuplan.planner.workload import work_of

Outcome = Planned | NoPlan
#: A way to run the job: the part of a plan that an explanation compares.
Run = Planned | Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The plan compared with a named supply X.

    `verdict`: chosen (every phase is X), partly_chosen, worse (X could run it, at `best`), infeasible (X cannot, for the
    reasons in `best`) or absent (no offer of X). `without` is the best plan without X, if X is in the plan or the question
    asks what X is worth. `break_even` is None if no price makes X win, or none is needed; `joining` is None if a part of the
    plan would use X at no higher price than that. `prices_proven`: no price above these (or any, where there is none) would do.
    """

    named: Named
    verdict: str
    best: Outcome | None
    without: Run | NoPlan | None
    break_even: BreakEven | None
    joining: Joining | None = None
    prices_proven: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The whole explanation of a plan. Without a plan, `chosen` has the reasons, and there is still a frontier.

    `without_chosen` is the best plan without the plan's accelerators.
    """

    start: datetime
    chosen: Outcome
    about: About | None
    without_chosen: Run | NoPlan | None
    bindings: tuple[Binding, ...]
    steps: Steps | None
    frontier: CarbonFrontier


def why(
    job: TrainingJob,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
    not_: str | None = None,
    with_: str | None = None,
) -> Why:
    """The plan of a job and the reasons for it; for `not_` why it was not chosen, for `with_` also what it is worth.

    Raises `UnusableInput` as `plan` does, for a name that matches nothing, and for two names at once.
    """
    if not_ is not None and with_ is not None:
        raise UnusableInput.at("with", message="is given beside not; ask about one of the two at a time")
    supply = Supply(columns=columns, owned=owned, settings=settings)
    text, field = (not_, "not") if with_ is None else (with_, "with")
    about = None if text is None else named(text, supply, field=field)
    explained = _ExplainedJob(
        job=job, supply=supply, past_runs=past_runs, candidates=candidates(_question(job, supply, past_runs))
    )
    chosen = best_plan(explained.candidates)
    known = of_known_carbon(explained.candidates.question)
    planned = chosen if isinstance(chosen, Planned) else None
    return Why(
        start=explained.candidates.question.start,
        chosen=chosen,
        about=None if about is None else _about(explained, chosen, about, worth=with_ is not None),
        without_chosen=None if planned is None or about is not None else _without_chosen(explained, planned),
        bindings=() if planned is None else bindings(explained.candidates.question, planned),
        steps=None if planned is None else steps(explained.candidates, planned, known if weighs_carbon(job) else None),
        frontier=pareto_cost_time_carbon(job, known),
    )


def carbon_frontier(
    job: TrainingJob,
    columns: Columns,
    *,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
) -> CarbonFrontier:
    """The frontier of `why` alone, without the work for the plan and its reasons."""
    supply = Supply(columns=columns, owned=owned, settings=settings)
    return pareto_cost_time_carbon(job, of_known_carbon(_question(job, supply, past_runs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExplainedJob:
    """One question: the job, its supply, and every configuration of it."""

    job: TrainingJob
    supply: Supply
    past_runs: tuple[PastRun, ...]
    candidates: Candidates

    def planned(self, supply: Supply) -> Outcome:
        """The job's plan on part of the supply."""
        return best_plan(candidates(_question(self.job, supply, self.past_runs)))


def _question(job: TrainingJob, supply: Supply, past_runs: tuple[PastRun, ...]) -> Question:
    """The question that `plan` solves; the job has a start, or `plan` would have refused it."""
    if job.start is None:
        raise UnusableInput.at("start", message="a time with a zone is needed: it fixes what durations count from")
    work = work_of(job.workload, job.training)
    return Question(
        job=job,
        work=work,
        markets=markets(supply.columns, supply.owned, supply.settings, job.start, job.constraints.quotas),
        start=job.start,
        settings=supply.settings,
        learned=learned_from(past_runs, work.task),
    )


def _choices(plan: Planned) -> list[Choice]:
    """The choices of all phases, standby included: without it the plan would be another one."""
    return [phase.choice for phase in plan.phases]


def _uses(about: Named, choice: Choice) -> bool:
    offer = choice.offer
    return about.has(choice.instance_type, offer.provider, offer.region, offer.price_kind)


def _about(explained: _ExplainedJob, chosen: Outcome, about: Named, *, worth: bool) -> About:
    """The best plan on X, why there is none, or what X would need to win; and what X is worth."""
    only = narrowed(explained.supply, about, only_named=True)
    used = [_uses(about, choice) for choice in _choices(chosen)] if isinstance(chosen, Planned) else []
    without: Run | NoPlan | None = None
    if worth or any(used):
        without = chosen if isinstance(chosen, Planned) and not any(used) else _without(explained, about)
    if used and all(used):
        return About(named=about, verdict="chosen", best=chosen, without=without, break_even=None)
    if not offered(only):
        return About(named=about, verdict="absent", best=None, without=without, break_even=None)
    alone = candidates(_question(explained.job, only, explained.past_runs))
    best = best_plan(alone)
    verdict = "infeasible" if isinstance(best, NoPlan) else "partly_chosen" if any(used) else "worse"
    ties, joins, proven, in_part_proven = None, None, True, True
    if isinstance(chosen, Planned) and explained.job.objective == "cost":
        ties, proven = break_even(alone, best if isinstance(best, Planned) else None, chosen)
        if not any(used):
            joins, in_part_proven = joining(explained.candidates, alone, ties, chosen)
    return About(
        named=about,
        verdict=verdict,
        best=best,
        without=without,
        break_even=ties,
        joining=joins,
        prices_proven=proven and in_part_proven,
    )


def _without_chosen(explained: _ExplainedJob, chosen: Planned) -> Run | NoPlan | None:
    """The best plan without the plan's accelerators; None if nothing else is offered."""
    used = tuple(sorted({choice.accelerator for choice in _choices(chosen)}))
    return _without(explained, Named(text="", field="accelerator", names=used))


def _without(explained: _ExplainedJob, about: Named) -> Run | NoPlan | None:
    """The best plan without X, or why there is none; None if nothing else is offered.

    Screening drops an offer only in favour of one of the same machine shape, price kind and provider. So if X is named by
    these, the configurations without X are the present ones less those of X; else other offers may replace those of X.
    """
    if about.field in WHOLE_CELLS:
        left = _less(explained.candidates, about)
        job = explained.job
        chosen = BEST[job.objective](left.table, over(left.table, job.deadline_hours, job.budget_usd) == 0)
        best = cheapest_schedule(left, chosen)
        if best is not None:
            return best.schedule
    others = narrowed(explained.supply, about, only_named=False)
    return explained.planned(others) if offered(others) else None


def _less(candidates: Candidates, about: Named) -> Candidates:
    """The same candidates without those that are named: whole jobs, and shares of one."""
    return replace(
        candidates,
        table=_unnamed(candidates, candidates.table, about),
        shares=_unnamed(candidates, candidates.shares, about),
    )


def _unnamed(candidates: Candidates, table: Configurations, about: Named) -> Configurations:
    theirs = np.zeros(len(table), np.bool_)
    for number, market in enumerate(candidates.question.markets):
        mine = table.market == number
        theirs[mine] = marked(market.columns, about)[market.snapshot.original[table.place[mine]]]
    return table.take(~theirs)
