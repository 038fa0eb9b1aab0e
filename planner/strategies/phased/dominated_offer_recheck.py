"""A second check of dominated offers, for pairs of columns in which a cheaper move might pay for them.

A plan on dominated offers costs at least as much as the same plan on the offers that dominate them, without its move. So
only pairs of screened columns matter whose bound without moves lies below the best plan. Of those only pairs of two
regions matter: within a region the screened offers are no dearer at any share.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations, joined, of_a_share
from gpuplan.planner.strategies.phased.linear_underestimators import LinearUnderestimator
from gpuplan.planner.strategies.phased.phase_bounds import Shortlist, distinct, pair_usd
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, phase_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Pairs that are checked again together: each may expand to thousands, with as many offers in place of both its columns.
AGAIN_TOGETHER = 256
#: The most pairs that are checked again: some seconds' work. Most jobs leave a few, some leave thousands.
MOST_AGAIN = 16_384
#: Pairs of dominated offers that are bounded at once: some tens of MB.
_WAYS_TOGETHER = 250_000


def dominated_offers_recheck(
    candidates: Candidates, columns: PhaseColumns, pairs: Ints, upper_usd: float, *, mu: float
) -> tuple[PhaseColumns, Shortlist] | None:
    """The pairs with dominated offers in place of their own, where the bound lies below `upper_usd`; None without pairs.

    `pairs` index `columns` and have bounds below `upper_usd` themselves. `mu` is the price of an hour at the deadline.
    """
    if not len(pairs):
        return None
    listed = Shortlist()
    used, which = np.unique(pairs, return_inverse=True)
    table, stands_for = _same_machines(candidates, columns.table.take(used))
    dominated = phase_columns(candidates, table)
    first = np.searchsorted(stands_for, np.arange(len(used) + 1))
    linear_bounds, pairs = dominated.linear_bounds, which.reshape(pairs.shape)
    offer, at, count = _open(linear_bounds, pairs, first, upper_usd, mu)
    for some in _offer_groups(count.prod(axis=1)):
        go_on()
        every = _every_way(offer, at[some], count[some])
        every = distinct(np.sort(every, axis=1), len(table))
        usd = pair_usd(linear_bounds, every[:, 0], every[:, 1]) + brought_apart(dominated, every)
        listed.add(every[usd < upper_usd], usd[usd < upper_usd])
    return dominated, listed


def _offer_groups(ways: Ints) -> list[Ints]:
    """Pairs that expand to `ways` pairs each, in their order, in batches of `_WAYS_TOGETHER`, or of one larger pair."""
    return np.split(np.arange(len(ways)), np.flatnonzero(np.diff(np.cumsum(ways) // _WAYS_TOGETHER)) + 1)


def that_move(columns: PhaseColumns, pairs: Ints) -> NDArray[np.bool_]:
    """Which pairs have columns in two regions."""
    return np.asarray(columns.place[pairs[:, 0]] != columns.place[pairs[:, 1]])


def brought_apart(columns: PhaseColumns, pairs: Ints) -> Floats:
    """The data egress to the cheaper of a pair's two regions: the bounds count only that to the dearer one."""
    if not columns.data_usd.any():
        return np.zeros(len(pairs))
    return np.where(that_move(columns, pairs), columns.data_usd[pairs].min(axis=1), 0.0)


def _same_machines(candidates: Candidates, columns: Configurations) -> tuple[Configurations, Ints]:
    """Per configuration, the same nodes of the same machine at every allowed offer of its kind and provider, concatenated.

    Also returns, ascending, the number of the configuration that each of them replaces. `columns` are sorted by market.
    """
    parts, stands_for, before = [], [], 0
    for number in np.unique(columns.market).tolist():
        market = candidates.question.markets[number]
        mine = columns.take(np.flatnonzero(columns.market == number))
        if market.owned or market.up:
            parts.append(mine)
            stands_for.append(before + np.arange(len(mine)))
        else:
            cell = market.snapshot.cell
            every = _every_lead(candidates, number, np.unique(cell[mine.place]))
            radix = int(max(every.nodes.max(initial=0), mine.nodes.max())) + 1
            key = cell[every.place].astype(np.int64) * radix + every.nodes
            order, asked = np.argsort(key, kind="stable"), cell[mine.place].astype(np.int64) * radix + mine.nodes
            first, last = (np.searchsorted(key[order], asked, side) for side in ("left", "right"))
            rows = [order[low:high] for low, high in zip(first.tolist(), last.tolist(), strict=True)]
            parts.append(every.take(np.concatenate(rows)))
            stands_for.append(np.repeat(before + np.arange(len(mine)), last - first))
        before += len(mine)
    return joined(parts), np.concatenate(stands_for)


def _every_lead(candidates: Candidates, number: int, cells: NDArray[np.int32]) -> Configurations:
    """The cheapest of all allowed offers that differ only in zone and price, in some cells, at every node count."""
    snapshot, screened = candidates.question.markets[number].snapshot, candidates.screened[number]
    first, last = np.searchsorted(snapshot.cell, cells), np.searchsorted(snapshot.cell, cells, "right")
    places = np.concatenate([np.arange(low, high) for low, high in zip(first.tolist(), last.tolist(), strict=True)])
    group = snapshot.group[places]
    places = places[screened.allowed[group] & (snapshot.lead[group] == places)]
    leads = replace(screened, places=places, broken=np.zeros(len(places), np.uint32))
    table = of_a_share(candidates.question, number, leads, candidates.estimated[number], candidates.costs[number])
    return table.take(table.broken == 0)


def _open(
    linear_bounds: LinearUnderestimator, pairs: Ints, first: Ints, upper_usd: float, mu: float
) -> tuple[Ints, Ints, Ints]:
    """The offers that may replace each column of each pair (those of column k are `first[k]` to `first[k + 1]`).

    An offer is left out if it is too dear beside the cheapest offer for the other column. Returns all offers concatenated,
    and with the pairs in rows, where the offers of each column of each pair begin and how many there are.
    """
    start, whole, late = _at(linear_bounds, mu)
    # The additional element is for columns without any offer.
    starts, wholes, data = (
        np.minimum.reduceat(np.append(values, np.inf), first[:-1])[pairs]
        for values in (start, whole, linear_bounds.data_usd)
    )
    count = np.diff(first)[pairs].reshape(-1)
    before = np.cumsum(count) - count
    place = np.repeat(np.arange(pairs.size), count)
    offer = np.arange(len(place)) + np.repeat(first[pairs].reshape(-1) - before, count)
    beside_usd, beside_whole = (least[:, ::-1].reshape(-1)[place] for least in (starts, wholes))
    brought = np.repeat(data.max(axis=1), 2)[place]
    least = start[offer] + beside_usd + np.minimum(whole[offer], beside_whole)
    least += np.maximum(linear_bounds.data_usd[offer], brought) - late
    is_open = _a_little_less(least) < upper_usd
    count = np.bincount(place[is_open], minlength=pairs.size)
    return offer[is_open], (np.cumsum(count) - count).reshape(pairs.shape), count.reshape(pairs.shape)


def _every_way(offer: Ints, first: Ints, count: Ints) -> Ints:
    """Each pair with every offer in place of each of its columns; these offers begin at `first` and number `count`."""
    ways = count.prod(axis=1)
    which = np.repeat(np.arange(len(ways)), ways)
    left = np.arange(len(which)) - np.repeat(np.cumsum(ways) - ways, ways)
    second = count[which, 1]
    return np.stack((offer[first[which, 0] + left // second], offer[first[which, 1] + left % second]), axis=1)


def _at(linear_bounds: LinearUnderestimator, mu: float) -> tuple[Floats, Floats, float]:
    """Cost of starting and of all the work on each column at a price of an hour, and the value of the hours to the deadline."""
    start, whole = (
        linear_bounds.fixed_usd + mu * linear_bounds.fixed_hours,
        linear_bounds.slope_usd + mu * linear_bounds.slope_hours,
    )
    return start, whole, mu * linear_bounds.deadline_hours if mu else 0.0


def _a_little_less(usd: Floats) -> Floats:
    """A bound lowered so that rounding excludes nothing that the exact bound allows."""
    return np.asarray(usd - 1e-9 * np.abs(usd))
