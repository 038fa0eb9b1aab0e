"""The cheapest plan of two phases, exactly: bounds leave few pairs of columns, and their best shares are computed.

1. Linear bounds on cost alone show for most jobs that a second phase saves nothing. Linear bounds on cost and hours,
   weighed by the price of an hour at the deadline, show it for most of the others.
2. The bounds at other prices of an hour leave the columns that can matter at all. All pairs of these whose bound lies
   below the best plan so far get their best shares.

The search compares both orders of a pair. The order decides which machines write a checkpoint at their end, and between
which regions the run moves. Of orders that cost the same, the interruptible phase comes first, then the slower one. So
the plan starts cheap and slow and ends dear and fast, and tries interruptible machines while time is left. Machines that
run the job already come first, or not at all.

Of plans that cost the same to the micro-dollar the first one stays. Pairs are compared in the order of their bounds,
and pairs of equal bounds in the order of the candidate table.

Dominated offers: within a cell (same machine, price kind and provider) the dominated offer is no cheaper per hour, in
storage, in data egress or in preemption. So in any plan the offer that dominates it costs no more at every share and
takes no longer; only the move to or from its region may be dearer. Hence a plan on dominated offers costs at least as
much as the same plan on screened offers without its move. `dominated_offer_recheck` checks the pairs again whose bound
without their move lies below the best, with the dominated offers in their place.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.strategies.phased.dominated_offer_recheck import (
    AGAIN_TOGETHER,
    MOST_AGAIN,
    brought_apart,
    dominated_offers_recheck,
    that_move,
)
from gpuplan.planner.strategies.phased.linear_bounds import Lined, lined
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS, LinearUnderestimator
from gpuplan.planner.strategies.phased.migration_costs import Moves, moves
from gpuplan.planner.strategies.phased.phase_bounds import hour_price, hour_prices, pairs_below, worthwhile
from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns, columns_on, ranks
from gpuplan.planner.strategies.phased.sequence_linear_bounds import least_usd
from gpuplan.planner.strategies.phased.work_shares import BestShares, best_shares

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Pairs compared in a batch: larger ones take more memory and save nothing.
PAIRS_TOGETHER = 2_048
#: More pairs than these take longer to compare than the cheapest plan with a standby, which excludes most of them, takes to find.
_MANY_PAIRS = 1_000
#: Rounding to whole micro-dollars, per phase, in USD.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Phased:
    """The cheapest plan of two phases; its columns index `columns`, the configurations of the last comparison."""

    columns: PhaseColumns
    moving: Moves
    plan: BestShares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """The result of the search, and how far it went.

    `sequences` were priced. No pair that was dropped to limit memory or time costs less than `left_usd`. `open_` are the
    linear bounds of the columns that may be part of a plan cheaper than the best; all other columns are in dearer plans only.
    Shares between the steps might save up to `finer_usd`, apart from the rounding of bills.
    """

    best: Phased | None
    sequences: int
    open_: LinearUnderestimator | None
    left_usd: float = np.inf
    finer_usd: float = 0.0


NOTHING_TO_SEARCH = Searched(best=None, sequences=0, open_=None)


def cheapest_in_phases(candidates: Candidates, most_micros: float) -> Phased | None:
    """The cheapest plan of two phases within the deadline below `most_micros`, or None if there is none."""
    return search_phases(candidates, most_micros).best


def search_phases(
    candidates: Candidates, most_micros: float, other_micros: Callable[[], float] | None = None
) -> Searched:
    """The same plan, with how far the search went. Where many pairs are left, it must cost less than `other_micros` too."""
    job = candidates.question.job
    if job.budget_usd is not None:
        most_micros = min(most_micros, np.floor(job.budget_usd * 1e6 * (1 + 1e-15)) + 1)
    if job.constraints.max_phases < 2 or len(candidates.shares) < 2:
        return NOTHING_TO_SEARCH
    every = lined(candidates, candidates.shares)
    # Most jobs end here.
    if least_usd(every) >= _below_usd(most_micros):
        return NOTHING_TO_SEARCH
    mu = hour_price(every.linear_bounds)
    if mu is None:
        return NOTHING_TO_SEARCH
    search = _Search(candidates=candidates, every=every, mu=mu, most_micros=most_micros, other_micros=other_micros)
    columns = search.worthwhile()
    if not len(columns):
        return NOTHING_TO_SEARCH
    search.try_all(columns)
    left = search.open_lines()
    search.try_dominated()
    return Searched(
        best=search.best,
        sequences=search.compared,
        open_=left,
        left_usd=search.left_usd,
        finer_usd=search.between_steps_usd(),
    )


class _Open(NamedTuple):
    """Pairs of these columns whose bounds, in USD, lie below the limit of the search."""

    columns: PhaseColumns
    pairs: Ints
    bounds: Floats


@dataclass(slots=True, kw_only=True)
class _Search:
    """The best plan so far, how many sequences were compared, and a lower bound on the cost of dropped pairs."""

    candidates: Candidates
    every: Lined
    mu: float
    most_micros: float
    other_micros: Callable[[], float] | None = None
    best: Phased | None = None
    compared: int = 0
    left_usd: float = np.inf
    open_: _Open | None = None
    known: set[bytes] = field(default_factory=set)

    @property
    def upper_usd(self) -> float:
        """The cost in USD that a better plan must stay below, with room for rounding."""
        return _below_usd(self._best_micros)

    @property
    def _best_micros(self) -> float:
        """The cost of the best plan so far, or the limit where there is none."""
        return self.most_micros if self.best is None else self.best.plan.micros

    def worthwhile(self) -> Ints:
        """The columns that some plan of two phases below the limit may use."""
        upper = self.upper_usd
        # The price at the deadline excludes most columns. The others filter what is left.
        columns = np.flatnonzero(worthwhile(self.every.linear_bounds, np.array([self.mu]), upper))
        if not len(columns):
            return columns
        prices = hour_prices(self.every.linear_bounds, self.mu, upper)
        return columns[_by_migration_class(self.every.linear_bounds.take(columns), prices, upper)]

    def try_all(self, columns: Ints) -> None:
        """Compare every pair of these columns whose bound lies below the best plan so far."""
        linear_bounds = self.every.linear_bounds.take(columns)
        listed = pairs_below(linear_bounds, self.upper_usd)
        if len(listed.pairs) > _MANY_PAIRS and self.other_micros is not None:
            self.most_micros = min(self.most_micros, self.other_micros())
            listed = pairs_below(linear_bounds, self.upper_usd)
        self.left_usd = min(self.left_usd, listed.left_usd)
        if len(listed.pairs):
            used, pairs = _used(listed.pairs)
            self.open_ = _Open(columns_on(self.candidates, self.every.take(columns[used])), pairs, listed.usd)
            self._compare(*self.open_)

    def open_lines(self) -> LinearUnderestimator | None:
        """The linear bounds of every column in a pair whose bound lies below the best plan, each once."""
        if self.open_ is None:
            return None
        which = np.unique(self.open_.pairs[self.open_.bounds < self.upper_usd])
        if not len(which):
            return None
        return self.open_.columns.linear_bounds.take(which)

    def between_steps_usd(self) -> float:
        """An upper bound on what shares between the steps may save, in USD, apart from the rounding of bills.

        Moving less than a step from the slower phase to the faster turns any plan into one of whole steps that is no slower.
        This costs at most one step on the faster phase. No plan costs less than the bound of its pair.
        """
        if self.open_ is None:
            return 0.0
        step_usd = self.open_.columns.slope_usd[self.open_.pairs].max(axis=1) * (1 / STEPS)
        return float(np.minimum(step_usd, self.upper_usd - self.open_.bounds).max(initial=0.0))

    def try_dominated(self) -> None:
        """Compare dominated offers, in the pairs that lie below the best plan without their moves."""
        if self.open_ is None:
            return
        columns, pairs, bounds = self.open_
        some = np.flatnonzero((bounds < self.upper_usd) & that_move(columns, pairs))
        some = some[np.argsort(bounds[some], kind="stable")]
        for first in range(0, len(some), AGAIN_TOGETHER):
            offer_group = some[first : first + AGAIN_TOGETHER]
            offer_group = offer_group[bounds[offer_group] < self.upper_usd]
            if not len(offer_group):
                return
            if first >= MOST_AGAIN:
                self.left_usd = min(self.left_usd, float(bounds[offer_group[0]]))
                return
            go_on()
            self._again(columns, pairs[offer_group])

    def _again(self, columns: PhaseColumns, pairs: Ints) -> None:
        """Compare these pairs with dominated offers in place of their own."""
        again = dominated_offers_recheck(self.candidates, columns, pairs, self.upper_usd, mu=self.mu)
        if again is None:
            return
        dominated, listed = again
        self.left_usd = min(self.left_usd, listed.left_usd)
        new = self._new(_names(dominated.table), listed.pairs)
        if new.any():
            used, which = _used(listed.pairs[new])
            self._compare(dominated.take(used), which, listed.usd[new])

    def _new(self, names: Ints, pairs: Ints) -> Flags:
        """The pairs that have not been compared: those that have cannot improve the best plan."""
        return np.array([row not in self.known for row in _rows(names, pairs)], np.bool_)

    def _compare(self, columns: PhaseColumns, pairs: Ints, bounds: Floats) -> None:
        """Find the best shares of these pairs of columns, in both orders, the least bounds first."""
        bounds = bounds + brought_apart(columns, pairs)
        below = bounds < self.upper_usd
        if not below.any():
            return
        if not below.all():
            used, pairs = _used(pairs[below])
            columns, bounds = columns.take(used), bounds[below]
        rank, moving, names = ranks(self.candidates, columns), moves(columns), _names(columns.table)
        order = np.argsort(bounds, kind="stable")
        for begin in range(0, len(order), PAIRS_TOGETHER):
            now = order[begin : begin + PAIRS_TOGETHER]
            now = now[bounds[now] < self.upper_usd]
            if not len(now):
                return
            sequences = _in_order(columns, rank, pairs[now])
            self.compared += len(sequences)
            better = best_shares(columns, moving, sequences, self._best_micros)
            if better is not None:
                self.best = Phased(columns=columns, moving=moving, plan=better)
            if better is None or not better.unsaved:
                self.known.update(_rows(names, pairs[now]))


def _in_order(columns: PhaseColumns, rank: Ints, pairs: Ints) -> Ints:
    """Each pair of columns in both orders, the order by rank first. A column that is up comes first or not at all."""
    by_rank = np.take_along_axis(pairs, np.argsort(rank[pairs], axis=1), axis=1)
    sequences = np.concatenate((by_rank, by_rank[:, ::-1]))
    return sequences[~columns.up[sequences[:, 1]]]


def _below_usd(micros: float) -> float:
    """The linear bound, in USD, below which a plan may cost less than `micros`, with room for rounding."""
    return micros / 1e6 + 3 * _ROUNDING


def _by_migration_class(linear_bounds: LinearUnderestimator, prices: Floats, upper_usd: float) -> Ints:
    """Columns that some plan of two phases may use, by both bounds of each, with others of their migration class."""
    parts = []
    for migration_class in sorted(set(linear_bounds.migration_class.tolist())):
        mine = np.flatnonzero(linear_bounds.migration_class == migration_class)
        mine = mine[worthwhile(linear_bounds.take(mine), prices, upper_usd)]
        among = linear_bounds.take(mine)
        if len(mine) and among.bent:
            mine = mine[worthwhile(among.early, prices, upper_usd)]
        # A plan needs at least two of them.
        parts.append(mine if len(mine) > 1 else mine[:0])
    return np.sort(np.concatenate(parts))


def _used(pairs: Ints) -> tuple[Ints, Ints]:
    """The columns that occur in these pairs, and the pairs as indices into those columns."""
    used, which = np.unique(pairs, return_inverse=True)
    return used, which.reshape(pairs.shape)


def _names(table: Configurations) -> Ints:
    """A number for each configuration that is the same in every table."""
    return np.asarray((table.market << 52) + (table.place << 20) + table.nodes)


def _rows(names: Ints, pairs: Ints) -> list[bytes]:
    """One key per pair, the same in either order."""
    named = np.sort(names[pairs], axis=1)
    whole, wide = named.tobytes(), named.itemsize * 2
    return [whole[begin : begin + wide] for begin in range(0, len(whole), wide)]
