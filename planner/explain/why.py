"""Why the plan is what it is: why not something else, what binds, what a little more would change, and the frontier.

About what a question names (X) the answer rests on whole plans: the best plan on X alone, on the same snapshot with all
other offers taken out, and where the plan itself uses X, the best plan without. Both are restrictions of the question,
so neither is ever better, and what lies between them and the plan is what X costs or is worth, part by part.

The price at which X would win, alone or in part, is worked out in `planner.explain.break_even`.
"""

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from planner.answer import Choice, Infeasible, Planned
from planner.candidates.carbon import weighs_carbon
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates, over
from planner.candidates.market import markets
from planner.choice import BEST
from planner.estimate.learned import learned_from
from planner.explain.binding import Binding, bindings
from planner.explain.break_even import BreakEven, Joining, break_even, joining
from planner.explain.frontier3 import Frontier3, frontier3, of_known_carbon
from planner.explain.named import WHOLE_CELLS, Named, Supply, marked, named, narrowed, offered
from planner.explain.steps import Steps, steps
from planner.job import TrainingJob
from planner.past_runs import PastRun
from planner.phases.cheapest import cheapest_course
from planner.phases.course import Course
from planner.plan import best_plan
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

Outcome = Planned | Infeasible
#: A way to run the job: all that is told of a plan beside the plan.
Run = Planned | Course


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The plan held against what a question names.

    `verdict`: chosen (every phase is X), partly_chosen, worse (X could run it, at `best`), infeasible (X cannot, for the
    reasons in `best`) or absent (nothing of X is offered). `without` is the best plan with no X in it, where X is in the
    plan or the question asks what X is worth. `break_even` is None where no price would make X win, or none is needed;
    `joining` where at no higher price than that a part of the plan would be on X.
    """

    named: Named
    verdict: str
    best: Outcome | None
    without: Run | Infeasible | None
    break_even: BreakEven | None
    joining: Joining | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Everything there is to say about a plan. Of a job without a plan: `chosen` says why, and there is a frontier.

    `without_chosen` is the best plan with none of the plan's accelerators.
    """

    start: datetime
    chosen: Outcome
    about: About | None
    without_chosen: Run | Infeasible | None
    bindings: tuple[Binding, ...]
    steps: Steps | None
    frontier: Frontier3


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
    """The plan of a job and the reasons for it; about `not_` why it was not chosen, about `with_` also what it is worth.

    Raises `UnusableInput` as `plan` does, and for a name that nothing is called by or two names at once.
    """
    if not_ is not None and with_ is not None:
        raise UnusableInput.at("with", message="is given beside not; ask about one of the two at a time")
    supply = Supply(columns=columns, owned=owned, settings=settings)
    text, field = (not_, "not") if with_ is None else (with_, "with")
    about = None if text is None else named(text, supply, field=field)
    asking = _Asking(job=job, supply=supply, past_runs=past_runs, found=candidates(_question(job, supply, past_runs)))
    chosen = best_plan(asking.found)
    known = of_known_carbon(asking.found.question)
    planned = chosen if isinstance(chosen, Planned) else None
    return Why(
        start=asking.found.question.start,
        chosen=chosen,
        about=None if about is None else _about(asking, chosen, about, worth=with_ is not None),
        without_chosen=None if planned is None or about is not None else _without_chosen(asking, planned),
        bindings=() if planned is None else bindings(asking.found.question, planned),
        steps=None if planned is None else steps(asking.found, planned, known if weighs_carbon(job) else None),
        frontier=frontier3(job, known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """One question: the job, where it may run, and every configuration there is of it."""

    job: TrainingJob
    supply: Supply
    past_runs: tuple[PastRun, ...]
    found: Candidates

    def planned(self, supply: Supply) -> Outcome:
        """The job's plan on part of the supply."""
        return best_plan(candidates(_question(self.job, supply, self.past_runs)))


def _question(job: TrainingJob, supply: Supply, past_runs: tuple[PastRun, ...]) -> Question:
    """What `plan` asks itself; the job has a start, or `plan` would have refused it."""
    if job.start is None:
        raise UnusableInput.at("start", message="a time with a zone is needed: it fixes what durations count from")
    work = work_of(job.workload, job.training)
    return Question(
        job=job,
        work=work,
        markets=markets(supply.columns, supply.owned, supply.settings, job.start),
        start=job.start,
        settings=supply.settings,
        learned=learned_from(past_runs, work.task),
    )


def _choices(plan: Planned) -> list[Choice]:
    """What the plan runs on, machines that merely stand by included: without them it would not be the same plan."""
    return [phase.choice for phase in plan.phases]


def _uses(about: Named, choice: Choice) -> bool:
    offer = choice.offer
    return about.has(choice.instance_type, offer.provider, offer.region, offer.price_kind)


def _about(asking: _Asking, chosen: Outcome, about: Named, *, worth: bool) -> About:
    """The best plan on X, why there is none, or what it would take; and what X is worth."""
    only = narrowed(asking.supply, about, keep=True)
    used = [_uses(about, each) for each in _choices(chosen)] if isinstance(chosen, Planned) else []
    without: Run | Infeasible | None = None
    if worth or any(used):
        without = chosen if isinstance(chosen, Planned) and not any(used) else _without(asking, about)
    if used and all(used):
        return About(named=about, verdict="chosen", best=chosen, without=without, break_even=None)
    if not offered(only):
        return About(named=about, verdict="absent", best=None, without=without, break_even=None)
    alone = candidates(_question(asking.job, only, asking.past_runs))
    best = best_plan(alone)
    verdict = "infeasible" if isinstance(best, Infeasible) else "partly_chosen" if any(used) else "worse"
    ties = joins = None
    if isinstance(chosen, Planned) and asking.job.objective == "cost":
        ties = break_even(alone, best if isinstance(best, Planned) else None, chosen)
        joins = None if any(used) else joining(asking.found, alone, ties, chosen)
    return About(named=about, verdict=verdict, best=best, without=without, break_even=ties, joining=joins)


def _without_chosen(asking: _Asking, chosen: Planned) -> Run | Infeasible | None:
    """The best plan on other accelerators than the plan's; None where there are no others at all."""
    used = tuple(sorted({each.accelerator for each in _choices(chosen)}))
    return _without(asking, Named(text="", field="accelerator", names=used))


def _without(asking: _Asking, about: Named) -> Run | Infeasible | None:
    """The best plan with none of X in it, or why there is none; None where nothing else is offered.

    An offer is only ever left out for one of the same machine shape, kind and provider. So where X is told by these, the
    configurations without X are those at hand less those of X; else others may step into the place of X.
    """
    if about.field in WHOLE_CELLS:
        left = _less(asking.found, about)
        job = asking.job
        chosen = BEST[job.objective](left.table, over(left.table, job.deadline_hours, job.budget_usd) == 0)
        best = cheapest_course(left, chosen)
        if best is not None:
            return best.course
    others = narrowed(asking.supply, about, keep=False)
    return asking.planned(others) if offered(others) else None


def _less(found: Candidates, about: Named) -> Candidates:
    """The same candidates without those that are named: whole jobs, and shares of one."""
    return replace(found, table=_unnamed(found, found.table, about), shares=_unnamed(found, found.shares, about))


def _unnamed(found: Candidates, table: Configurations, about: Named) -> Configurations:
    theirs = np.zeros(len(table), np.bool_)
    for number, market in enumerate(found.question.markets):
        mine = table.market == number
        theirs[mine] = marked(market.columns, about)[market.snapshot.original[table.place[mine]]]
    return table.take(~theirs)
