"""Cuts: inequalities that every plan satisfies and that the linear relaxation violates.

Under a slot's capacity the relaxation can run half a job now and half of it later, beside other jobs that leave no room
for the whole. For a pool with b units, a grain g > 0, an interval I of slots and one job J:
    sum over columns i of other jobs in use in all of I of floor(u_i / g) x_i
      + sum over columns i of J in use in any slot of I of (floor(b / g) - floor((b - u_i) / g)) x_i  <=  floor(b / g)
holds in every plan. If J runs in I, take a slot in which it runs: the others that are in use in all of I run there too,
and fit into b - u_i, hence into floor((b - u_i) / g) grains. If J does not run in I, the others fit into b. For g = b =
1 these are the inequalities of Sousa and Wolsey (1992) for one machine; rounding by grains carries them to many units,
where several jobs are in use at once. b is the largest capacity in I.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import ROUNDING, Columns, Floats, Instance, Ints

#: A cut needs a violation of at least this share of its right-hand side.
LEAST_BROKEN = 0.02
#: Most cuts of one job per pool, grain and round; more of them would be similar.
MOST_OF_ONE_JOB = 3
#: Most elements of a table of jobs x lengths x slots (8 bytes each).
LARGEST_TABLE = 4_000_000
#: Longest interval of a cut; longer ones never raised the bound.
LONGEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The cut of a pool, a grain in its units, the slots `first` to `last` (included), and one job."""

    pool: int
    grain: float
    first: int
    last: int
    job: int
    capacity: float

    @property
    def most(self) -> float:
        """The right-hand side."""
        return float(_grains(np.array(self.capacity), self.grain))


#: A cut and its price, in USD per unit of its right-hand side.
Priced = tuple[Cut, float]


def _grains(units: Floats, grain: float) -> Floats:
    whole: Floats = np.floor(units / grain + ROUNDING)
    return whole


def units_of(instance: Instance, pool: int) -> Floats:
    """The units of a pool that each configuration uses."""
    return np.asarray(np.where(instance.pool == pool, instance.units, 0.0).sum(axis=1), np.float64)


def coefficients(instance: Instance, columns: Columns, at: Ints, cut: Cut) -> tuple[Ints, Floats]:
    """Indices in `at` of the columns in a cut, and their coefficients."""
    units = units_of(instance, cut.pool)[columns.configuration[at]]
    start, end = columns.start[at], columns.end[at]
    others = np.where((start <= cut.first) & (end > cut.last), _grains(units, cut.grain), 0.0)
    its = cut.most - _grains(cut.capacity - units, cut.grain)
    touches = (start <= cut.last) & (end > cut.first) & (units > 0)
    value = np.where(columns.job[at] == cut.job, np.where(touches, its, 0.0), others)
    which = np.flatnonzero(value > 0)
    return which, value[which]


def paid_for(instance: Instance, columns: Columns, cuts: tuple[Priced, ...]) -> Floats:
    """The price of each column in these cuts, in USD."""
    total = np.zeros(len(columns))
    by_pool: dict[int, list[Priced]] = {}
    for priced in cuts:
        by_pool.setdefault(priced[0].pool, []).append(priced)
    for pool, of_pool in by_pool.items():
        mine = np.flatnonzero((units_of(instance, pool) > 0)[columns.configuration])
        for cut, price in of_pool:
            which, value = coefficients(instance, columns, mine, cut)
            total[mine[which]] += price * value
    return total


def broken(instance: Instance, columns: Columns, at: Ints, x: Floats, *, most: int = 60) -> list[Cut]:
    """The cuts that a relaxed solution `x` (len(at),) violates most, up to `most` per pool and grain."""
    used = np.flatnonzero(x > 1e-7)
    at, x = at[used], x[used]
    violated_cuts: list[Cut] = []
    for pool in range(instance.pools):
        units = units_of(instance, pool)[columns.configuration[at]]
        mine = np.flatnonzero(units > 0)
        if len(mine) and np.isfinite(instance.capacity[pool]).all():
            of_pool = _Pool(instance, columns, at[mine], x[mine], pool)
            for grain in np.unique(units[mine]).tolist():
                violated_cuts += of_pool.broken(grain, most)
    return violated_cuts


class _Pool:
    """The use of one pool by a relaxed solution; tables are [jobs N, interval lengths minus one L, first slots T]."""

    def __init__(self, instance: Instance, columns: Columns, at: Ints, x: Floats, pool: int) -> None:
        self.pool, self.x, self.units = pool, x, units_of(instance, pool)[columns.configuration[at]]
        self.start, self.end = columns.start[at].astype(np.int64), columns.end[at].astype(np.int64)
        self.jobs, self.row = np.unique(columns.job[at], return_inverse=True)
        self.slots = instance.slots
        self.lengths = max(1, min(LONGEST, self.slots, LARGEST_TABLE // (len(self.jobs) * self.slots)))
        capacity = instance.capacity[pool]
        self.capacity = np.full((self.lengths, self.slots), -1.0)
        for extra in range(self.lengths):
            windows = np.lib.stride_tricks.sliding_window_view(capacity, extra + 1)
            self.capacity[extra, : len(windows)] = windows.max(axis=1)

    def broken(self, grain: float, most: int) -> list[Cut]:
        """The most violated cuts of one grain."""
        throughout = self._table(_grains(self.units, grain) * self.x, whole=True)
        together = throughout.sum(axis=0)
        best, job = np.full_like(self.capacity, -1.0), np.zeros(self.capacity.shape, np.int64)
        for capacity in np.unique(self.capacity[self.capacity > 0]).tolist():
            allowed = float(_grains(np.array(capacity), grain))
            if allowed < 1:
                continue
            its = allowed - _grains(capacity - np.minimum(self.units, capacity), grain)
            gain = self._table(its * self.x, whole=False) - throughout
            most_gain = gain.argmax(axis=0)
            over = together + np.take_along_axis(gain, most_gain[None], axis=0)[0] - allowed
            violated = (self.capacity == capacity) & (over / allowed > best)
            best[violated], job[violated] = (over / allowed)[violated], most_gain[violated]
        return self._chosen(grain, best, job, most)

    def _chosen(self, grain: float, best: Floats, job: Ints, most: int) -> list[Cut]:
        cuts: list[Cut] = []
        times: dict[int, int] = {}
        order = np.argsort(-best, axis=None, kind="stable")
        for flat in order[best.reshape(-1)[order] >= LEAST_BROKEN].tolist():
            extra, first = divmod(flat, self.slots)
            number = int(self.jobs[job[extra, first]])
            if times.setdefault(number, 0) == MOST_OF_ONE_JOB:
                continue
            times[number] += 1
            capacity = float(self.capacity[extra, first])
            cuts.append(
                Cut(pool=self.pool, grain=grain, first=first, last=first + extra, job=number, capacity=capacity)
            )
            if len(cuts) == most:
                break
        return cuts

    def _table(self, value: Floats, *, whole: bool) -> Floats:
        """Sums of `value` over the columns of a job in use in the whole of each interval, or in any slot of it."""
        change = np.zeros((len(self.jobs), self.lengths, self.slots + 1))
        for extra in range(self.lengths):
            opens, closes = (self.start, self.end - extra) if whole else (np.maximum(0, self.start - extra), self.end)
            some = np.flatnonzero(closes > opens)
            part = change[:, extra]
            np.add.at(part, (self.row[some], opens[some]), value[some])
            np.add.at(part, (self.row[some], closes[some]), -value[some])
        table: Floats = np.cumsum(change, axis=2)[:, :, :-1]
        return table
