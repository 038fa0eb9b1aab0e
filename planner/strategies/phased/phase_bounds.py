"""Lower bounds on the cost of two phases, from linear under-estimators of cost and hours and a price of an hour.

For any price mu >= 0 of an hour, a plan on columns i and j costs at least

    A_i + A_j + mu (a_i + a_j) + min over shares of (B + mu b) x - mu D  >=  phi_i + phi_j + min(rho_i, rho_j) - mu D

with phi = A + mu a the cost of starting a column and rho = B + mu b the cost of all the work on it. Data egress counts
once, for the dearer of the two regions. Moves only add. For the best mu this is the linear programme of the pair, which
has a closed form. Without fixed costs the columns worth mixing lie on the lower hull of (hours, cost), and mu is its slope
at the deadline. All of this holds for either line of a column: the first is tighter for large shares, the early one for
small shares, where the first may be negative.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS, LinearUnderestimator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Prices of an hour to try: multiples of the slope of the hull, and of the cost per hour of deadline.
_AROUND_HULL, _AROUND_MEAN = 2.0 ** np.arange(-4, 5), 2.0 ** np.arange(-7, 3)
#: Columns times prices that one call compares: arrays of this size stay in the processor's cache.
_AT_ONCE = 65_536
#: Pairs bounded at once, unless one column has more: some tens of MB.
_PAIRS_TOGETHER = 500_000
#: The most edges of the hull that are followed: each lies below the one before, and most jobs have few.
_MOST_EDGES = 52
#: The most pairs in a shortlist, those of least bounds: 1 MB. Most jobs leave a few, some leave thousands.
MOST_PAIRS = 32_768


class Shortlist:
    """Pairs of columns with their bounds in USD: at most `MOST_PAIRS`, those of least bounds, in the order of their addition.

    None of the pairs that did not fit costs less than `left_usd`; inf where all fit.
    """

    def __init__(self) -> None:
        """Start without pairs."""
        self._pairs, self._usd, self.left_usd = [np.zeros((0, 2), np.int64)], [np.zeros(0)], np.inf
        self._count = 0

    def add(self, pairs: Ints, usd: Floats) -> None:
        """Add pairs with their bounds."""
        self._pairs.append(pairs)
        self._usd.append(usd)
        self._count += len(pairs)
        if self._count > 2 * MOST_PAIRS:
            self._cut()

    def _cut(self) -> None:
        pairs, usd = np.concatenate(self._pairs), np.concatenate(self._usd)
        if len(usd) > MOST_PAIRS:
            order = np.argsort(usd, kind="stable")
            self.left_usd = min(self.left_usd, float(usd[order[MOST_PAIRS]]))
            least = np.sort(order[:MOST_PAIRS])
            pairs, usd = pairs[least], usd[least]
        self._pairs, self._usd, self._count = [pairs], [usd], len(usd)

    @property
    def pairs(self) -> Ints:
        """The two columns of each pair."""
        self._cut()
        return self._pairs[0]

    @property
    def usd(self) -> Floats:
        """The bound of each pair."""
        self._cut()
        return self._usd[0]

    def below(self, upper_usd: float, least_usd: Floats) -> "Shortlist":
        """The pairs whose bound and other bound `least_usd` both lie below `upper_usd`, with the larger of the two."""
        less = Shortlist()
        usd = np.maximum(self.usd, least_usd)
        less.add(self.pairs[usd < upper_usd], usd[usd < upper_usd])
        less.left_usd = self.left_usd
        return less


def hour_price(columns: LinearUnderestimator) -> float | None:
    """The slope of the lower hull of (hours, cost) at the deadline, in USD per hour; None if all columns are too slow."""
    deadline = columns.deadline_hours
    if not np.isfinite(deadline):
        return 0.0
    hours = columns.fixed_hours + columns.slope_hours
    usd = columns.fixed_usd + columns.slope_usd + columns.data_usd
    if hours.min() > deadline:
        return None
    # From the edge between the cheapest and the fastest column down to the edge that crosses the deadline: the point
    # farthest below an edge is a vertex of the hull, and replaces the end on its side of the deadline.
    late, in_time = int(usd.argmin()), int(hours.argmin())
    if hours[late] <= deadline:
        return 0.0
    price = 0.0
    for _ in range(_MOST_EDGES):
        price = float((usd[in_time] - usd[late]) / (hours[late] - hours[in_time]))
        weighed = usd + price * hours
        corner = int(weighed.argmin())
        if not weighed[corner] < min(weighed[late], weighed[in_time]):
            break
        late, in_time = (corner, in_time) if hours[corner] > deadline else (late, corner)
    return price


def fast(columns: LinearUnderestimator) -> Flags:
    """Columns of which every plan needs one: those that do all the work within the deadline, beside another's set-up."""
    return np.asarray(
        columns.fixed_hours + columns.slope_hours + columns.fixed_hours.min(initial=np.inf) <= columns.deadline_hours
    )


def hour_prices(columns: LinearUnderestimator, mu: float, upper_usd: float) -> Floats:
    """Prices of an hour to try as multipliers: around the slope of the hull, and around the cost per hour of deadline."""
    if not np.isfinite(columns.deadline_hours):
        return np.zeros(1)
    per_hour = min(upper_usd, float(columns.slope_usd.max())) / columns.deadline_hours
    return np.concatenate(([0.0], mu * _AROUND_HULL, per_hour * _AROUND_MEAN))


def worthwhile(columns: LinearUnderestimator, prices: Floats, upper_usd: float) -> Flags:
    """Columns that some plan of two phases below `upper_usd` may use, by each of these prices of an hour.

    Many columns are filtered by one price after another: a column that one price excludes is in no such plan, so the next
    price filters only the others.
    """
    if len(columns) * len(prices) <= _AT_ONCE or len(prices) == 1:
        return _worthwhile(columns, prices, upper_usd)
    left = np.arange(len(columns))
    for price in prices:
        left = left[_worthwhile(columns.take(left), np.array([price]), upper_usd)]
        if not len(left):
            break
    return np.isin(np.arange(len(columns)), left)


def _worthwhile(columns: LinearUnderestimator, prices: Floats, upper_usd: float) -> Flags:
    quick = fast(columns)
    if not quick.any():
        return quick
    mu = prices[:, None]
    start = columns.fixed_usd + mu * columns.fixed_hours
    whole = columns.slope_usd + mu * columns.slope_hours
    most = upper_usd + (mu * columns.deadline_hours if prices.any() else 0.0)
    # The other column of a pair is fast if this one is slow. The work runs at the rate of this column or of the other.
    least, both = start.min(axis=1, keepdims=True), start + whole
    other = np.minimum(least + whole, both.min(axis=1, keepdims=True))
    if not quick.all():
        fastest = start[:, quick].min(axis=1, keepdims=True)
        with_fast = np.minimum(fastest + whole, both[:, quick].min(axis=1, keepdims=True))
        other = np.where(quick, other, with_fast)
    below = (start + columns.data_usd + other < most).all(axis=0)
    return np.asarray(below & (columns.most_steps > 0))


def pair_usd(columns: LinearUnderestimator, one: Ints, other: Ints) -> Floats:
    """A lower bound in USD on a plan on both columns, by the linear programme of their linear bounds; inf if too slow."""
    usd = _pair_usd(columns, one, other)
    return np.maximum(usd, _pair_usd(columns.early, one, other)) if columns.bent else usd


def _pair_usd(columns: LinearUnderestimator, one: Ints, other: Ints) -> Floats:
    """The bound by one line of each column."""
    a, b = columns.slope_hours, columns.slope_usd
    room = columns.deadline_hours - columns.fixed_hours[one] - columns.fixed_hours[other]
    low = np.maximum(1 - columns.most_steps[other] / STEPS, 0.0)
    high = np.minimum(columns.most_steps[one] / STEPS, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (room - a[other]) / (a[one] - a[other])
    # Rounding must not exclude what the limit itself allows.
    slack = 1e-9
    with np.errstate(invalid="ignore"):
        high = np.where(a[one] > a[other], np.minimum(high, share + slack), high)
        low = np.where(a[one] < a[other], np.maximum(low, share - slack), low)
    equal = (a[one] == a[other]) & (a[one] > room * (1 + slack))
    best = np.where(b[one] < b[other], high, low)
    data = np.maximum(columns.data_usd[one], columns.data_usd[other])
    usd = columns.fixed_usd[one] + columns.fixed_usd[other] + data + b[one] * best + b[other] * (1 - best)
    return np.where((low > high) | equal, np.inf, usd)


def pairs_below(columns: LinearUnderestimator, upper_usd: float) -> Shortlist:
    """Pairs of columns between which a run can move and which may cost less than `upper_usd`.

    One of each pair is fast. Pairs are bounded in batches, so that memory stays within some tens of MB.
    """
    pairs = _pairs_below(columns, upper_usd)
    if columns.bent:
        pairs = pairs.below(upper_usd, _pair_usd(columns.early, pairs.pairs[:, 0], pairs.pairs[:, 1]))
    return pairs


def _pairs_below(columns: LinearUnderestimator, upper_usd: float) -> Shortlist:
    """The pairs by one line of each column."""
    quick, shortlist = np.flatnonzero(fast(columns)), Shortlist()
    if not len(quick):
        return shortlist
    is_quick = np.zeros(len(columns), np.bool_)
    is_quick[quick] = True
    for fast_ones, partners in _partners(columns, quick, upper_usd):
        go_on()
        # A pair of two fast columns is listed once.
        is_first = ~is_quick[partners] | (partners > fast_ones)
        some = is_first & (columns.migration_class[fast_ones] == columns.migration_class[partners])
        one, other = fast_ones[some], partners[some]
        usd = _pair_usd(columns, one, other)
        below = np.flatnonzero(usd < upper_usd)
        below = below[np.lexsort((other[below], one[below]))]
        shortlist.add(np.stack((one[below], other[below]), axis=1), usd[below])
    return shortlist


def _partners(columns: LinearUnderestimator, quick: Ints, upper_usd: float) -> Iterator[tuple[Ints, Ints]]:
    """Each fast column with the partners of pairs that may cost less than `upper_usd` by the price of an hour, in batches.

    With phi and rho as in the module's docstring, a pair costs at least phi_i + phi_j + min(rho_i, rho_j) - mu D. So the
    partners of i are the first in the order of phi_j, and the first in the order of phi_j + rho_j.
    """
    mu = hour_price(columns) or 0.0
    start_usd, work_usd = columns.fixed_usd + mu * columns.fixed_hours, columns.slope_usd + mu * columns.slope_hours
    most = upper_usd + (mu * columns.deadline_hours if mu else 0.0) - start_usd[quick]
    # Rounding must not exclude what the bound itself allows.
    most = most + 1e-9 * np.abs(most)
    starts, wholes = np.argsort(start_usd, kind="stable"), np.argsort(start_usd + work_usd, kind="stable")
    most_start_usd = most - work_usd[quick]
    by_start = np.searchsorted(start_usd[starts], most_start_usd)
    by_whole = np.searchsorted((start_usd + work_usd)[wholes], np.where(np.isinf(most), -np.inf, most))
    count = by_start + by_whole
    offer_groups = np.cumsum(count) // _PAIRS_TOGETHER
    for mine in np.split(np.arange(len(quick)), np.flatnonzero(np.diff(offer_groups)) + 1):
        row = np.repeat(mine, count[mine])
        place = np.arange(len(row)) - np.repeat(np.cumsum(count[mine]) - count[mine], count[mine])
        first = place < by_start[row]
        other = np.where(first, starts[np.where(first, place, 0)], wholes[np.where(first, 0, place - by_start[row])])
        # A column that is first in both orders is listed once, and no column is its own partner.
        is_new = (first | (start_usd[other] >= most_start_usd[row])) & (other != quick[row])
        yield quick[row[is_new]], other[is_new]


def distinct(pairs: Ints, columns: int) -> Ints:
    """Every pair once, in order; `columns` is the number of columns."""
    key = np.unique(pairs[:, 0] * columns + pairs[:, 1])
    return np.stack((key // columns, key % columns), axis=1)
