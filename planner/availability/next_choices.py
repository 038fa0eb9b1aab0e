"""The capacity ladder of a plan: what to try next, in which order, if its machines are not obtained."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.availability.capacity_ladder import MOST_STEPS, LadderChoices, least_ladder
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
from gpuplan.planner.availability.obtainable import Obtainability, band, is_certain, obtainability
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import first_least, in_words, offer_of
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.live_chances import Shape
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.model.outcome import Choice, LadderStep, Planned, PlannedLadder

Floats = NDArray[np.float64]
#: A choice with at least this chance needs no next one.
_SURE = 1.0 - 1e-9
Pool = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """A choice with its objective in millionths, the latest step at which it meets the deadline, and its obtainability.

    `answer` is the cloud's, if the chance comes from one. `in_words` makes the `Choice`: most options are only compared.
    """

    offer: Offer
    accelerator: str
    value: float
    last_position: int
    place: Obtainability
    nodes: int
    answer: CapacityAnswer | None
    in_words: Callable[[], Choice]

    @property
    def pool(self) -> Pool:
        """The machine in its place under its price kind: one refusal answers for any number of nodes."""
        offer = self.offer
        return (offer.provider, offer.region, offer.zone, offer.instance_type, offer.price_kind)

    @property
    def shape(self) -> Shape:
        """What a cloud is asked about it."""
        offer = self.offer
        return (offer.provider, offer.region, offer.instance_type, offer.price_kind, self.nodes)

    @property
    def group(self) -> Pool:
        """What has its shortages in common; certain choices have none in common with any other."""
        if self.place.chance >= 1.0:
            return ("certain", *self.pool)
        return (self.offer.provider, self.offer.region, self.accelerator)


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
        return _answer(plan, [first], (first.place.chance,), bound=first.value, options=[first])
    judged = _Judged.of(candidates, candidates.table)
    lasts = _lasts(candidates, plan, first, judged)
    if not lasts:
        return _answer(plan, [first], (first.place.chance,), bound=first.value, options=[first])
    ladders = [_solved(candidates, plan, first, last, judged) for last in lasts]
    return min(ladders, key=lambda ladder: ladder.value)


def _solved(candidates: Candidates, plan: Planned, first: _Option, last: _Option, judged: _Judged) -> PlannedLadder:
    """The best ladder between these ends."""
    better = judged.feasible & (judged.value < last.value)
    several = ladder_set(candidates, judged.chance, better, last.value)
    middle = _options(candidates, several.table, several.rows)
    options = [first, *(option for option in middle if option.pool not in (first.pool, last.pool)), last]
    ladder = least_ladder(_arrays(options), len(options) - 1, first=0)
    bound = _bound(options, several, ladder.expected)
    tried = [options[i] for i in ladder.order]
    return _answer(plan, tried, ladder.chance_when_tried, bound=bound, options=options)


def _first(candidates: Candidates, plan: Planned) -> _Option:
    """The plan itself: its machines at the start decide whether they are obtained."""
    phase = plan.phases[0]
    value: float = {
        "cost": float(plan.cost.expected),
        "time": round(plan.hours.confident * 1e6),
        "carbon": round(sum(phase.carbon_kg or 0.0 for phase in plan.phases) * 1e6),
    }[plan.job.objective]
    market = candidates.question.markets[phase.market]
    return _Option(
        offer=phase.choice.offer,
        accelerator=phase.choice.accelerator,
        value=value,
        last_position=1,
        place=_place(candidates, phase.choice, phase.choice.nodes, market),
        nodes=phase.choice.nodes,
        answer=_answered(candidates, market, phase.choice.offer, phase.choice.nodes),
        in_words=lambda: phase.choice,
    )


def _place(candidates: Candidates, choice: Choice, nodes: int, market: Market) -> Obtainability:
    """The obtainability of so many nodes of a choice."""
    question = candidates.question
    return obtainability(
        choice.offer, choice.instance_type, nodes, market=market, year=question.start.year, live=question.live
    )


def _answered(candidates: Candidates, market: Market, offer: Offer, nodes: int) -> CapacityAnswer | None:
    """The cloud's answer that the chance of so many nodes comes from."""
    live = None if is_certain(market) else candidates.question.live.of(offer, nodes)
    return None if live is None else live.answer


def _lasts(candidates: Candidates, plan: Planned, first: _Option, judged: _Judged) -> list[_Option]:
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
    lasts: list[_Option] = []
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
    one = _place(candidates, phase.choice, 1, market)
    return min(one.chance, capacity_prior().certain_chance)


def _certainty(option: _Option) -> float:
    return min(option.place.chance, capacity_prior().certain_chance)


def _last(candidates: Candidates, tables: list[_Judged], first: _Option, position: int) -> _Option | None:
    """The best certain choice besides the first that may come at this step; if none is certain, the most certain."""
    options = []
    for judged in tables:
        table = judged.table
        usable = judged.feasible & _in_time(candidates, table, position) & (judged.chance > 0)
        chance = np.minimum(judged.chance, capacity_prior().certain_chance)
        while usable.any():
            left = np.flatnonzero(usable)
            row = first_least(left, -chance, judged.value, table.cost_breakdown.hours_at_confidence)
            (option,) = _options(candidates, table, np.array([row]))
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
    return np.asarray(_positions(deadline - table.cost_breakdown.hours_at_confidence) >= position)


def _positions(spare_hours: Floats) -> Floats:
    """The latest step, from 1, with so many hours to spare."""
    return np.floor(spare_hours * 60.0 / capacity_prior().try_minutes) + 1.0


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


def _options(candidates: Candidates, table: Configurations, rows: NDArray[np.int64]) -> list[_Option]:
    """The configurations at these rows of a table."""
    job, year, live = candidates.question.job, candidates.question.start.year, candidates.question.live
    position = np.full(len(rows), MOST_STEPS)
    if job.deadline_hours is not None:
        spare = job.deadline_hours - table.cost_breakdown.hours_at_confidence[rows]
        position = np.minimum(position, _positions(spare))
    value, columns = value_of(candidates, table)[rows], (table.market[rows], table.place[rows], table.nodes[rows])
    options = []
    for i, (row, number, place, nodes) in enumerate(
        zip(rows.tolist(), *(column.tolist() for column in columns), strict=True)
    ):
        market = candidates.question.markets[number]
        offer, instance_type = offer_of(market, place)
        options.append(
            _Option(
                offer=offer,
                accelerator=instance_type.accelerator,
                value=float(value[i]),
                last_position=int(position[i]),
                place=obtainability(offer, instance_type, nodes, market=market, year=year, live=live),
                nodes=nodes,
                answer=_answered(candidates, market, offer, nodes),
                in_words=partial(in_words, candidates, table, row),
            )
        )
    return options


def _arrays(options: list[_Option]) -> LadderChoices:
    pools, groups = (
        {key: number for number, key in enumerate(dict.fromkeys(keys))}
        for keys in ([option.pool for option in options], [option.group for option in options])
    )
    return LadderChoices(
        value=np.array([option.value for option in options]),
        last_position=np.array([option.last_position for option in options]),
        pool=np.array([pools[option.pool] for option in options]),
        group=np.array([groups[option.group] for option in options]),
        state_chance=np.array([option.place.state_chance for option in options]),
        obtained=np.array([option.place.obtained for option in options]),
    )


def _bound(options: list[_Option], several: LadderSet, expected: float) -> float:
    """The least that a ladder with these first and last choices can come to, whatever it tries between them."""
    first, last = options[0], options[-1]
    left_out = left_out_bounds(several, min(MOST_STEPS, last.last_position) - 2)[-1]
    chance = first.place.chance
    if left_out <= 0.0:
        return expected
    return min(expected, chance * first.value + (1.0 - chance) * (last.value - left_out))


def _answer(
    plan: Planned, tried: list[_Option], chances: tuple[float, ...], *, bound: float, options: list[_Option]
) -> PlannedLadder:
    """The ladder in the words of an answer. The last choice is waited for, so it takes what the others leave."""
    minutes = capacity_prior().try_minutes
    reached, cost, value = 1.0, 0.0, 0.0
    for option, chance in zip(tried, chances, strict=True):
        takes = reached if option is tried[-1] else reached * chance
        cost += takes * (plan.cost.expected if option is tried[0] else option.in_words().cost.expected)
        value += takes * option.value
        reached *= 1.0 - chance
    first = tried[0].place.chance
    return PlannedLadder(
        try_minutes=minutes,
        chance=first,
        chance_band=band(first),
        answer=tried[0].answer,
        steps=tuple(
            LadderStep(
                choice=option.in_words(),
                after_minutes=number * minutes,
                chance=option.place.chance,
                chance_band=band(option.place.chance),
                chance_when_tried=chance,
                answer=option.answer,
            )
            for number, (option, chance) in enumerate(zip(tried, chances, strict=True))
            if number
        ),
        cost=round(cost),
        value=value / 1e6,
        bound=min(bound, value) / 1e6,
        nothing_obtained=reached,
        last_start_hours=_last_start_hours(plan, tried),
        considered=len(options),
        shapes=tuple(dict.fromkeys(option.shape for option in options if option.place.chance < 1.0)),
    )


def _last_start_hours(plan: Planned, tried: list[_Option]) -> float | None:
    """When the last choice is asked for at the latest, so that it is in time if its try takes all its minutes.

    Until then the others are asked for again, unless hours are what counts.
    """
    deadline, try_hours = plan.job.deadline_hours, capacity_prior().try_minutes / 60.0
    if deadline is None or len(tried) < 2 or plan.job.objective == "time":
        return None
    return max(deadline - tried[-1].in_words().hours.confident - try_hours, (len(tried) - 1) * try_hours)
