"""The two orders of a pair of columns, and pairs on which no plan is cheap enough in any region.

Only the cost of a move makes an offer dearer than one that it dominates (see `phase_search`). So if even plans without
the cost of a move are too dear on a pair of columns, in both orders and at every share, they are too dear on every
dominated offer in their place, and the pair needs no second check. Where both columns of a pair are the same nodes of the
same machine, the offers that replace one may be those that the other dominates: then either column also counts in place
of both.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.cost.cost_breakdown import rises_with_preemption
from gpuplan.planner.strategies.phased.migration_costs import in_one_place
from gpuplan.planner.strategies.phased.phase_bounds import distinct
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, ranks
from gpuplan.planner.strategies.phased.work_shares import best_shares

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Pairs compared in the first batch, the growth factor of the following ones, and the largest batch. A good plan from the
#: first batch excludes most of the others; larger batches take more memory and save nothing.
_TOGETHER, _LARGER, _LARGEST = 256, 4, 2_048


def offer_groups(order: Ints) -> Iterator[Ints]:
    """The elements in this order, a small batch first, then larger ones."""
    count = _TOGETHER
    while len(order):
        yield order[:count]
        order, count = order[count:], min(count * _LARGER, _LARGEST)


def in_order(columns: PhaseColumns, rank: Ints, pairs: Ints) -> Ints:
    """Each pair of columns in both orders, the order by rank first. A column that is up comes first or not at all."""
    by_rank = np.take_along_axis(pairs, np.argsort(rank[pairs], axis=1), axis=1)
    sequences = np.concatenate((by_rank, by_rank[:, ::-1]))
    return sequences[~columns.up[sequences[:, 1]]]


def too_dear_anywhere(
    candidates: Candidates, columns: PhaseColumns, pairs: Ints, bounds: NDArray[np.float64], most_micros: float
) -> Flags:
    """Pairs on which no plan costs less than `most_micros`, even if moves were free and instant.

    Pairs are compared in batches, the least `bounds` first, up to the first batch that holds a cheaper plan. Two kinds of
    pairs are never marked: pairs with windows, where a plan that begins a phase earlier may end later, and all pairs at a
    confidence at which hours need not rise with preemption. There, a plan without moves proves nothing.
    """
    marked, rank, alike = np.zeros(len(pairs), np.bool_), ranks(candidates, columns), _alike(candidates, columns)
    if not rises_with_preemption(columns.confidence):
        return marked
    still, some = in_one_place(columns), np.flatnonzero(~columns.windowed[pairs].any(axis=1))
    for offer_group in offer_groups(some[np.argsort(bounds[some], kind="stable")]):
        sequences = in_order(columns, rank, _either_for_both(pairs[offer_group], alike))
        if best_shares(columns, still, sequences, most_micros, any_will_do=True) is not None:
            break
        marked[offer_group] = True
    return marked


def _either_for_both(pairs: Ints, alike: Ints) -> Ints:
    """The pairs, and for pairs of two columns that are `alike` also each column in place of both."""
    one, other = pairs.T
    twins = pairs[(alike[one] == alike[other]) & (one != other)]
    doubled = [np.repeat(twins[:, [side]], 2, axis=1) for side in (0, 1)]
    return distinct(np.sort(np.concatenate((pairs, *doubled)), axis=1), len(alike))


def _alike(candidates: Candidates, columns: PhaseColumns) -> Ints:
    """A number per column, equal for columns that the same offers can replace (see `dominated_offer_recheck`)."""
    table, cell = columns.table, np.arange(len(columns))
    for number, market in enumerate(candidates.question.markets):
        mine = np.flatnonzero(table.market == number)
        if not market.owned and market.up is None:
            cell[mine] = market.snapshot.cell[table.place[mine]]
    alone = np.array([bool(market.owned) or market.up is not None for market in candidates.question.markets])[
        table.market
    ]
    key = np.stack((table.market, cell, np.where(alone, -1, table.nodes)), axis=1)
    return np.asarray(np.unique(key, axis=0, return_inverse=True)[1].reshape(-1))
