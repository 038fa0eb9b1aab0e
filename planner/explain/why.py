"""Why the plan is what it is: why not something else, what binds, what a little more would change, and the frontier.

About what a question names (X) the answer rests on whole plans: the best plan on X alone, on the same snapshot with all
other offers taken out, and where the plan itself uses X, the best plan without. Both are restrictions of the question,
so neither is ever better, and what lies between them and the plan is what X costs or is worth, part by part.

The price at which X would win is the break-even of one offer: of the configuration of X that is cheapest within
deadline, at any cost, the price per node-hour at which the best node count on that offer costs what the plan costs.
Cost is linear in the price, cost(p) = other + paid x p / price, so p* = price x (1 - (cost - plan's) / paid), exactly;
rounded down to a micro-dollar it costs no more than the plan. The *discount* is the least percentage off all prices of
X at which some configuration of X ties, or the best plan of X in several phases, whose cost falls as linearly.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from catalog.columns import Columns
from catalog.errors import UnusableInput
from catalog.owned import OwnedMachine
from planner.answer import Choice, Infeasible, Planned
from planner.candidates.carbon import weighs_carbon
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates, candidates, over
from planner.candidates.market import markets
from planner.choice import cost_micros, in_words
from planner.estimate.learned import learned_from
from planner.explain.binding import Binding, bindings
from planner.explain.frontier3 import Frontier3, frontier3, of_known_carbon
from planner.explain.named import Named, Supply, named, narrowed, offered
from planner.explain.steps import Steps, steps
from planner.job import TrainingJob
from planner.past_runs import PastRun
from planner.plan import plan
from planner.question import Question
from planner.settings import PlannerSettings
from planner.workload import work_of

Outcome = Planned | Infeasible
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The price at which X would win: of one offer in micro-dollars per node-hour, and as a percentage off all of X.

    `choice` is the configuration on that offer which ties first as its price falls.
    """

    choice: Choice
    price: int
    wins_at: int
    discount_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The plan held against what a question names.

    `verdict`: chosen (every phase is X), partly_chosen, worse (X could run it, at `best`), infeasible (X cannot, for the
    reasons in `best`) or absent (nothing of X is offered). `without` is the best plan with no X in it, where X is in the
    plan or the question asks what X is worth. `break_even` is None where no price would make X win, or none is needed.
    """

    named: Named
    verdict: str
    best: Outcome | None
    without: Outcome | None
    break_even: BreakEven | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Everything there is to say about a plan. Of a job without a plan: `chosen` says why, and there is a frontier.

    `without_chosen` is the best plan with none of the plan's accelerators.
    """

    start: datetime
    chosen: Outcome
    about: About | None
    without_chosen: Outcome | None
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
    planned = partial(_planned, past_runs=past_runs)
    chosen = planned(job, supply)
    question = _question(job, supply, past_runs)
    known = of_known_carbon(question)
    found = isinstance(chosen, Planned)
    return Why(
        start=question.start,
        chosen=chosen,
        about=None if about is None else _about(job, supply, past_runs, chosen, about, worth=with_ is not None),
        without_chosen=_without_chosen(job, supply, past_runs, chosen) if found and about is None else None,
        bindings=bindings(question, chosen) if isinstance(chosen, Planned) else (),
        steps=_steps(question, chosen, supply, past_runs, known) if isinstance(chosen, Planned) else None,
        frontier=frontier3(job, known),
    )


def _planned(job: TrainingJob, supply: Supply, past_runs: tuple[PastRun, ...]) -> Outcome:
    return plan(job, supply.columns, owned=supply.owned, settings=supply.settings, past_runs=past_runs)


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


def _steps(
    question: Question, chosen: Planned, supply: Supply, past_runs: tuple[PastRun, ...], known: Candidates
) -> Steps:
    def replanned(job: TrainingJob) -> Outcome:
        return _planned(job, supply, past_runs)

    return steps(candidates(question), chosen, replanned, known if weighs_carbon(question.job) else None)


def _choices(plan: Planned) -> list[Choice]:
    """What the plan runs on, machines that merely stand by included: without them it would not be the same plan."""
    return [phase.choice for phase in plan.phases]


def _uses(about: Named, choice: Choice) -> bool:
    offer = choice.offer
    return about.has(choice.instance_type, offer.provider, offer.region, offer.price_kind)


def _about(
    job: TrainingJob,
    supply: Supply,
    past_runs: tuple[PastRun, ...],
    chosen: Outcome,
    about: Named,
    *,
    worth: bool,
) -> About:
    """The best plan on X, why there is none, or what it would take; and what X is worth."""
    only, others = (narrowed(supply, about, keep=keep) for keep in (True, False))
    used = [_uses(about, each) for each in _choices(chosen)] if isinstance(chosen, Planned) else []
    without = None
    if offered(others) and (worth or any(used)):
        without = chosen if isinstance(chosen, Planned) and not any(used) else _planned(job, others, past_runs)
    if used and all(used):
        return About(named=about, verdict="chosen", best=chosen, without=without, break_even=None)
    if not offered(only):
        return About(named=about, verdict="absent", best=None, without=without, break_even=None)
    best = _planned(job, only, past_runs)
    verdict = "infeasible" if isinstance(best, Infeasible) else "partly_chosen" if any(used) else "worse"
    ties = None
    if isinstance(chosen, Planned) and job.objective == "cost":
        ties = break_even(candidates(_question(job, only, past_runs)), chosen.cost.expected)
        if ties is not None and isinstance(best, Planned):
            ties = replace(ties, discount_percent=min(ties.discount_percent, _off(best, chosen)))
    return About(named=about, verdict=verdict, best=best, without=without, break_even=ties)


def break_even(found: Candidates, target: int) -> BreakEven | None:
    """The price at which a configuration of `found` costs `target` micro-dollars; None where even nothing per hour is too much.

    Only configurations in time count; those over budget do, since at the target they are not.
    """
    table = found.table
    in_time = over(table, found.question.job.deadline_hours, None) == 0
    paid, other = _paid_by_the_hour(table)
    able = in_time & (paid > 0) & (other <= target)
    if not able.any():
        return None
    least = int(np.flatnonzero(in_time)[np.argmin(cost_micros(table)[in_time])])
    share = np.where(able, 1 - np.maximum(0.0, paid + other - target) / np.where(paid > 0, paid, 1.0), -np.inf)
    same = able & (table.market == table.market[least]) & (table.place == table.place[least])
    # Where the cheapest offer cannot win at any price (egress alone is dearer, say), the one that comes nearest is told.
    tied = int(np.argmax(np.where(same, share, -np.inf))) if same.any() else int(np.argmax(share))
    choice = in_words(found, table, tied)
    price = choice.offer.usd_micros_per_hour
    return BreakEven(
        choice=choice,
        price=price,
        wins_at=int(np.floor(price * float(share[tied]))),
        discount_percent=100 * (1 - float(share.max())),
    )


def _off(best: Planned, chosen: Planned) -> float:
    """Per cent off all prices per hour at which one plan, as it is, costs what the other does; inf if none is enough."""
    extra, paid = best.cost.expected - chosen.cost.expected, best.cost.compute + best.cost.setup
    return 100 * extra / paid if paid >= extra and paid > 0 else np.inf


def _paid_by_the_hour(table: Configurations) -> tuple[Floats, Floats]:
    """Micro-dollars of each configuration that follow the price per node-hour, and those that do not."""
    paid = (table.bill.compute_usd + table.bill.setup_usd) * 1e6
    return paid, table.bill.cost_usd * 1e6 - paid


def _without_chosen(
    job: TrainingJob, supply: Supply, past_runs: tuple[PastRun, ...], chosen: Outcome
) -> Outcome | None:
    """The best plan on other accelerators than the plan's; None where there are no others at all."""
    if isinstance(chosen, Infeasible):
        return None
    used = tuple(sorted({each.accelerator for each in _choices(chosen)}))
    others = narrowed(supply, Named(text="", field="accelerator", names=used), keep=False)
    return _planned(job, others, past_runs) if offered(others) else None
