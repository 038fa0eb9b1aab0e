"""What no plan in phases can undercut: straight lines under cost and time, and the price of an hour between them.

For any price mu >= 0 of an hour, a plan on columns S costs at least

    sum_S (A_k + mu a_k) + min over shares of sum_S (B_k + mu b_k) x_k - mu D  >=  sum_S phi_k + min_S rho_k - mu D

with phi = A + mu a what a column costs to start and rho = B + mu b what all the work costs on it. Bringing the data
counts once, for the dearest of the places. Moves only add. For two columns and the best mu this is the linear
programme of both, which has a closed form; without fixed costs the columns worth mixing are those on the lower hull of
(hours, cost), and mu is its slope at the deadline. All of this holds for either line of a column: the first is the closer
one for large shares, the early one for small ones, where the first may say less than nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.phases.straight import STEPS, Straight, least_of_few

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Multiples of the slope of the hull, and of the cost per hour of deadline, that are tried as prices of an hour.
_AROUND_HULL, _AROUND_MEAN = 2.0 ** np.arange(-4, 5), 2.0 ** np.arange(-7, 3)
#: Columns times prices that one call holds against each other: arrays of this size stay in the processor's cache.
_AT_ONCE = 65_536
#: Edges of the hull that are gone along at most: each is below the one before, and few are met.
_MOST_EDGES = 52
#: The pairs of three.
_FIRST, _SECOND = np.array([0, 0, 1]), np.array([1, 2, 2])
#: Sets of columns that are kept at most, those of least bounds: 2 MB. Most jobs leave a few, some leave thousands.
MOST_SETS = 32_768
#: Triples that are bounded at most, those of the pairs of least bounds: about a second's work.
MOST_TRIPLES = 1_000_000
#: Triples bounded at once, but for those of one pair: some tens of MB.
_TRIPLES_TOGETHER = 250_000
#: So many triples are bounded in less time than it takes to find out whether other lines leave fewer.
_TRIPLES_LOOKED_AT = 2_000


class Shortlist:
    """Sets of columns with their bounds in USD, at most `MOST_SETS` of them: those of least bounds, in the order they came.

    None of those that did not fit costs less than `left_usd`, inf where all did.
    """

    def __init__(self, width: int) -> None:
        """Of sets of so many columns."""
        self._sets, self._usd, self.left_usd = [np.zeros((0, width), np.int64)], [np.zeros(0)], np.inf
        self._count = 0

    def add(self, sets: Ints, usd: Floats) -> None:
        """Some more of them."""
        self._sets.append(sets)
        self._usd.append(usd)
        self._count += len(sets)
        if self._count > 2 * MOST_SETS:
            self._cut()

    def _cut(self) -> None:
        sets, usd = np.concatenate(self._sets), np.concatenate(self._usd)
        if len(usd) > MOST_SETS:
            order = np.argsort(usd, kind="stable")
            self.left_usd = min(self.left_usd, float(usd[order[MOST_SETS]]))
            kept = np.sort(order[:MOST_SETS])
            sets, usd = sets[kept], usd[kept]
        self._sets, self._usd, self._count = [sets], [usd], len(usd)

    @property
    def sets(self) -> Ints:
        """The columns of each set."""
        self._cut()
        return self._sets[0]

    @property
    def usd(self) -> Floats:
        """The bound of each set."""
        self._cut()
        return self._usd[0]

    def below(self, upper_usd: float, least_usd: Floats) -> "Shortlist":
        """The sets of which neither the bound nor this other one of each reaches `upper_usd`, with the larger of the two."""
        less = Shortlist(self.sets.shape[1])
        usd = np.maximum(self.usd, least_usd)
        less.add(self.sets[usd < upper_usd], usd[usd < upper_usd])
        less.left_usd = self.left_usd
        return less


def hour_price(columns: Straight) -> float | None:
    """The slope of the lower hull of (hours, cost) at the deadline, in USD per hour; None if all columns are too slow."""
    deadline = columns.deadline_hours
    if not np.isfinite(deadline):
        return 0.0
    hours = columns.fixed_hours + columns.slope_hours
    usd = columns.fixed_usd + columns.slope_usd + columns.data_usd
    if hours.min() > deadline:
        return None
    # From the edge between the cheapest and the fastest down to the one that crosses the deadline: what lies farthest
    # below an edge is a corner of the hull, and takes the place of the end on its side of the deadline.
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


def fast(columns: Straight) -> Flags:
    """Columns of which every plan needs one: those that would do all the work in time, beside another's set-up."""
    return np.asarray(
        columns.fixed_hours + columns.slope_hours + columns.fixed_hours.min(initial=np.inf) <= columns.deadline_hours
    )


def hour_prices(columns: Straight, mu: float, upper_usd: float) -> Floats:
    """Prices of an hour to try as multipliers: around the slope of the hull, and around the cost per hour of deadline."""
    if not np.isfinite(columns.deadline_hours):
        return np.zeros(1)
    per_hour = min(upper_usd, float(columns.slope_usd.max())) / columns.deadline_hours
    return np.concatenate(([0.0], mu * _AROUND_HULL, per_hour * _AROUND_MEAN))


def worthwhile(columns: Straight, prices: Floats, upper_usd: float, *, phases: int) -> Flags:
    """Columns that some plan of two to so many phases below `upper_usd` may use, by each of these prices of an hour.

    Many columns are held against one price after the other: each leaves fewer, and what it rules out is no part of any
    such plan, so the next price needs to look at the others alone.
    """
    if len(columns) * len(prices) <= _AT_ONCE or len(prices) == 1:
        return _worthwhile(columns, prices, upper_usd, phases=phases)
    kept = np.arange(len(columns))
    for price in prices:
        kept = kept[_worthwhile(columns.take(kept), np.array([price]), upper_usd, phases=phases)]
        if not len(kept):
            break
    return np.isin(np.arange(len(columns)), kept)


def _worthwhile(columns: Straight, prices: Floats, upper_usd: float, *, phases: int) -> Flags:
    quick = fast(columns)
    if not quick.any():
        return quick
    mu = prices[:, None]
    start = columns.fixed_usd + mu * columns.fixed_hours
    whole = columns.slope_usd + mu * columns.slope_hours
    most = upper_usd + (mu * columns.deadline_hours if prices.any() else 0.0)
    # Besides the column itself: a fast one, if it is slow, and the cheapest starts for the rest. The work is done at
    # its own rate or at that of another.
    least, both = start.min(axis=1, keepdims=True), start + whole
    first, second = least, np.minimum(least + whole, both.min(axis=1, keepdims=True))
    if not quick.all():
        fastest = start[:, quick].min(axis=1, keepdims=True)
        with_fast = np.minimum(fastest + whole, both[:, quick].min(axis=1, keepdims=True))
        first, second = np.where(quick, least, fastest), np.where(quick, second, with_fast)
    own = start + columns.data_usd
    below = (own + second < most).all(axis=0)
    if phases > 2:
        third = np.minimum(second, first + whole.min(axis=1, keepdims=True))
        for further in range(1, phases - 1):
            below |= (own + third + further * least < most).all(axis=0)
    return np.asarray(below & (columns.most_steps > 0))


def pair_usd(columns: Straight, one: Ints, other: Ints) -> Floats:
    """The least that a plan on both columns costs, in USD, by the linear programmes of their lines; inf if too slow."""
    usd = _pair_usd(columns, one, other)
    return np.maximum(usd, _pair_usd(columns.early, one, other)) if columns.bent else usd


def _pair_usd(columns: Straight, one: Ints, other: Ints) -> Floats:
    """The same by one line of each column."""
    a, b = columns.slope_hours, columns.slope_usd
    room = columns.deadline_hours - columns.fixed_hours[one] - columns.fixed_hours[other]
    low = np.maximum(1 - columns.most_steps[other] / STEPS, 0.0)
    high = np.minimum(columns.most_steps[one] / STEPS, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (room - a[other]) / (a[one] - a[other])
    # Rounding must never take away what the limit itself allows.
    slack = 1e-9
    with np.errstate(invalid="ignore"):
        high = np.where(a[one] > a[other], np.minimum(high, share + slack), high)
        low = np.where(a[one] < a[other], np.maximum(low, share - slack), low)
    equal = (a[one] == a[other]) & (a[one] > room * (1 + slack))
    best = np.where(b[one] < b[other], high, low)
    data = np.maximum(columns.data_usd[one], columns.data_usd[other])
    usd = columns.fixed_usd[one] + columns.fixed_usd[other] + data + b[one] * best + b[other] * (1 - best)
    return np.where((low > high) | equal, np.inf, usd)


def pairs_below(columns: Straight, upper_usd: float) -> Shortlist:
    """Pairs of columns between which a run can move and which may cost less than `upper_usd`.

    One of a pair is fast. Worked through a block of rows at a time, so that memory stays within some tens of MB.
    """
    pairs = _pairs_below(columns, upper_usd)
    if columns.bent:
        pairs = pairs.below(upper_usd, _pair_usd(columns.early, pairs.sets[:, 0], pairs.sets[:, 1]))
    return pairs


def _pairs_below(columns: Straight, upper_usd: float) -> Shortlist:
    """The same by one line of each column."""
    quick = np.flatnonzero(fast(columns))
    first_of = np.full(len(columns), -1)
    first_of[quick] = quick
    rows = max(1, 500_000 // max(len(columns), 1))
    found = Shortlist(2)
    for first in range(0, len(quick), rows):
        go_on()
        block = quick[first : first + rows]
        one, other = np.nonzero(np.equal.outer(columns.kin[block], columns.kin))
        one = block[one]
        # Of two fast ones the pair stands once.
        once = (first_of[other] < 0) | (other > one)
        one, other = one[once], other[once]
        usd = _pair_usd(columns, one, other)
        below = usd < upper_usd
        found.add(np.stack((one[below], other[below]), axis=1), usd[below])
    return found


def triples_below(columns: Straight, mu: float, upper_usd: float) -> Shortlist:
    """Triples of columns between which a run can move and which may cost less than `upper_usd`.

    The linear programme of three lines has two rows, so its best point either uses two of them, or holds one at its cap
    (windows, the longest run of a kind) and shares the rest of the work between the two others. Worked through a lot of
    triples at a time, so that memory stays within some tens of MB. A triple costs no less than the pair that it is looked
    for by and the least start, nor than what is capped at its cap and the least starts beside it: that is told of those
    beyond `MOST_TRIPLES`.
    """
    lines, pairs = columns, _pairs_of_triples(columns, upper_usd)
    if columns.bent and _thirds(columns, upper_usd - pairs.usd).sum() > _TRIPLES_LOOKED_AT:
        # Any line of a column will do to find them: that which leaves fewer.
        early = _pairs_of_triples(columns.early, upper_usd)
        if _thirds(columns.early, upper_usd - early.usd).sum() < _thirds(columns, upper_usd - pairs.usd).sum():
            lines, pairs = columns.early, early
    found, least_start, looked = Shortlist(3), float(lines.fixed_usd.min(initial=np.inf)), 0
    found.left_usd = pairs.left_usd + least_start

    def keep(some: Ints) -> None:
        nonlocal looked
        go_on()
        looked += len(some)
        triples = distinct(np.sort(some, axis=1), len(columns))
        least = triple_usd(columns, triples)
        found.add(triples[least < upper_usd], least[least < upper_usd])

    order = np.argsort(pairs.usd, kind="stable")
    for first_usd, some in _with_third(lines, pairs.sets[order], pairs.usd[order], upper_usd):
        if looked >= MOST_TRIPLES:
            found.left_usd = min(found.left_usd, first_usd + least_start)
            break
        keep(some)
    for capped in np.flatnonzero(columns.caps < 1.0).tolist():
        rest = _beside(lines, capped)
        capped_usd = lines.fixed_usd[capped] + lines.slope_usd[capped] * lines.caps[capped]
        below = upper_usd - capped_usd
        if looked >= MOST_TRIPLES:
            found.left_usd = min(found.left_usd, capped_usd + 2 * min(least_start, 0.0))
            continue
        kept = columns.kin == columns.kin[capped]
        kept &= worthwhile(rest, hour_prices(rest, mu, max(below, 0.0)), below, phases=2)
        some = np.flatnonzero(kept)
        of_rest = _pairs_below(rest.take(some), below)
        found.left_usd = min(found.left_usd, capped_usd + of_rest.left_usd)
        pairs_ = some[of_rest.sets]
        pairs_ = pairs_[(pairs_ != capped).all(axis=1)]
        keep(np.concatenate((pairs_, np.full((len(pairs_), 1), capped)), axis=1))
    once = Shortlist(3)
    first = np.unique(_key(found.sets, len(columns)), return_index=True)[1]
    once.add(found.sets[first], found.usd[first])
    once.left_usd = found.left_usd
    return once


def distinct(sets: Ints, columns: int) -> Ints:
    """Every set once, in order: numbers of so many columns."""
    key, numbers = np.unique(_key(sets, columns)), []
    for _ in range(sets.shape[1]):
        numbers.append(key % columns)
        key = key // columns
    return np.stack(numbers[::-1], axis=1)


def _key(sets: Ints, columns: int) -> Ints:
    """One number for each set, in their order."""
    key = np.zeros(len(sets), np.int64)
    for side in sets.T:
        key = key * columns + side
    return key


def _pairs_of_triples(columns: Straight, upper_usd: float) -> Shortlist:
    """Pairs that may cost less than `upper_usd` with the least start of a third column, by one line of each."""
    shorter = replace(columns, deadline_hours=columns.deadline_hours - float(columns.fixed_hours.min()))
    return _pairs_below(shorter, upper_usd - float(columns.fixed_usd.min()))


def _thirds(columns: Straight, room_usd: Floats) -> Ints:
    """Into how much room, in USD, the start of how many columns fits."""
    return np.searchsorted(np.sort(columns.fixed_usd), room_usd)


def _with_third(columns: Straight, pairs: Ints, usd: Floats, upper_usd: float) -> Iterator[tuple[float, Ints]]:
    """Each pair with every further column whose start fits into what is left below the best plan, in lots.

    Pairs come by their bounds `usd`, ascending; that of the first of each lot stands before it.
    """
    by_start = np.argsort(columns.fixed_usd, kind="stable")
    count = _thirds(columns, upper_usd - usd)
    lots = np.cumsum(count) // _TRIPLES_TOGETHER
    for mine in np.split(np.arange(len(pairs)), np.flatnonzero(np.diff(lots)) + 1):
        some = count[mine]
        pair = np.repeat(mine, some)
        third = by_start[np.arange(len(pair)) - np.repeat(np.cumsum(some) - some, some)]
        triples = np.concatenate((pairs[pair], third[:, None]), axis=1)
        fits = (third != triples[:, 0]) & (third != triples[:, 1]) & (columns.kin[third] == columns.kin[triples[:, 0]])
        if len(mine):
            yield float(usd[mine[0]]), np.asarray(triples[fits])


def _beside(columns: Straight, capped: int) -> Straight:
    """The columns for the work and the time that one column at its cap leaves."""
    left = 1.0 - columns.caps[capped]
    spent = columns.fixed_hours[capped] + columns.slope_hours[capped] * columns.caps[capped]
    values, whole = columns.values.copy(), columns.whole.copy()
    rest = Straight(values=values, whole=whole, deadline_hours=columns.deadline_hours - spent)
    rest.slope_usd[:] *= left
    rest.slope_hours[:] *= left
    rest.most_steps[:] = np.minimum(np.ceil(columns.most_steps / left), STEPS)
    return rest


def triple_usd(columns: Straight, triples: Ints) -> Floats:
    """The least that a plan on all three costs, in USD, by the linear programmes of their lines and caps."""
    usd = _triple_usd(columns, triples)
    if columns.bent:
        below = np.flatnonzero(np.isfinite(usd))
        usd[below] = np.maximum(usd[below], _triple_usd(columns.early, triples[below]))
    return usd


def _triple_usd(columns: Straight, triples: Ints) -> Floats:
    """The same by one line of each column.

    Its dual in the price of an hour is concave and piecewise linear, with kinks where two lines tie: the best kink is
    the optimum. Inf where no shares are in time.
    """
    a, b, caps = columns.slope_hours[triples], columns.slope_usd[triples], columns.caps[triples]
    room = columns.deadline_hours - columns.fixed_hours[triples].sum(axis=1)
    fixed = columns.fixed_usd[triples].sum(axis=1) + columns.data_usd[triples].max(axis=1)
    if not np.isfinite(columns.deadline_hours):
        return np.asarray(fixed + _filled(b[:, None], caps)[:, 0])
    prices = np.zeros((len(triples), 4))
    with np.errstate(divide="ignore", invalid="ignore"):
        tie = (b[:, _FIRST] - b[:, _SECOND]) / (a[:, _SECOND] - a[:, _FIRST])
    prices[:, 1:] = np.where(np.isfinite(tie) & (tie > 0), tie, 0.0)
    least = _filled(b[:, None] + prices[:, :, None] * a[:, None], caps) - prices * room[:, None]
    late = _filled(a[:, None], caps)[:, 0] > room * (1 + 1e-9)
    return np.where(late, np.inf, fixed + least.max(axis=1))


def _filled(rates: Floats, caps: Floats) -> Floats:
    """All the work given to the least rates first, each up to its cap; inf where the caps are too small.

    `caps` are those of a triple per row, `rates` of each of these several triples of rates, of which one figure comes.
    """
    least = least_of_few(rates)
    # Where the cheapest may do all of it, it does.
    some = np.flatnonzero((caps < 1.0).any(axis=1))
    if len(some):
        rates = rates[some]
        order = np.argsort(rates, axis=2, kind="stable")
        rates = np.take_along_axis(rates, order, axis=2)
        given = np.take_along_axis(np.broadcast_to(caps[some, None], rates.shape), order, axis=2)
        done = np.minimum(np.cumsum(given, axis=2), 1.0)
        share = np.diff(done, axis=2, prepend=0.0)
        least = least.copy()
        least[some] = np.where(done[:, :, -1] < 1.0, np.inf, (rates * share).sum(axis=2))
    return least
