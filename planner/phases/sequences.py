"""The orders that the phases of a plan may come in, and sets of columns on which no plan is cheap enough in any place.

What a move costs is the only thing that makes an offer dearer than one that it beats (`planner.phases.search`). So where
even plans that pay for no move are too dear on a set of columns, in no order and at no share, they are so on every offer
that the screen left out in their place, and the set needs no second look. Where two columns of a set are the same nodes of
the same machine, offers in place of the one may be those that the other beats: then either counts in place of both, too.
"""

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from planner.candidates.gather import Candidates
from planner.cost.bill import rises_with_preemption
from planner.phases.bounds import distinct
from planner.phases.columns import PhaseColumns, ranks
from planner.phases.moves import in_one_place
from planner.phases.shares import best_shares

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Sets compared in the first lot, by how much each following one is larger, and in the largest: what is found in the first
#: makes most of the others needless, and larger ones would take memory and gain nothing (each set may come in six orders).
_TOGETHER, _LARGER, _LARGEST = 256, 4, 2_048


def lots(order: Ints) -> Iterator[Ints]:
    """What comes in this order, a small lot first, then larger ones."""
    count = _TOGETHER
    while len(order):
        yield order[:count]
        order, count = order[count:], min(count * _LARGER, _LARGEST)


def in_order(columns: PhaseColumns, rank: Ints, sets: Ints) -> Ints:
    """Each set of columns in every order, that by rank first. What is up comes first or not at all."""
    by_rank = np.take_along_axis(sets, np.argsort(rank[sets], axis=1), axis=1)
    every = [by_rank[:, list(order)] for order in permutations(range(sets.shape[1]))]
    return first_if_up(columns, np.concatenate(every))


def first_if_up(columns: PhaseColumns, sequences: Ints) -> Ints:
    """The sequences in which what runs already comes first."""
    return sequences[~columns.up[sequences[:, 1:]].any(axis=1)]


def too_dear_anywhere(
    found: Candidates, columns: PhaseColumns, sets: Ints, bounds: NDArray[np.float64], most_micros: float
) -> Flags:
    """Sets on which no plan costs less than `most_micros`, though nothing be paid or waited for between places.

    Looked at in lots, the least `bounds` first, up to the first lot that holds a cheaper plan. Never marked are sets with
    windows, where a plan that begins a phase earlier may end later, and any at a confidence at which hours need not rise
    with preemption: there a plan without its moves, on the better offers, proves nothing.
    """
    marked, rank, alike = np.zeros(len(sets), np.bool_), ranks(found, columns), _alike(found, columns)
    if not rises_with_preemption(columns.confidence):
        return marked
    still, some = in_one_place(columns), np.flatnonzero(~columns.windowed[sets].any(axis=1))
    for lot in lots(some[np.argsort(bounds[some], kind="stable")]):
        sequences = in_order(columns, rank, _either_for_both(sets[lot], alike))
        if best_shares(columns, still, sequences, most_micros, any_will_do=True) is not None:
            break
        marked[lot] = True
    return marked


def _either_for_both(sets: Ints, alike: Ints) -> Ints:
    """The sets, and each with one of two columns that are `alike` in place of both."""
    for one, other in combinations(range(sets.shape[1]), 2):
        twins = sets[(alike[sets[:, one]] == alike[sets[:, other]]) & (sets[:, one] != sets[:, other])]
        first, second = twins.copy(), twins.copy()
        first[:, other], second[:, one] = twins[:, one], twins[:, other]
        sets = np.concatenate((sets, first, second))
    return distinct(np.sort(sets, axis=1), len(alike))


def _alike(found: Candidates, columns: PhaseColumns) -> Ints:
    """A number for each column: those have the same that the same offers may stand for (`planner.phases.wider`)."""
    table, cell = columns.table, np.arange(len(columns))
    for number, market in enumerate(found.question.markets):
        mine = np.flatnonzero(table.market == number)
        if not market.owned and market.up is None:
            cell[mine] = market.snapshot.cell[table.place[mine]]
    alone = np.array([bool(each.owned) or each.up is not None for each in found.question.markets])[table.market]
    key = np.stack((table.market, cell, np.where(alone, -1, table.nodes)), axis=1)
    return np.asarray(np.unique(key, axis=0, return_inverse=True)[1].reshape(-1))
