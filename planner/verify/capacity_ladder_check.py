"""Check of the capacity ladder: its choices, their chances, and its expected cost over every state of shortage.

The chances are those of the clouds' answers in the document, else read from the catalogue's table. Machines of a family in a
region are all to be had, or all but spot, or none; the check walks through every combination of these states for the ladder's
families and regions. `ladder_proof_check` compares other orders.
"""

import math
from datetime import timedelta
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.verify.alternatives_check import choice
from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.named_offers import Named, second_text
from gpuplan.planner.verify.phase_check import LOOSE, moment_of
from gpuplan.planner.verify.plan_outcome import Outcome
from gpuplan.planner.verify.stated_answers import Answer, answer_for, answers_of
from gpuplan.planner.verify.verification_context import Context

Floats = NDArray[np.float64]

AT: Path = ("capacity_ladder",)
CHECK = "ladder"
MOST_NEXT = 4
#: Nine digits of sums of doubles.
NEAR = 1e-8
#: States of the machines of a family in a region.
_STATES = ("fine", "short of spot", "short")
#: Quantile of the middle 80 % of a normal distribution.
_Z80 = 1.2815515655446004
_STEP_FIGURES = ("after_minutes", "chance", "chance_low", "chance_high", "chance_when_tried")


class Step(NamedTuple):
    """A choice in the ladder: cost, family and region, and its chance by itself; None: always had.

    `answer` is the cloud's, if the chance comes from one; `hours` are at the job's confidence. `pool` is what one refusal
    answers for. A plan that changes machines is `only_first`.
    """

    micros: int
    pool: tuple[object, ...]
    shared: tuple[str, str, str] | None
    is_spot: bool
    chance: float
    short_spot: float
    short: float
    answer: Answer | None = None
    hours: float = 0.0
    only_first: bool = False


def capacity_ladder(context: Context, outcome: Outcome) -> list[Step]:
    """Check every figure of the ladder, from stated costs that are checked one by one; older plans have no ladder.

    Returns its choices, the plan first; none where one of them cannot run.
    """
    field_coverage = context.field_coverage
    if not field_coverage.has(*AT):
        return []
    prior, minutes = capacity_prior(), (*AT, "try_minutes")
    answers = answers_of(context)
    field_coverage.is_number(CHECK, minutes, prior.try_minutes, "not the time of a try")
    first = step_of(context, outcome.machines[0], field_coverage.micros("cost_usd", "expected"), answers)
    steps = [first._replace(hours=outcome.confident)]
    chance_of(context, AT, steps[0])
    count = field_coverage.size(*AT, "next_choices")
    field_coverage.is_true(CHECK, (*AT, "next_choices"), count <= MOST_NEXT, MOST_NEXT, "more than a ladder may have")
    if not _tried(context, answers, steps):
        rest = ("expected_cost_usd", "nothing_obtained", "last_choice_by")
        field_coverage.tick(CHECK, *((*AT, name) for name in rest if field_coverage.has(*AT, name)))
        steps = []
    else:
        if count:
            _last_by(context, steps[-1].hours, count * prior.try_minutes / 60)
        _followed(context, steps)
    return steps


def _tried(context: Context, answers: list[Answer], steps: list[Step]) -> bool:
    """Check the next choices, and append them to the first step; false where one cannot run."""
    field_coverage, minutes = context.field_coverage, capacity_prior().try_minutes
    count = field_coverage.size(*AT, "next_choices")
    for number in range(count):
        path: Path = (*AT, "next_choices", number)
        tried = choice(context, path)
        if tried is None:
            for later in range(number, count):
                field_coverage.tick(CHECK, *((*AT, "next_choices", later, name) for name in _STEP_FIGURES))
            return False
        after = len(steps) * minutes
        field_coverage.is_number(CHECK, (*path, "after_minutes"), after, "not the tries before it")
        _in_time(context, path, tried.clock.confident + after / 60, tried.micros)
        pools = [step.pool for step in steps]
        twice = _pool(tried.named) in pools
        field_coverage.is_true(CHECK, (*path, "instance_type"), not twice, None, "it is tried twice")
        step = step_of(context, tried.named, field_coverage.micros(*path, "cost_usd"), answers)
        steps.append(step._replace(hours=tried.clock.confident))
        chance_of(context, path, steps[-1])
    return True


def _last_by(context: Context, hours: float, after: float) -> None:
    """Check when the last choice is asked for at the latest, from its hours and those of the tries before it."""
    field_coverage, path = context.field_coverage, (*AT, "last_choice_by")
    if not field_coverage.has(*path):
        return
    deadline = context.submitted_plan.job.deadline_hours
    if deadline is None:
        field_coverage.is_true(CHECK, path, False, None, "there is no deadline")
        return
    left = max(deadline - hours - capacity_prior().try_minutes / 60, after)
    moment = second_text(context.submitted_plan.start + timedelta(hours=left))
    moment_of(context, path, moment, "not a try before the latest start of the last choice", LOOSE)


def _in_time(context: Context, path: Path, hours: float, micros: int) -> None:
    job, field_coverage = context.submitted_plan.job, context.field_coverage
    late = job.deadline_hours is not None and hours > job.deadline_hours * (1 + 1e-9)
    field_coverage.is_true(CHECK, (*path, "hours_confident"), not late, None, "after its tries it misses the deadline")
    dear = job.budget_usd is not None and micros / 1e6 > job.budget_usd
    field_coverage.is_true(CHECK, (*path, "cost_usd"), not dear, None, "more than the budget")


def _pool(named: Named) -> tuple[object, ...]:
    group = named.offer_group
    return (*group.place, _zone(named), group.machine.type.name, group.kind.name)


def step_of(context: Context, named: Named, micros: int, answers: list[Answer]) -> Step:
    """The choice with its chance: the cloud's answer about it, else that of the table."""
    group, prior = named.offer_group, capacity_prior()
    if group.machine.owned is not None or group.paid:
        return Step(micros, _pool(named), None, False, 1.0, 0.0, 0.0)
    machine, is_spot = group.machine.type, group.kind.interruptible
    introduced = accelerators()[machine.accelerator].year
    age = prior.age_class(introduced=introduced, year=context.submitted_plan.start.year)
    kind = (prior.spot if is_spot else prior.on_demand)[age]
    size = max(1.0, float(machine.accelerator_count))
    answer = answer_for(answers, (*group.place, machine.name, group.kind.name), _zone(named), named.nodes)
    chance = kind.chance / (size**kind.size_exponent * named.nodes**kind.node_exponent)
    alike = [
        row
        for row in answers
        if row.place == group.place and _accelerator(context, row.place[0], row.instance_type) == machine.accelerator
    ]
    spot = [row.chance for row in alike if price_kinds()[row.price_kind].interruptible]
    other = [row.chance for row in alike if not price_kinds()[row.price_kind].interruptible]
    short_spot = prior.shared_share * (1 - max([*spot, prior.spot[age].chance]))
    short = min(short_spot, prior.shared_share * (1 - max([*other, prior.on_demand[age].chance])))
    shared = (*group.place, machine.accelerator)
    stated = chance if answer is None else answer.chance
    return Step(micros, _pool(named), shared, is_spot, stated, short_spot, short, answer)


def _accelerator(context: Context, provider: str, name: str) -> str:
    types = context.columns.instance_types
    return next((row.accelerator for row in types if (row.provider, row.name) == (provider, name)), "")


def _zone(named: Named) -> str:
    return "" if named.offer is None else named.offer.zone


def chance_of(context: Context, path: Path, step: Step) -> None:
    """Check the chance of a choice by itself, and its band."""
    field_coverage, spread = context.field_coverage, _Z80 * capacity_prior().logit_spread
    odds = math.inf if step.chance >= 1 else step.chance / (1 - step.chance)
    low, high = (
        1.0 if math.isinf(odds) else odds * math.exp(shift) / (1 + odds * math.exp(shift))
        for shift in (-spread, spread)
    )
    for name, value in (("chance", step.chance), ("chance_low", low), ("chance_high", high)):
        field_coverage.is_number(CHECK, (*path, name), value, "not its chance by table or answer", relative=NEAR)
    source = None if step.answer is None else step.answer.source
    if source is not None or field_coverage.has(*path, "chance_source"):
        stated = field_coverage.value(*path, "chance_source") if field_coverage.has(*path, "chance_source") else None
        field_coverage.is_true(CHECK, (*path, "chance_source"), stated == source, source, "not the answer that counts")
        field_coverage.tick(CHECK, *((*path, "chance_source", name) for name in source or ()))


class _Outcome(NamedTuple):
    """Per step the chance when it is tried; the expected micro-dollars, and the chance that nothing was obtained."""

    chances: list[float]
    micros: float
    nothing: float


def _outcome_of(steps: list[Step]) -> _Outcome:
    """Chances, cost and refusal of all when the choices are tried in this order, over all states of shortage."""
    left, chances = states(steps)
    when_tried, micros = [], 0.0
    for number, (step, chance) in enumerate(zip(steps, chances, strict=True)):
        reached, got = float(left.sum()), left * chance
        when_tried.append(float(got.sum()) / reached if reached else 0.0)
        micros += (reached if number == len(steps) - 1 else float(got.sum())) * step.micros
        left = left - got
    return _Outcome(when_tried, micros, float(left.sum()))


def states(steps: list[Step]) -> tuple[Floats, list[Floats]]:
    """The probability of every combination of states of shortage, and in each the chance of every step.

    In a state the choices are refused independently.
    """
    places = sorted({step.shared for step in steps if step.shared is not None})
    state = np.array(list(product(range(len(_STATES)), repeat=len(places))), np.int64).T
    weight = np.ones(len(_STATES) ** len(places))
    for number, place in enumerate(places):
        step = next(step for step in steps if step.shared == place)
        weight *= np.array([1 - step.short_spot, step.short_spot - step.short, step.short])[state[number]]
    return weight, [
        np.ones(len(weight))
        if step.shared is None
        else np.array([_chance_in(step, name) for name in _STATES])[state[places.index(step.shared)]]
        for step in steps
    ]


def _followed(context: Context, steps: list[Step]) -> None:
    """Check chances, expected cost and the chance of no choice."""
    field_coverage, outcome = context.field_coverage, _outcome_of(steps)
    for number, then in enumerate(outcome.chances[1:]):
        path = (*AT, "next_choices", number, "chance_when_tried")
        field_coverage.is_number(CHECK, path, then, "not its chance after the refusals before it", relative=NEAR)
    why = "not the expected cost of following the choices in order"
    field_coverage.is_money(CHECK, (*AT, "expected_cost_usd"), outcome.micros, why)
    why = "not the chance of no choice"
    field_coverage.is_number(CHECK, (*AT, "nothing_obtained"), outcome.nothing, why, relative=NEAR)


def _chance_in(step: Step, state: str) -> float:
    """The chance of a choice in a state of its family and region."""
    if state == "short" or (step.is_spot and state == "short of spot"):
        return 0.0
    return step.chance / (1 - (step.short_spot if step.is_spot else step.short))
