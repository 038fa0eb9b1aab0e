"""The capacity ladder of a plan in an answer."""

import hashlib
import json
from dataclasses import fields
from datetime import datetime, timedelta

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers
from gpuplan.planner.model import capacity_ladder
from gpuplan.planner.model.capacity_ladder import ChanceSource
from gpuplan.planner.model.live_capacity import LiveAnswer, LiveCapacity, NotLearned
from gpuplan.planner.model.outcome import ChangingPlan, LadderStep, Planned, PlannedLadder
from gpuplan.planner.model.wire import wire
from gpuplan.planner.serialization.phase_document import (
    cost_and_hours,
    cost_answer,
    hours_answer,
    machines,
    phase_answer,
    usd,
)
from gpuplan.planner.serialization.rounded_figures import UNITS, maybe_rounded, rounded, summed, to_second


def live_capacity(capacity: CapacityAnswers) -> LiveCapacity:
    """The answers, and what was not learned about getting machines."""
    answers = tuple(
        LiveAnswer(**{field.name: getattr(answer, field.name) for field in fields(LiveAnswer)})
        for answer in capacity.answers
    )
    missing = tuple(
        NotLearned(**{field.name: getattr(row, field.name) for field in fields(NotLearned)})
        for row in capacity.not_learned
        if row.what in ("capacity", "price_kind")
    )
    digest = hashlib.sha256(json.dumps(wire([answers, missing]), sort_keys=True).encode()).hexdigest()
    return LiveCapacity(id=f"capacity-{digest[:20]}", answers=answers, not_learned=missing)


def chance_source(answer: CapacityAnswer | None) -> ChanceSource | None:
    """Where a chance comes from; None: the table of chances."""
    if answer is None:
        return None
    return ChanceSource(published=answer.published, source=answer.source, asked_at=answer.asked_at)


#: How refusals hang together is modelled, whatever a cloud answered.
_MODELLED = ("chance_when_tried", "expected_cost_usd", "nothing_obtained")


def capacity_ladder_answer(plan: Planned, ladder: PlannedLadder) -> capacity_ladder.CapacityLadder:
    """The ladder of a plan with its next choices in order."""
    start, (low, high) = plan.start, ladder.chance_band
    all_answered = ladder.answer is not None and all(step.answer is not None for step in ladder.steps)
    return capacity_ladder.CapacityLadder(
        modelled=_MODELLED if all_answered else ("chance", *_MODELLED),
        try_minutes=rounded(ladder.try_minutes),
        chance=rounded(ladder.chance),
        chance_low=rounded(low),
        chance_high=rounded(high),
        next_choices=tuple(map(_next_choice, ladder.steps)),
        expected_cost_usd=usd(ladder.cost),
        nothing_obtained=rounded(ladder.nothing_obtained),
        covers=_covers(plan, ladder),
        cheapest_if_obtained=None if ladder.cheapest is None else _next_choice(ladder.cheapest),
        changing_machines=None
        if ladder.changing_machines is None
        else _changing_machines(ladder.changing_machines, start),
        last_choice_by=None
        if ladder.last_start_hours is None
        else to_second(start + timedelta(hours=ladder.last_start_hours)),
        chance_source=chance_source(ladder.answer),
    )


def _covers(plan: Planned, ladder: PlannedLadder) -> str:
    """What is proven. The bound is that of the job's objective."""
    certificate, objective = plan.proof.certificate, plan.job.objective
    given = "the certificate's objective and bound hold given that machines are obtained"
    if not ladder.steps:
        return f"{given}; there is no next choice to try" if ladder.chance < 1.0 else f"{given}; these are certain"
    order = (
        f"with {_first_choices(plan, ladder)} first, the choices are the best order of {ladder.considered} that ends with a "
        "last choice as certain as this one and as cheap"
        if objective == "cost"
        else f"the next choices are the best order of {ladder.considered} choices with this first and this last one"
    )
    proven = (
        f"{given}, whatever their chances; {order}, and no such ladder over all offers comes to less than "
        f"{_amount(ladder.bound, objective)}, where this one comes to {_amount(ladder.value, objective)}"
    )
    if not certificate.over:
        return proven
    return (
        f"{proven}; beginning with another plan that changes machines was not compared, and costs no less than the "
        f"certificate's bound, {_amount(certificate.bound_usd, objective)}"
    )


def _first_choices(plan: Planned, ladder: PlannedLadder) -> str:
    """What may come first, in words."""
    if ladder.changing_machines is not None:
        return "any of them or the cheapest plan that changes machines"
    return "any of them or this plan" if len(plan.phases) > 1 else "any of them"


def _changing_machines(plan: ChangingPlan, start: datetime) -> capacity_ladder.ChangingMachines:
    low, high = plan.chance_band
    return capacity_ladder.ChangingMachines(
        cost_usd=cost_answer(plan.cost, plan.phases),
        hours=hours_answer(plan.hours),
        finishes_at=to_second(start + timedelta(hours=plan.hours.expected)),
        deadline_probability=maybe_rounded(plan.deadline_probability),
        carbon_kg=maybe_rounded(summed([phase.carbon_kg for phase in plan.phases])),
        phases=tuple(phase_answer(phase, start) for phase in plan.phases),
        chance=rounded(plan.chance),
        chance_low=rounded(low),
        chance_high=rounded(high),
        chance_source=chance_source(plan.answer),
    )


def _amount(value: float, objective: str) -> str:
    return f"${value:,.2f}" if objective == "cost" else f"{value:,.4g} {UNITS[objective]}"


def _next_choice(step: LadderStep) -> capacity_ladder.NextChoice:
    low, high = step.chance_band
    return capacity_ladder.NextChoice(
        **machines(step.choice),
        **cost_and_hours(step.choice),
        after_minutes=rounded(step.after_minutes),
        chance=rounded(step.chance),
        chance_low=rounded(low),
        chance_high=rounded(high),
        chance_when_tried=rounded(step.chance_when_tried),
        chance_source=chance_source(step.answer),
    )
