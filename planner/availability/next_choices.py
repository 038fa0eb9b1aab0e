"""The capacity ladder of a plan: what to try next, in which order, if its machines are not obtained."""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.availability.capacity_ladder import MOST_STEPS, Ladder, least_ladder
from gpuplan.planner.availability.ladder_candidates import LadderSet, ladder_set, left_out_bounds, positions
from gpuplan.planner.availability.ladder_options import (
    LadderOption,
    answered,
    arrays_of,
    options_of,
    place_of,
)
from gpuplan.planner.availability.last_choices import Judged, last_choices
from gpuplan.planner.availability.obtainable import band
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import first_least
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import ChangingPlan, LadderStep, PlannedLadder
from gpuplan.planner.strategies.schedule import Schedule

#: A choice with at least this chance needs no next one.
_SURE = 1.0 - 1e-9
#: Relative saving below which two orders are equal: sums of doubles, and costs in whole micro-dollars.
_EQUAL = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstChoice:
    """A ladder, and a table of only the configuration that it begins with; None where that is the plan as it was."""

    ladder: PlannedLadder
    only: Configurations | None = None


def planned_ladder(candidates: Candidates, plan: Schedule) -> FirstChoice:
    """The choices that keep the expected outcome least; `plan` is the best schedule if its machines are obtained.

    The last choice is the best one that is certain, or the most certain one there is. For the least cost any configuration
    may come first, or a `plan` that changes machines, which counts as more than its cost (`_cost_of_moving`). For other
    objectives the plan comes first.
    """
    job = candidates.question.job
    first = _first(candidates, plan)
    if first.place.chance >= _SURE:
        return FirstChoice(ladder=_answer(job, plan, _alone(first)))
    judged = Judged.of(candidates, candidates.table)
    lasts = last_choices(candidates, plan, first, judged)
    if not lasts:
        return FirstChoice(ladder=_answer(job, plan, _alone(first)))
    alone = [] if len(plan.phases) == 1 else _cheapest_alone(candidates, judged)
    between = [_Between.of(candidates, first, last, judged, alone) for last in lasts]
    if job.objective != "cost":
        return FirstChoice(ladder=_answer(job, plan, min((one.after_the_plan() for one in between), key=_expected)))
    begun = [] if first.place.chance <= 0.0 else [one.after_the_plan() for one in between]
    solved = min(begun, key=_expected, default=None)
    extra = first.place.chance * _cost_of_moving(candidates, plan)
    comparable = float("inf") if solved is None else solved.ladder.expected + extra
    orders = [one.any_first(job, plan, comparable) for one in between]
    order, moves = min(orders, key=_expected), len(plan.phases) > 1
    if solved is not None and order.ladder.expected >= comparable * (1.0 - _EQUAL):
        bound = min(one.bound for one in (*orders, *(begun if moves else ())))
        return FirstChoice(ladder=_answer(job, plan, replace(solved, bound=bound)))
    bounds = [one.bound for one in orders] + ([one.bound + extra for one in begun] if moves else [])
    return _other_first(job, plan, first, order, min(bounds))


def _cheapest_alone(candidates: Candidates, judged: Judged) -> list[LadderOption]:
    """The cheapest single configuration, which a plan that changes machines is compared with in any case."""
    rows = np.flatnonzero(judged.feasible)
    hours = judged.table.cost_breakdown.hours_at_confidence
    return options_of(candidates, judged.table, np.array([first_least(rows, judged.value, hours)])) if len(rows) else []


def _cost_of_moving(candidates: Candidates, plan: Schedule) -> float:
    """Micro-dollars that a plan counts as more than its cost, so that a change of machines has to save something."""
    if len(plan.phases) == 1:
        return 0.0
    least = candidates.question.settings.least_saving_of_a_move_percent
    return plan.cost.expected / (1 - least / 100) - plan.cost.expected


def _other_first(job: TrainingJob, plan: Schedule, first: LadderOption, order: "_Solved", bound: float) -> FirstChoice:
    """The ladder that begins with another choice than the cheapest if obtained."""
    solved = replace(order.until_certain(), bound=bound)
    ladder = _answer(job, plan, solved)
    ladder = replace(ladder, shapes=tuple(dict.fromkeys((first.shape, *ladder.shapes))))
    if len(plan.phases) > 1:
        ladder = replace(ladder, changing_machines=_in_full(plan, first))
    else:
        (cheapest,) = _steps([first], (first.place.chance,))
        ladder = replace(ladder, cheapest=cheapest)
    return FirstChoice(ladder=ladder, only=solved.tried[0].only)


def _in_full(plan: Schedule, first: LadderOption) -> ChangingPlan:
    """The plan that changes machines, with the chance of its first ones."""
    return ChangingPlan(
        phases=plan.phases,
        cost=plan.cost,
        hours=plan.hours,
        deadline_probability=plan.deadline_probability,
        chance=first.place.chance,
        chance_band=band(first.place.chance),
        answer=first.answer,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """The best ladder over these options, and the least that any could come to with what was left out."""

    options: list[LadderOption]
    ladder: Ladder
    bound: float

    @property
    def tried(self) -> list[LadderOption]:
        """The choices in order."""
        return [self.options[i] for i in self.ladder.order]

    def until_certain(self) -> "_Solved":
        """The ladder up to a choice that a cloud calls certain: none is tried after it."""
        ladder = self.ladder
        sure = next((number for number, option in enumerate(self.tried, 1) if option.place.chance >= _SURE), None)
        if sure is None:
            return self
        order, chances = ladder.order[:sure], ladder.chance_when_tried[:sure]
        return replace(self, ladder=replace(ladder, order=order, chance_when_tried=chances, nothing_obtained=0.0))


def _expected(solved: _Solved) -> float:
    return solved.ladder.expected


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Between:
    """The choices that a ladder may have before its last one; the plan itself is the first of the options."""

    options: list[LadderOption]
    several: LadderSet

    @staticmethod
    def of(
        candidates: Candidates, first: LadderOption, last: LadderOption, judged: Judged, alone: list[LadderOption]
    ) -> "_Between":
        better = judged.feasible & (judged.value < last.value)
        several = ladder_set(candidates, judged.chance, better, last.value)
        middle = options_of(candidates, several.table, several.rows)
        known = {(one.pool, one.nodes) for one in middle}
        middle += [one for one in alone if (one.pool, one.nodes) not in known]
        return _Between(options=[first, *(one for one in middle if one.pool != last.pool), last], several=several)

    def after_the_plan(self) -> _Solved:
        """The best ladder that begins with the plan itself."""
        first = self.options[0]
        options = [first, *(option for option in self.options[1:] if option.pool != first.pool)]
        ladder = least_ladder(arrays_of(options), len(options) - 1, first=0)
        return _Solved(options=options, ladder=ladder, bound=_bound(options, self.several, ladder.expected))

    def any_first(self, job: TrainingJob, plan: Schedule, to_beat: float) -> _Solved:
        """The best ladder with any choice first, if it is expected to cost less than `to_beat`; a plan of several phases is no choice of it."""
        first, *rest = self.options
        alone = [option for option in rest if (option.pool, option.nodes) != (first.pool, first.nodes)]
        options, several = rest, self.several
        if len(plan.phases) == 1 and first.place.chance > 0.0:
            options = [replace(first, last_position=_latest(job.deadline_hours, plan)), *alone]
            several = replace(
                several,
                chance=np.append(several.chance, first.place.chance),
                saving=np.append(several.saving, rest[-1].value - first.value),
            )
        last = options[-1]
        ladder = least_ladder(arrays_of(options), len(options) - 1, to_beat=to_beat)
        left_out = left_out_bounds(several, min(MOST_STEPS, last.last_position) - 1)[-1]
        bound = ladder.expected if left_out <= 0.0 else min(ladder.expected, last.value - left_out)
        return _Solved(options=options, ladder=ladder, bound=bound)


def _latest(deadline: float | None, plan: Schedule) -> int:
    """The latest step at which the plan itself meets the deadline."""
    if deadline is None:
        return MOST_STEPS
    return min(MOST_STEPS, int(positions(np.array([deadline - plan.hours.confident]))[0]))


def _first(candidates: Candidates, plan: Schedule) -> LadderOption:
    """The plan itself: its machines at the start decide whether they are obtained."""
    phase = plan.phases[0]
    value: float = {
        "cost": float(plan.cost.expected),
        "time": round(plan.hours.confident * 1e6),
        "carbon": round(sum(phase.carbon_kg or 0.0 for phase in plan.phases) * 1e6),
    }[candidates.question.job.objective]
    market = candidates.question.markets[phase.market]
    return LadderOption(
        offer=phase.choice.offer,
        accelerator=phase.choice.accelerator,
        value=value,
        last_position=1,
        place=place_of(candidates, phase.choice, phase.choice.nodes, market),
        nodes=phase.choice.nodes,
        answer=answered(candidates, market, phase.choice.offer, phase.choice.nodes),
        in_words=lambda: phase.choice,
    )


def _bound(options: list[LadderOption], several: LadderSet, expected: float) -> float:
    """The least that a ladder with these first and last choices can come to, whatever it tries between them."""
    first, last = options[0], options[-1]
    left_out = left_out_bounds(several, min(MOST_STEPS, last.last_position) - 2)[-1]
    chance = first.place.chance
    if left_out <= 0.0:
        return expected
    return min(expected, chance * first.value + (1.0 - chance) * (last.value - left_out))


def _alone(first: LadderOption) -> _Solved:
    """A ladder without a next choice."""
    chance = first.place.chance
    ladder = Ladder(order=(0,), expected=first.value, chance_when_tried=(chance,), nothing_obtained=1.0 - chance)
    return _Solved(options=[first], ladder=ladder, bound=first.value)


def _answer(job: TrainingJob, plan: Schedule, solved: _Solved) -> PlannedLadder:
    """The ladder in the words of an answer. The last choice is waited for, so it takes what the others leave."""
    minutes, tried, chances = capacity_prior().try_minutes, solved.tried, solved.ladder.chance_when_tried
    in_cost = job.objective == "cost"
    reached, cost, value = 1.0, 0.0, 0.0
    for option, chance in zip(tried, chances, strict=True):
        takes = reached if option is tried[-1] else reached * chance
        if not in_cost:
            cost += takes * (plan.cost.expected if option is tried[0] else option.in_words().cost.expected)
        value += takes * option.value
        reached *= 1.0 - chance
    first = tried[0].place.chance
    return PlannedLadder(
        try_minutes=minutes,
        chance=first,
        chance_band=band(first),
        answer=tried[0].answer,
        steps=_steps(tried, chances)[1:],
        cost=round(value if in_cost else cost),
        value=value / 1e6,
        bound=min(solved.bound, value) / 1e6,
        nothing_obtained=reached,
        last_start_hours=_last_start_hours(job, tried),
        considered=len(solved.options),
        shapes=tuple(dict.fromkeys(option.shape for option in solved.options if option.place.chance < 1.0)),
    )


def _last_start_hours(job: TrainingJob, tried: list[LadderOption]) -> float | None:
    """When the last choice is asked for at the latest, so that it is in time if its try takes all its minutes.

    Until then the others are asked for again, unless hours are what counts.
    """
    deadline, try_hours = job.deadline_hours, capacity_prior().try_minutes / 60.0
    if deadline is None or len(tried) < 2 or job.objective == "time":
        return None
    return max(deadline - tried[-1].in_words().hours.confident - try_hours, (len(tried) - 1) * try_hours)


def _steps(tried: list[LadderOption], chances: tuple[float, ...]) -> tuple[LadderStep, ...]:
    """The choices in order, each after the tries before it."""
    return tuple(
        LadderStep(
            choice=option.in_words(),
            after_minutes=number * capacity_prior().try_minutes,
            chance=option.place.chance,
            chance_band=band(option.place.chance),
            chance_when_tried=chance,
            answer=option.answer,
        )
        for number, (option, chance) in enumerate(zip(tried, chances, strict=True))
    )
