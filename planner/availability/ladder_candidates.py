"""The stated set of choices that a capacity ladder is chosen from, and a bound for all that are left out.

The planner's table leaves out offers that a cheaper one dominates: for a single choice they never matter, for the second
choice they do. Machines of a cell (shape, price kind, provider) have the same chance, and a dominated offer costs at least
as much as the best of its cell at the same number of nodes. So the cells whose best offers save most are looked at again
with all their places, and the best of the others bounds what is left out. Places that a cloud answered about differ from
the rest of their cell: their cells are always looked at again, with every such place.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.capacity_prior import capacity_prior
from gpuplan.planner.availability.capacity_ladder import MOST_STEPS, best_from_here
from gpuplan.planner.availability.obtainable import is_certain, modelled_chances, places_of
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import carbon_mg, cost_micros, offer_of, whole_hours
from gpuplan.planner.candidates.configurations import Configurations, joined, of_a_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Cells that are looked at again with all their places, and the cheapest places of each.
MOST_CELLS, MOST_PLACES = 12, 48
#: Choices that the ladder is solved over, and those of one machine, region and price kind.
MOST_CHOICES, MOST_ALIKE = 48, 4


#: What each objective counts, in millionths of its unit: micro-dollars, microhours, milligrams.
MEASURE = {"cost": cost_micros, "time": whole_hours, "carbon": carbon_mg}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LadderSet:
    """Rows of `table` to solve over with chance and saving in millionths; the same of all that is left out, or a bound.

    `stands_for_others` marks bounds: choices left out that others cost as much as or more, at the same chance.
    """

    table: Configurations
    rows: Ints
    chance: Floats
    saving: Floats
    left_out_chance: Floats
    left_out_saving: Floats
    stands_for_others: Flags


def feasible(candidates: Candidates, table: Configurations) -> Flags:
    """The configurations that meet all requirements by themselves, and whose objective is known."""
    job = candidates.question.job
    return np.asarray((over(table, job.deadline_hours, job.budget_usd) == 0) & ~np.isnan(value_of(candidates, table)))


def last_positions(candidates: Candidates, table: Configurations, rows: Ints) -> Ints:
    """The latest step of a ladder, from 1, at which each of these configurations meets the deadline."""
    deadline = candidates.question.job.deadline_hours
    if deadline is None:
        return np.full(len(rows), MOST_STEPS)
    spare = positions(deadline - table.cost_breakdown.hours_at_confidence[rows])
    return np.minimum(spare, MOST_STEPS).astype(np.int64)


def positions(spare_hours: Floats) -> Floats:
    """The latest step, from 1, with so many hours to spare."""
    return np.floor(spare_hours * 60.0 / capacity_prior().try_minutes) + 1.0


def value_of(candidates: Candidates, table: Configurations) -> Floats:
    """What the job's objective counts, in millionths of its unit: [configurations]."""
    return MEASURE[candidates.question.job.objective](table)


def modelled_chances_of(candidates: Candidates, table: Configurations) -> Floats:
    """The modelled chance of each configuration by itself, whatever a cloud answered: [configurations]."""
    year = candidates.question.start.year
    result = np.ones(len(table))
    for number, market in enumerate(candidates.question.markets):
        mine = np.flatnonzero(table.market == number)
        if len(mine) and not is_certain(market):
            result[mine] = modelled_chances(market, table.place[mine], table.nodes[mine], year)
    return result


def chances_of(candidates: Candidates, table: Configurations) -> Floats:
    """The chance of each configuration by itself, by the cloud's answer where there is one: [configurations]."""
    result, live = modelled_chances_of(candidates, table), candidates.question.live
    for number, market in enumerate(candidates.question.markets):
        if is_certain(market):
            continue
        for shape in live.zones:
            asked = (table.market == number) & (table.nodes == shape[-1])
            for row in np.flatnonzero(asked & np.isin(table.place, places_of(market, shape))).tolist():
                answered = live.of(offer_of(market, int(table.place[row]))[0], shape[-1])
                result[row] = result[row] if answered is None else answered.chance
    return result


def answered_places(candidates: Candidates) -> dict[int, Ints]:
    """By market, the places that a cloud answered about; for any number of nodes."""
    return {
        number: np.unique(np.concatenate([places_of(market, shape) for shape in candidates.question.live.zones]))
        for number, market in enumerate(candidates.question.markets)
        if candidates.question.live.zones and not is_certain(market)
    }


def answered_cells(candidates: Candidates) -> Ints:
    """The cells of these places, ascending."""
    cells = [
        cell_key(number, int(cell))
        for number, places in answered_places(candidates).items()
        for cell in np.unique(candidates.question.markets[number].snapshot.cell[places])
    ]
    return np.array(sorted(cells), np.int64)


def ladder_set(candidates: Candidates, table_chance: Floats, better: Flags, last_value: float) -> LadderSet:
    """The choices that are better than `last_value`; `better` marks those of the planner's own table."""
    table = candidates.table
    saving = last_value - value_of(candidates, table)
    at = np.flatnonzero(better)
    cell = _cells(candidates, table, at)
    wanted = np.union1d(_best_cells(cell, table_chance[at] * saving[at]), answered_cells(candidates))
    again = np.isin(cell, wanted)
    whole, truncated = all_places(candidates, wanted)
    chance, saved = chances_of(candidates, whole), last_value - value_of(candidates, whole)
    ok = np.flatnonzero(feasible(candidates, whole) & (saved > 0) & (chance > 0))
    ok = _undominated(candidates, whole, ok, chance, saved)
    rows = _thinned(candidates, whole, ok, chance * saved)
    rest = np.setdiff1d(ok, rows)
    # No cloud answered about places that are left out of a cell.
    bounds = at[~again | np.isin(cell, truncated)]
    of_bounds = table_chance[bounds]
    if candidates.question.live.zones:
        of_bounds = modelled_chances_of(candidates, table.take(bounds))
    return LadderSet(
        table=whole,
        rows=rows,
        chance=chance[rows],
        saving=saved[rows],
        left_out_chance=np.concatenate((chance[rest], of_bounds)),
        left_out_saving=np.concatenate((saved[rest], saving[bounds])),
        stands_for_others=np.arange(len(rest) + len(bounds)) >= len(rest),
    )


def left_out_bounds(choices: LadderSet, steps: int) -> list[float]:
    """Upper bounds of what up to 0 ... `steps` steps can save if at least one of them is left out of the set.

    As in `relaxed_savings`, with W_m(i) in place of W_{m-1}(i + 1) after a choice that stands for others as well. O is the
    same of sequences with a choice left out: a choice of the set is followed by O_{m-1} > 0 in place of W_{m-1}.
    """
    chance = np.concatenate((choices.chance, choices.left_out_chance))
    saving = np.concatenate((choices.saving, choices.left_out_saving))
    order = np.argsort(-saving, kind="stable")
    of_set = len(choices.chance)
    is_left_out = order >= of_set
    after = np.arange(1, len(order) + 1)
    after[is_left_out] -= choices.stands_for_others[order[is_left_out] - of_set]
    p, gain, bounds = chance[order], (chance * saving)[order], [0.0]
    every, with_one = np.zeros((2, len(order) + 1))
    for _ in range(steps):
        of_all = gain + (1.0 - p) * every[after]
        of_one = np.where(with_one[after] > 0.0, gain + (1.0 - p) * with_one[after], 0.0)
        with_one[:-1] = best_from_here(np.where(is_left_out, of_all, of_one))
        every[:-1] = best_from_here(of_all)
        bounds.append(float(with_one[0]))
    return bounds


def cell_key(market: int, cell: int) -> int:
    """One number for a cell of a market."""
    return market << 32 | cell


def _cells(candidates: Candidates, table: Configurations, at: Ints) -> Ints:
    """The cell of each of these rows, with its market."""
    cell = np.zeros(len(at), np.int64)
    for number, market in enumerate(candidates.question.markets):
        mine = table.market[at] == number
        cell[mine] = cell_key(number, 0) | market.snapshot.cell[table.place[at[mine]]].astype(np.int64)
    return cell


def _best_cells(cell: Ints, worth: Floats) -> Ints:
    """The cells with the configurations of most worth, ascending."""
    best: list[int] = []
    for i in np.argsort(-worth, kind="stable").tolist():
        if int(cell[i]) not in best:
            best.append(int(cell[i]))
        if len(best) == MOST_CELLS:
            break
    return np.array(sorted(best), np.int64)


def all_places(candidates: Candidates, cells: Ints) -> tuple[Configurations, Ints]:
    """Every allowed place of these cells at every node count, and the cells of which only the cheapest are there.

    Places that a cloud answered about are there in any case, and do not count among the cheapest.
    """
    parts, truncated = [candidates.table.take(np.zeros(0, np.int64))], []
    answered = answered_places(candidates)
    for number in np.unique(cells >> 32).tolist():
        market, screened = candidates.question.markets[number], candidates.screened[number]
        snapshot, places = market.snapshot, []
        is_answered = np.zeros(len(snapshot.cell), np.bool_)
        is_answered[answered.get(number, np.zeros(0, np.int64))] = True
        of_market = (cells[cells >> 32 == number] & 0xFFFFFFFF).astype(snapshot.cell.dtype)
        bounds = np.searchsorted(snapshot.cell, np.stack((of_market, of_market + 1), axis=1)).tolist()
        for cell, (low, high) in zip(of_market.tolist(), bounds, strict=True):
            among = np.arange(low, high)[screened.allowed[snapshot.group[low:high]]]
            others = among[~is_answered[among]]
            if len(others) > MOST_PLACES:
                truncated.append(cell_key(number, cell))
                among = np.sort(np.concatenate((among[is_answered[among]], others[:MOST_PLACES])))
            places.append(among)
        every = np.concatenate(places)
        of_cells = replace(screened, places=every, broken=np.zeros(len(every), np.uint32))
        costs, ready = candidates.costs[number], candidates.estimated[number]
        part = of_a_share(candidates.question, number, of_cells, ready, costs)
        parts.append(part.take(part.broken == 0).whole())
    return joined([part for part in parts if len(part)] or parts[:1]), np.array(truncated, np.int64)


def _undominated(candidates: Candidates, table: Configurations, ok: Ints, chance: Floats, saving: Floats) -> Ints:
    """The rows without those that another number of nodes in the same place makes useless.

    That is as cheap, as likely, and meets the deadline at as late a step: a ladder with the useless one saves no more than with
    the other in its stead, or without it.
    """
    position, gain = last_positions(candidates, table, ok), saving[ok].astype(np.int64)
    group = np.cumsum(np.diff(table.market[ok] << 32 | table.place[ok], prepend=-1) != 0)
    order = np.lexsort((-position, -gain, -chance[ok], group))
    # Those before a row in its place are as likely. Keys of a place are above those of the places before it.
    position, key = position[order], (group * (gain.max(initial=0) + 1) + gain)[order]
    useless = np.zeros(len(ok), np.bool_)
    for step in np.unique(position):
        best = np.maximum.accumulate(np.where(position >= step, key, -1))
        useless[1:] |= (position[1:] == step) & (best[:-1] >= key[1:])
    return np.sort(ok[order[~useless]])


def _thinned(candidates: Candidates, table: Configurations, ok: Ints, worth: Floats) -> Ints:
    """The rows of most worth: one per place, and a few per machine, region and price kind; then other numbers of nodes."""
    rows: list[int] = []
    others: list[int] = []
    seen: set[tuple[int, int]] = set()
    alike: dict[tuple[int, int, int, int], int] = {}
    for row in ok[np.argsort(-worth[ok], kind="stable")].tolist():
        number, place = int(table.market[row]), int(table.place[row])
        snapshot = candidates.question.markets[number].snapshot
        kind = (
            number,
            int(snapshot.type_index[place]),
            int(snapshot.region_index[place]),
            int(snapshot.kind_index[place]),
        )
        if (number, place) in seen or alike.get(kind, 0) == MOST_ALIKE:
            others.append(row)
            continue
        seen.add((number, place))
        alike[kind] = alike.get(kind, 0) + 1
        rows.append(row)
        if len(rows) == MOST_CHOICES:
            break
    return np.array(sorted((rows + others)[:MOST_CHOICES]), np.int64)
