"""The offers that the screen left out, looked at again for the sequences in which a move might pay for them.

A plan on offers left out costs at least what the same plan costs on the offers that beat them, without its moves. So
only sequences of screened columns whose bound without moves lies below the best plan matter, and of those only the ones
that move between regions: where nothing moves, the screened offers are no dearer at any share.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.candidates.configurations import Configurations, joined, of_a_share
from planner.candidates.gather import Candidates
from planner.phases.bounds import Shortlist, distinct, pair_usd, triple_usd
from planner.phases.columns import PhaseColumns, phase_columns
from planner.phases.straight import Straight, least_of_few

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Sets that are looked at again together: each may stand for thousands, of as many offers in place of each of its columns.
AGAIN_TOGETHER = 64
#: Sets that are looked at again at most: some seconds' work. Most jobs leave a few, some leave thousands.
MOST_AGAIN = 16_384
#: Sets with offers left out that are bounded at once: some tens of MB.
_WAYS_TOGETHER = 250_000


def wider(
    found: Candidates, columns: PhaseColumns, sets: Ints, upper_usd: float, *, mu: float, ordered: bool
) -> tuple[PhaseColumns, Shortlist] | None:
    """The sets with offers in place of those that beat them, of bounds below `upper_usd`; None if nothing moves.

    `sets` index `columns` and have bounds below `upper_usd` themselves; `ordered` ones stay in their order. `mu` is the
    price of an hour at the deadline.
    """
    if not len(sets):
        return None
    listed = Shortlist(sets.shape[1])
    used, which = np.unique(sets, return_inverse=True)
    table, stands_for = _same_machines(found, columns.table.take(used))
    more = phase_columns(found, table)
    first = np.searchsorted(stands_for, np.arange(len(used) + 1))
    lines, sets = more.lines, which.reshape(sets.shape)
    offer, at, count = _open(lines, sets, first, upper_usd, mu)
    for some in _lots(count.prod(axis=1)):
        go_on()
        every = _every_way(sets[some], offer, at[some], count[some])
        every = every[_weighed(lines, every, mu) < upper_usd]
        every = distinct(every if ordered else np.sort(every, axis=1), len(table))
        usd = pair_usd(lines, every[:, 0], every[:, 1]) if every.shape[1] == 2 else triple_usd(lines, every)
        usd += brought_apart(more, every)
        listed.add(every[usd < upper_usd], usd[usd < upper_usd])
    return more, listed


def _lots(ways: Ints) -> list[Ints]:
    """Sets that stand for so many each, in their order, in lots of `_WAYS_TOGETHER` but for one set's."""
    return np.split(np.arange(len(ways)), np.flatnonzero(np.diff(np.cumsum(ways) // _WAYS_TOGETHER)) + 1)


def that_move(columns: PhaseColumns, sets: Ints) -> NDArray[np.bool_]:
    """Which sets have columns that do not all stand in one region."""
    return np.asarray((columns.place[sets] != columns.place[sets[:, :1]]).any(axis=1))


def brought_apart(columns: PhaseColumns, sets: Ints) -> Floats:
    """What bringing the data to each distinct region of a set costs beyond the dearest of them, which bounds count."""
    if not columns.data_usd.any():
        return np.zeros(len(sets))
    place, data = columns.place[sets], columns.data_usd[sets]
    earlier = [(place[:, :i] == place[:, i : i + 1]).any(axis=1) for i in range(sets.shape[1])]
    return np.asarray(np.where(np.stack(earlier, axis=1), 0.0, data).sum(axis=1) - data.max(axis=1))


def _same_machines(found: Candidates, columns: Configurations) -> tuple[Configurations, Ints]:
    """Per configuration the same nodes of the same machine at every allowed offer of its kind and provider, one after the other.

    With the number of the configuration that each stands for, ascending; `columns` are in the order of their markets.
    """
    parts, stands_for, before = [], [], 0
    for number in np.unique(columns.market).tolist():
        market = found.question.markets[number]
        mine = columns.take(np.flatnonzero(columns.market == number))
        if market.owned or market.up:
            parts.append(mine)
            stands_for.append(before + np.arange(len(mine)))
        else:
            cell = market.snapshot.cell
            every = _every_lead(found, number, np.unique(cell[mine.place]))
            many = int(max(every.nodes.max(initial=0), mine.nodes.max())) + 1
            key = cell[every.place].astype(np.int64) * many + every.nodes
            order, asked = np.argsort(key, kind="stable"), cell[mine.place].astype(np.int64) * many + mine.nodes
            first, last = (np.searchsorted(key[order], asked, side) for side in ("left", "right"))
            rows = [order[low:high] for low, high in zip(first.tolist(), last.tolist(), strict=True)]
            parts.append(every.take(np.concatenate(rows)))
            stands_for.append(np.repeat(before + np.arange(len(mine)), last - first))
        before += len(mine)
    return joined(parts), np.concatenate(stands_for)


def _every_lead(found: Candidates, number: int, cells: NDArray[np.int32]) -> Configurations:
    """The cheapest of all allowed offers that are alike but for zone and price, in some cells, at every node count."""
    snapshot, screened = found.question.markets[number].snapshot, found.screened[number]
    first, last = np.searchsorted(snapshot.cell, cells), np.searchsorted(snapshot.cell, cells, "right")
    places = np.concatenate([np.arange(low, high) for low, high in zip(first.tolist(), last.tolist(), strict=True)])
    group = snapshot.group[places]
    places = places[screened.allowed[group] & (snapshot.lead[group] == places)]
    there = replace(screened, places=places, broken=np.zeros(len(places), np.uint16))
    table = of_a_share(found.question, number, there, found.estimated[number], found.costs[number])
    return table.take(table.broken == 0)


def _open(lines: Straight, sets: Ints, first: Ints, upper_usd: float, mu: float) -> tuple[Ints, Ints, Ints]:
    """The offers that may stand for each column of each set (those of column k are `first[k]` to `first[k + 1]`).

    That is, beside the least that the others of the set can be: an offer that is too dear beside those is so beside any.
    All of them one after the other, the sets in rows, and where those of each column of each set begin and how many
    there are.
    """
    start, whole, late = _at(lines, mu)
    # The element more is that of columns for which nothing may stand.
    starts, wholes, data = (
        np.minimum.reduceat(np.append(each, np.inf), first[:-1])[sets] for each in (start, whole, lines.data_usd)
    )
    count = np.diff(first)[sets].reshape(-1)
    before = np.cumsum(count) - count
    place = np.repeat(np.arange(sets.size), count)
    offer = np.arange(len(place)) + np.repeat(first[sets].reshape(-1) - before, count)
    others = np.stack([least_of_few(wholes, side) for side in range(sets.shape[1])], axis=1)
    beside_usd, brought = (
        starts.sum(axis=1, keepdims=True) - starts,
        data.max(axis=1, keepdims=True) + np.zeros_like(data),
    )
    least = start[offer] + beside_usd.reshape(-1)[place] + np.minimum(whole[offer], others.reshape(-1)[place])
    least += np.maximum(lines.data_usd[offer], brought.reshape(-1)[place]) - late
    kept = _a_little_less(least) < upper_usd
    count = np.bincount(place[kept], minlength=sets.size)
    return offer[kept], (np.cumsum(count) - count).reshape(sets.shape), count.reshape(sets.shape)


def _every_way(sets: Ints, offer: Ints, first: Ints, count: Ints) -> Ints:
    """Each set with every offer in place of each of its columns, which begin at `first` and are `count`."""
    ways = count.prod(axis=1)
    which = np.repeat(np.arange(len(sets)), ways)
    left = np.arange(len(which)) - np.repeat(np.cumsum(ways) - ways, ways)
    every = np.empty((len(which), sets.shape[1]), np.int64)
    for side in reversed(range(sets.shape[1])):
        every[:, side] = offer[first[which, side] + left % count[which, side]]
        left //= count[which, side]
    return every


def _weighed(lines: Straight, sets: Ints, mu: float) -> Floats:
    """The least that plans on these sets cost by one price of an hour, in USD: the bound that takes least to work out."""
    start, whole, late = _at(lines, mu)
    least = start[sets].sum(axis=1) + least_of_few(whole[sets]) + lines.data_usd[sets].max(axis=1) - late
    return _a_little_less(least)


def _at(lines: Straight, mu: float) -> tuple[Floats, Floats, float]:
    """To start and to do all the work on each column at a price of an hour, and what the hours up to the deadline are worth."""
    start, whole = lines.fixed_usd + mu * lines.fixed_hours, lines.slope_usd + mu * lines.slope_hours
    return start, whole, mu * lines.deadline_hours if mu else 0.0


def _a_little_less(usd: Floats) -> Floats:
    """So that rounding takes nothing away that the sharper bound allows."""
    return np.asarray(usd - 1e-9 * np.abs(usd))
