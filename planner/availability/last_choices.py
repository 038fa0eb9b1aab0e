"""The last choices that a capacity ladder may have: certain, or as certain as the most certain one, and cheap."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.availability.capacity_ladder import MOST_STEPS
from gpuplan.planner.availability.ladder_candidates import (
    all_places,
    answered_cells,
    cell_key,
    chances_of,
    feasible,
    positions,
    value_of,
)
from gpuplan.planner.availability.ladder_options import LadderOption, options_of, place_of
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import first_least
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.strategies.schedule import Schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A table with what a ladder asks of each of its configurations."""

    table: Configurations
    feasible: NDArray[np.bool_]
    value: Floats
    chance: Floats

    @staticmethod
    def of(candidates: Candidates, table: Configurations) -> "Judged":
        """What a ladder asks of every configuration of a table."""
        return Judged(
            table=table,
            feasible=feasible(candidates, table),
            value=value_of(candidates, table),
            chance=chances_of(candidates, table),
        )


def last_choices(candidates: Candidates, plan: Schedule, first: LadderOption, judged: Judged) -> list[LadderOption]:
    """The best last choices: the cheapest that can come second, the cheapest that can come later than that one, and so on.

    Each is certain, or if none is, as certain as the most certain one. Among offers of the first's own cell the planner's
    table has only the best, so all its places are looked at where they could be as certain, and all places of cells that
    a cloud answered about. Where the first has no chance at all and time for one try is left, the last choice is that try.
    """
    tables = [judged]
    cells = answered_cells(candidates)
    option = _last(candidates, tables, first, 2)
    if option is None or _certainty(option) <= _most_certain_in_cell(candidates, plan):
        cells = np.union1d(cells, _cell_of(candidates, plan))
    if len(cells):
        tables.append(Judged.of(candidates, all_places(candidates, cells)[0]))
        option = _last(candidates, tables, first, 2)
    in_cost = candidates.question.job.objective == "cost"
    if option is None and first.place.chance <= 0.0 and in_cost:
        only = _last(candidates, tables, first, 1)
        return [] if only is None else [only]
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


def _most_certain_in_cell(candidates: Candidates, plan: Schedule) -> float:
    """The certainty of one node of the plan's first machines: no other number of nodes in their cell has more."""
    phase = plan.phases[0]
    market = candidates.question.markets[phase.market]
    one = place_of(candidates, phase.choice, 1, market)
    return min(one.chance, capacity_prior().certain_chance)


def _certainty(option: LadderOption) -> float:
    return min(option.place.chance, capacity_prior().certain_chance)


def _last(candidates: Candidates, tables: list[Judged], first: LadderOption, position: int) -> LadderOption | None:
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


def _cell_of(candidates: Candidates, plan: Schedule) -> NDArray[np.int64]:
    """The cell of the plan's first machines."""
    phase = plan.phases[0]
    snapshot, offer = candidates.question.markets[phase.market].snapshot, phase.choice.offer
    kind = snapshot.columns.kinds.index(offer.price_kind)
    region = snapshot.columns.regions.index((offer.provider, offer.region))
    for place in np.flatnonzero((snapshot.kind_index == kind) & (snapshot.region_index == region)).tolist():
        if snapshot.columns.instance_types[int(snapshot.type_index[place])].name == offer.instance_type:
            return np.array([cell_key(phase.market, int(snapshot.cell[place]))])
    raise LookupError(f"the plan's {offer.instance_type} is not in its own market")
