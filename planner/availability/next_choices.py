"""The capacity ladder of a plan: what to try next, in which order, if its machines are not obtained."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.availability.capacity_ladder import MOST_STEPS, Ladder, least_ladder
from gpuplan.planner.availability.ladder_candidates import (
    LadderSet,
    all_places,
    answered_cells,
    cell_key,
    chances_of,
    feasible,
    ladder_set,
    left_out_bounds,
    value_of,
)
from gpuplan.planner.availability.ladder_options import (
    LadderOption,
    answered,
    arrays_of,
    options_of,
    place_of,
    positions,
)
from gpuplan.planner.availability.obtainable import band
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import first_least
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.model.outcome import BestOrder, LadderStep, Planned, PlannedLadder

Floats = NDArray[np.float64]
#: A choice with at least this chance needs no next one.
_SURE = 1.0 - 1e-9
#: Relative saving below which two orders are equal: sums of doubles, and costs in whole micro-dollars.
_EQUAL = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    """A table with what a ladder asks of each of its configurations."""

    table: Configurations
    feasible: NDArray[np.bool_]
    value: Floats
    chance: Floats

    @staticmethod
    def of(candidates: Candidates, table: Configurations) -> "_Judged":
        return _Judged(
            table=table,
            feasible=feasible(candidates, table),
            value=value_of(candidates, table),
            chance=chances_of(candidates, table),
        )


def planned_ladder(candidates: Candidates, plan: Planned) -> PlannedLadder:
    """The next choices of a plan that keep the expected outcome least, with its own machines as the first choice.

    The last choice is the best one that is certain, or the most certain one there is.
    """
    first = _first(candidates, plan)
    if first.place.chance >= _SURE:
        return _answer(plan, _alone(first))
    judged = _Judged.of(candidates, candidates.table)
    lasts = _lasts(candidates, plan, first, judged)
    if not lasts:
        return _answer(plan, _alone(first))
    between = [_Between.of(candidates, first, last, judged) for last in lasts]
    solved = min((one.after_the_plan() for one in between), key=lambda one: one.ladder.expected)
    ladder = _answer(plan, solved)
    if plan.job.objective != "cost":
        return ladder
    to_beat = solved.ladder.expected * (1.0 - _EQUAL)
    order = min((one.any_first(plan, to_beat) for one in between), key=lambda one: one.ladder.expected)
    better = order.ladder.expected < to_beat
    return replace(ladder, best_order=_best_order(order)) if better else ladder


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Between:
    """The choices that a ladder may have before its last one; the plan itself is the first of the options."""

    options: list[LadderOption]
    several: LadderSet

    @staticmethod
    def of(candidates: Candidates, first: LadderOption, last: LadderOption, judged: _Judged) -> "_Between":
        better = judged.feasible & (judged.value < last.value)
        several = ladder_set(candidates, judged.chance, better, last.value)
        middle = options_of(candidates, several.table, several.rows)
        return _Between(options=[first, *(one for one in middle if one.pool != last.pool), last], several=several)

    def after_the_plan(self) -> _Solved:
        """The best ladder that begins with the plan itself."""
        first = self.options[0]
        options = [first, *(option for option in self.options[1:] if option.pool != first.pool)]
        ladder = least_ladder(arrays_of(options), len(options) - 1, first=0)
        return _Solved(options=options, ladder=ladder, bound=_bound(options, self.several, ladder.expected))

    def any_first(self, plan: Planned, to_beat: float) -> _Solved:
        """The best ladder with any choice first, if it is expected to cost less than `to_beat`; a plan of several phases is no choice of it."""
        first, *rest = self.options
        alone = [option for option in rest if (option.pool, option.nodes) != (first.pool, first.nodes)]
        options, several = rest, self.several
        if len(plan.phases) == 1:
            options = [replace(first, last_position=_latest(plan)), *alone]
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


def _best_order(solved: _Solved) -> BestOrder:
    """The order in the words of an answer, up to a choice that a cloud calls certain."""
    ladder, tried = solved.ladder, solved.tried
    sure = next((number for number, option in enumerate(tried, 1) if option.place.chance >= _SURE), len(tried))
    return BestOrder(
        steps=_steps(tried[:sure], ladder.chance_when_tried[:sure]),
        cost=round(ladder.expected),
        value=ladder.expected / 1e6,
        bound=solved.bound / 1e6,
        nothing_obtained=ladder.nothing_obtained if sure == len(tried) else 0.0,
    )


def _latest(plan: Planned) -> int:
    """The latest step at which the plan itself meets the deadline."""
    deadline = plan.job.deadline_hours
    if deadline is None:
        return MOST_STEPS
    return min(MOST_STEPS, int(positions(np.array([deadline - plan.hours.confident]))[0]))


def _first(candidates: Candidates, plan: Planned) -> LadderOption:
    """The plan itself: its machines at the start decide whether they are obtained."""
    phase = plan.phases[0]
    value: float = {
        "cost": float(plan.cost.expected),
        "time": round(plan.hours.confident * 1e6),
        "carbon": round(sum(phase.carbon_kg or 0.0 for phase in plan.phases) * 1e6),
    }[plan.job.objective]
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


def _lasts(candidates: Candidates, plan: Planned, first: LadderOption, judged: _Judged) -> list[LadderOption]:
    """The best last choices: the cheapest that can come second, the cheapest that can come later than that one, and so on.

    Each is certain, or if none is, as certain as the most certain one. Among offers of the first's own cell the planner's
    table has only the best, so all its places are looked at where they could be as certain, and all places of cells that
    a cloud answered about.
    """
    tables = [judged]
    cells = answered_cells(candidates)
    option = _last(candidates, tables, first, 2)
    if option is None or _certainty(option) <= _most_certain_in_cell(candidates, plan):
        cells = np.union1d(cells, _cell_of(candidates, plan))
    if len(cells):
        tables.append(_Judged.of(candidates, all_places(candidates, cells)[0]))
        option = _last(candidates, tables, first, 2)
    lasts: list[LadderOption] = []
    position = 2
    while position <= MOST_STEPS:
        if lasts:
            option = _last(candidates, tables, first, position)
        if option is None or (lasts and _certainty(option) < _certainty(lasts[0])):
            break
        lasts.append(option)
        position = option.last_position + 1
    return lasts


def _most_certain_in_cell(candidates: Candidates, plan: Planned) -> float:
    """The certainty of one node of the plan's first machines: no other number of nodes in their cell has more."""
    phase = plan.phases[0]
    market = candidates.question.markets[phase.market]
    one = place_of(candidates, phase.choice, 1, market)
    return min(one.chance, capacity_prior().certain_chance)


def _certainty(option: LadderOption) -> float:
    return min(option.place.chance, capacity_prior().certain_chance)


def _last(candidates: Candidates, tables: list[_Judged], first: LadderOption, position: int) -> LadderOption | None:
    """The best certain choice besides the first that may come at this step; if none is certain, the most certain."""
    options = []
    for judged in tables:
        table = judged.table
        usable = judged.feasible & _in_time(candidates, table, position) & (judged.chance > 0)
        chance = np.minimum(judged.chance, capacity_prior().certain_chance)
        while usable.any():
            left = np.flatnonzero(usable)
            row = first_least(left, -chance, judged.value, table.cost_breakdown.hours_at_confidence)
            (option,) = options_of(candidates, table, np.array([row]))
            if option.pool != first.pool:
                options.append((-float(chance[row]), option.value, option))
                break
            usable &= (table.market != table.market[row]) | (table.place != table.place[row])
    return min(options, key=lambda one: one[:2])[2] if options else None


def _in_time(candidates: Candidates, table: Configurations, position: int) -> NDArray[np.bool_]:
    """The configurations that meet the deadline at this step."""
    deadline = candidates.question.job.deadline_hours
    if deadline is None:
        return np.ones(len(table), np.bool_)
    return np.asarray(positions(deadline - table.cost_breakdown.hours_at_confidence) >= position)


def _cell_of(candidates: Candidates, plan: Planned) -> NDArray[np.int64]:
    """The cell of the plan's first machines."""
    phase = plan.phases[0]
    snapshot, offer = candidates.question.markets[phase.market].snapshot, phase.choice.offer
    kind = snapshot.columns.kinds.index(offer.price_kind)
    region = snapshot.columns.regions.index((offer.provider, offer.region))
    for place in np.flatnonzero((snapshot.kind_index == kind) & (snapshot.region_index == region)).tolist():
        if snapshot.columns.instance_types[int(snapshot.type_index[place])].name == offer.instance_type:
            return np.array([cell_key(phase.market, int(snapshot.cell[place]))])
    raise LookupError(f"the plan's {offer.instance_type} is not in its own market")


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


def _answer(plan: Planned, solved: _Solved) -> PlannedLadder:
    """The ladder in the words of an answer. The last choice is waited for, so it takes what the others leave."""
    minutes, tried, chances = capacity_prior().try_minutes, solved.tried, solved.ladder.chance_when_tried
    in_cost = plan.job.objective == "cost"
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
        last_start_hours=_last_start_hours(plan, tried),
        considered=len(solved.options),
        shapes=tuple(dict.fromkeys(option.shape for option in solved.options if option.place.chance < 1.0)),
    )


def _last_start_hours(plan: Planned, tried: list[LadderOption]) -> float | None:
    """When the last choice is asked for at the latest, so that it is in time if its try takes all its minutes.

    Until then the others are asked for again, unless hours are what counts.
    """
    deadline, try_hours = plan.job.deadline_hours, capacity_prior().try_minutes / 60.0
    if deadline is None or len(tried) < 2 or plan.job.objective == "time":
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
