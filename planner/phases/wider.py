"""The offers that the screen left out, looked at again for the sequences in which a move might pay for them.

A plan on offers left out costs at least what the same plan costs on the offers that beat them, without its moves. So
only sequences of screened columns whose bound without moves lies below the best plan matter, and of those only the ones
that move between regions: where nothing moves, the screened offers are no dearer at any share.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from planner.candidates.configurations import Configurations, joined
from planner.candidates.gather import Candidates, every_offer_of
from planner.phases.bounds import pair_usd, triple_usd
from planner.phases.columns import PhaseColumns, phase_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Sequences that are looked at again one by one; more of them are said to be left, never silently.
MOST_AGAIN = 64


def wider(
    found: Candidates, columns: PhaseColumns, sets: Ints, upper_usd: float, *, ordered: bool
) -> tuple[PhaseColumns, Ints, Floats] | None:
    """The sets with offers in place of those that beat them, and their bounds below `upper_usd`; None if nothing moves.

    `sets` index `columns` and have bounds below `upper_usd` themselves; `ordered` ones stay in their order.
    """
    if not len(sets):
        return None
    names: dict[int, range] = {}
    parts: list[Configurations] = []
    for column in np.unique(sets).tolist():
        each = _same_machine(found, columns.table.take(np.array([column])))
        first = sum(len(part) for part in parts)
        names[column] = range(first, first + len(each))
        parts.append(each)
    table = joined(parts)
    # What is bought is worked out market by market.
    by_market = np.argsort(table.market, kind="stable")
    at = np.empty(len(table), np.int64)
    at[by_market] = np.arange(len(table))
    more = phase_columns(found, table.take(by_market))
    chosen = [np.array(list(product(*(names[column] for column in row)))) for row in sets.tolist()]
    every = at[np.concatenate(chosen)]
    every = np.unique(every if ordered else np.sort(every, axis=1), axis=0)
    usd = pair_usd(more.lines, every[:, 0], every[:, 1]) if every.shape[1] == 2 else triple_usd(more.lines, every)
    usd += brought_apart(more, every)
    return more, every[usd < upper_usd], usd[usd < upper_usd]


def that_move(columns: PhaseColumns, sets: Ints) -> Ints:
    """The sets whose columns do not all stand in one region."""
    return np.asarray(sets[(columns.place[sets] != columns.place[sets[:, :1]]).any(axis=1)])


def brought_apart(columns: PhaseColumns, sets: Ints) -> Floats:
    """What bringing the data to each distinct region of a set costs beyond the dearest of them, which bounds count."""
    place, data = columns.place[sets], columns.data_usd[sets]
    earlier = [(place[:, :i] == place[:, i : i + 1]).any(axis=1) for i in range(sets.shape[1])]
    return np.asarray(np.where(np.stack(earlier, axis=1), 0.0, data).sum(axis=1) - data.max(axis=1))


def _same_machine(found: Candidates, one: Configurations) -> Configurations:
    """A configuration, and the same nodes of the same machine at every other allowed offer of its kind and provider."""
    market, place = int(one.market[0]), int(one.place[0])
    snapshot = found.question.markets[market].snapshot
    if found.question.markets[market].owned or found.question.markets[market].up:
        return one
    every = every_offer_of(found, market, place)
    leads = snapshot.lead[snapshot.group[every.place]] == every.place
    return every.take((every.nodes == one.nodes[0]) & leads)
