"""The cheapest plan of two or three phases, exactly: bounds leave few sequences of columns, and halving their shares.

1. By straight lines under cost alone most jobs have nothing to gain, and by those under cost and time, weighed by the
   price of an hour at the deadline, most of the others.
2. A few promising pairs are priced first: a good plan makes every later bound sharp.
3. The lines at other prices of an hour leave the columns that can matter at all. All pairs, then all triples of these
   whose bound lies below the best plan so far get their best shares.

The phases of a plan come in any order: it decides which machines write a checkpoint at their end, and between which places
a run moves. Of orders that cost the same, interruptible phases come first, then the slowest; so it is cheap and slow before
dear and fast, and what may be taken away is tried while there is time. Own machines with free windows are also tried before
and after another configuration. Machines that run the job already come first, or not at all.

Of plans that cost the same to the micro-dollar the first found stays: sequences are looked at by their bounds, those of
equal bounds as their configurations lie in the table of candidates, and fewer phases before more.

Offers that the screen leaves out: inside a cell (same machine, kind and provider) the offer left out is no cheaper per
hour, in storage, in bringing the data or in preemption, so in any plan the one that beats it costs no more at every
share and takes no longer; only the move may be dearer from or to its place. So any plan on offers left out costs at
least what the same plan on screened ones costs without its moves. A set on which no plan without its moves is cheaper
than the best (`planner.phases.sequences`) is done with; `planner.phases.wider` looks again, with the offers left out, at
those others that without their moves lie below the best plan.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.optimise.phases import Lines
from planner.phases.bounds import Shortlist, fast, hour_price, hour_prices, pairs_below, triples_below, worthwhile
from planner.phases.columns import PhaseColumns, columns_on, ranks
from planner.phases.lines import Lined, every_line, windowed_machines
from planner.phases.moves import Moves, moves
from planner.phases.sequences import first_if_up, in_order, lots, too_dear_anywhere
from planner.phases.shares import Found, best_shares
from planner.phases.straight import STEPS, Straight, joined
from planner.phases.whatever_the_hours import least_usd
from planner.phases.wider import AGAIN_TOGETHER, MOST_AGAIN, brought_apart, that_move, wider

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Columns of least Lagrangian cost among the fast and among all, from which the first pairs are made.
_FIRST = 6
#: Columns are looked at again where at most this part of them stayed, and these are more than a few.
_MUCH, _FEW = 2 / 3, 32
#: Of these pairs as many are priced first as take no longer than one; a good plan is all that is wanted of them.
_FIRST_PAIRS = 2
#: What rounding to whole micro-dollars may take from each phase, in USD.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Phased:
    """The cheapest plan of several phases: `found` indexes `columns`, the configurations of the last comparison."""

    columns: PhaseColumns
    moving: Moves
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """What came of the search, and how far it went.

    `sequences` were priced; of sets of columns that were one too many none costs less than `left_usd`. `open_` are the
    lines of the columns that bounds leave open below the best plan: all others can only be part of dearer plans. Shares
    between the steps might save up to `finer_usd`, rounding of bills aside.
    """

    best: Phased | None
    sequences: int
    open_: Lines | None
    left_usd: float = np.inf
    finer_usd: float = 0.0


NOTHING_TO_SEARCH = Searched(best=None, sequences=0, open_=None)


def cheapest_in_phases(found: Candidates, most_micros: float) -> Phased | None:
    """The cheapest plan of two or more phases in time that costs less than `most_micros`, or None if there is none."""
    return search_phases(found, most_micros).best


def search_phases(found: Candidates, most_micros: float) -> Searched:
    """The same, with what the search looked at."""
    job = found.question.job
    phases = job.constraints.max_phases
    if job.budget_usd is not None:
        most_micros = min(most_micros, np.floor(job.budget_usd * 1e6 * (1 + 1e-15)) + 1)
    if phases < 2 or len(found.shares) < 2:
        return NOTHING_TO_SEARCH
    every = every_line(found)
    # Most jobs end here.
    if least_usd(every, phases) >= _below_usd(most_micros):
        return NOTHING_TO_SEARCH
    mu = hour_price(every.lines)
    if mu is None:
        return NOTHING_TO_SEARCH
    search = _Search(candidates=found, every=every, mu=mu, most_micros=most_micros)
    if search.one_phase_is_best():
        return NOTHING_TO_SEARCH
    search.try_first()
    search.try_all(phases)
    left = search.open_lines(phases)
    search.try_left_out()
    return Searched(
        best=search.best,
        sequences=search.compared,
        open_=left,
        left_usd=search.left_usd,
        finer_usd=search.between_steps_usd(),
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    """The best plan so far, how many sequences were compared for it, and what none of those too many undercuts."""

    candidates: Candidates
    every: Lined
    mu: float
    most_micros: float
    best: Phased | None = None
    compared: int = 0
    left_usd: float = np.inf
    again_count: int = 0
    open_: list[tuple[PhaseColumns, Ints, Floats]] = field(default_factory=list)
    again: list[tuple[PhaseColumns, Ints, Floats, bool]] = field(default_factory=list)
    known: set[bytes] = field(default_factory=set)

    @property
    def upper_usd(self) -> float:
        """What a better plan must cost less than, with room for rounding."""
        return _below_usd(self._best_micros)

    @property
    def _best_micros(self) -> float:
        """What the best plan so far costs, or may cost at most."""
        return self.most_micros if self.best is None else self.best.found.micros

    def one_phase_is_best(self) -> bool:
        """Whether no second phase pays on any column, whatever it is, by the price of an hour at the deadline alone.

        Then no third pays either, where no start gains money or time: of three columns leave out one, but neither that
        which does all the work for least nor the last fast one, and the bound of the other two is no higher.
        """
        lines = self.every.lines
        starts_usd = lines.fixed_usd + self.mu * lines.fixed_hours
        if starts_usd.min() < 0.0 or lines.fixed_hours.min() < 0.0:
            return False
        return not worthwhile(lines, np.array([self.mu]), self.upper_usd, phases=2).any()

    def try_first(self) -> None:
        """Pairs of the columns that are best at the price of an hour."""
        lines = self.every.lines
        usd = lines.fixed_usd + lines.slope_usd + lines.data_usd
        weighed = usd + self.mu * (lines.fixed_hours + lines.slope_hours)
        in_time, some = fast(lines), lines.most_steps > 0
        quick, others = np.flatnonzero(in_time & some), np.flatnonzero(~in_time & some)
        few = [each[np.argsort(weighed[each], kind="stable")[:_FIRST]] for each in (quick, others)]
        kept = np.sort(np.concatenate(few))
        pairs = pairs_below(lines.take(kept), self.upper_usd)
        best = np.argsort(pairs.usd, kind="stable")[:_FIRST_PAIRS]
        self._among(kept, pairs.sets[best], pairs.usd[best])

    def try_all(self, phases: int) -> None:
        """Every sequence of two to so many columns whose bound lies below the best plan so far."""
        kept, first = self.worthwhile(phases), self.best
        if len(kept):
            self._all_of(kept, pairs_below(self.every.lines.take(kept), self.upper_usd))
        if self.best is not first:
            kept = self.worthwhile(phases)
        if phases > 2 and len(kept):
            self._try_three(kept)

    def _try_three(self, kept: Ints) -> None:
        """Sequences of three phases on these columns, at least one; own machines work in a window, and again in a later one."""
        lines = self.every.lines.take(kept)
        self._all_of(kept, triples_below(lines, self.mu, self.upper_usd))
        windowed = np.isin(kept, list(windowed_machines(self.candidates, self.every.table)))
        if not windowed.any():
            return
        listed = pairs_below(lines, self.upper_usd)
        pairs, self.left_usd = listed.sets, min(self.left_usd, listed.left_usd)
        for again in (0, 1):
            twice = windowed[pairs[:, again]]
            there_and_back = np.stack((pairs[twice, again], pairs[twice, 1 - again], pairs[twice, again]), axis=1)
            self._among(kept, there_and_back, listed.usd[twice], ordered=True)

    def worthwhile(self, phases: int) -> Ints:
        """The columns that some plan of two to so many phases below the best so far may use."""
        upper = self.upper_usd
        # The price at the deadline tells most; the others are tried on what it leaves, again while they take much away.
        kept = np.flatnonzero(worthwhile(self.every.lines, np.array([self.mu]), upper, phases=phases))
        prices = hour_prices(self.every.lines, self.mu, upper)
        while len(kept):
            left = self.every.lines.take(kept)
            some = _by_kin(left, prices, upper, phases=phases)
            much, kept = len(some) <= _MUCH * len(kept), kept[some]
            if not much or len(kept) <= _FEW:
                break
        return kept

    def open_lines(self, phases: int) -> Lines | None:
        """The lines of every column in a set whose bound lies below the best plan, each once."""
        parts = [(columns, sets[bounds < self.upper_usd].reshape(-1)) for columns, sets, bounds in self.open_]
        parts = [(columns, which) for columns, which in parts if len(which)]
        if not parts:
            return None
        numbers = np.concatenate([_names(columns.table)[which] for columns, which in parts])
        once = np.unique(numbers, return_index=True)[1]
        left = joined([columns.lines.take(which) for columns, which in parts]).take(once)
        return Lines(
            fixed_usd=left.fixed_usd,
            slope_usd=left.slope_usd,
            fixed_hours=left.fixed_hours,
            slope_hours=left.slope_hours,
            data_usd=left.data_usd,
            caps=left.caps,
            kin=left.kin,
            deadline_hours=left.deadline_hours,
            phases=phases,
        )

    def between_steps_usd(self) -> float:
        """What shares between the steps may save at most, in USD, rounding of bills aside.

        A plan of any shares becomes one of whole steps, and no slower, where less than a step is moved from each phase but
        one to the fastest, which costs no more than these steps on it. No plan costs less than the bound of its set.
        """
        most = 0.0
        for columns, sets, bounds in self.open_:
            steps_usd = columns.slope_usd[sets].max(axis=1) * ((sets.shape[1] - 1) / STEPS)
            most = max(most, float(np.minimum(steps_usd, self.upper_usd - bounds).max(initial=0.0)))
        return most

    def try_left_out(self) -> None:
        """Offers that the screen left out, in the sequences that without their moves lie below the best plan."""
        for columns, looked_at, bounds, ordered in self.again:
            below = (bounds < self.upper_usd) & that_move(columns, looked_at)
            if not below.any():
                continue
            # Sets of three have been asked already.
            left = self._left_somewhere(columns, looked_at, bounds, below) if looked_at.shape[1] == 2 else below
            some = np.flatnonzero(left)
            some = some[np.argsort(bounds[some], kind="stable")]
            for first in range(0, len(some), AGAIN_TOGETHER):
                lot = some[first : first + AGAIN_TOGETHER]
                lot = lot[bounds[lot] < self.upper_usd]
                if not len(lot):
                    break
                if self.again_count >= MOST_AGAIN:
                    self.left_usd = min(self.left_usd, float(bounds[lot[0]]))
                    break
                go_on()
                self.again_count += len(lot)
                self._again(columns, looked_at[lot], ordered=ordered)

    def _again(self, columns: PhaseColumns, sets: Ints, *, ordered: bool) -> None:
        """These sets with the offers that the screen left out in place of their own."""
        again = wider(self.candidates, columns, sets, self.upper_usd, mu=self.mu, ordered=ordered)
        if again is None:
            return
        more, listed = again
        self.left_usd = min(self.left_usd, listed.left_usd)
        new = self._new(_names(more.table), listed.sets, ordered=ordered)
        if new.any():
            used, which = _used(listed.sets[new])
            self._compare(more.take(used), which, listed.usd[new], ordered=ordered)

    def _all_of(self, kept: Ints, listed: Shortlist) -> None:
        """The best shares of these sets of the configurations `kept`, the bound of those that are one too many noted."""
        self.left_usd = min(self.left_usd, listed.left_usd)
        self._among(kept, listed.sets, listed.usd)

    def _among(self, kept: Ints, sets: Ints, bounds: Floats, *, ordered: bool = False) -> None:
        """The best shares of these sets of the configurations `kept`."""
        new = self._new(_names(self.every.table)[kept], sets, ordered=ordered)
        if not new.any():
            return
        used, sets = _used(sets[new])
        columns, bounds = columns_on(self.candidates, self.every.take(kept[used])), bounds[new]
        self.open_.append((columns, sets, bounds))
        # A third phase pays for few jobs, and a move less: most such sets are done with here, on offers left out too.
        if sets.shape[1] > 2 and not ordered and that_move(columns, sets).any():
            left = self._left_somewhere(columns, sets, bounds, np.ones(len(sets), np.bool_))
            self.compared += len(sets) - int(left.sum())
            self.known.update(_rows(_names(columns.table), sets[~left], ordered=False))
            sets, bounds = sets[left], bounds[left]
        if len(sets):
            self.again.append((columns, sets, bounds, ordered))
            self._compare(columns, sets, bounds, ordered=ordered)

    def _left_somewhere(self, columns: PhaseColumns, sets: Ints, bounds: Floats, among: Flags) -> Flags:
        """Those of the sets marked on which a plan may be cheaper than the best if nothing is paid for moves."""
        left = among.copy()
        left[among] = ~too_dear_anywhere(self.candidates, columns, sets[among], bounds[among], self._best_micros)
        return left

    def _new(self, names: Ints, sets: Ints, *, ordered: bool) -> Flags:
        """The sets that have not been compared: nothing better than the best was left in those that have."""
        return np.array([each not in self.known for each in _rows(names, sets, ordered=ordered)], np.bool_)

    def _compare(self, columns: PhaseColumns, sets: Ints, bounds: Floats, *, ordered: bool) -> None:
        """The best shares of these sets of columns, in every order that they may come in; the least bounds first."""
        bounds = bounds + brought_apart(columns, sets)
        below = bounds < self.upper_usd
        if not below.any():
            return
        if not below.all():
            used, sets = _used(sets[below])
            columns, bounds = columns.take(used), bounds[below]
        rank, moving, names = ranks(self.candidates, columns), moves(columns), _names(columns.table)
        for lot in lots(np.argsort(bounds, kind="stable")):
            now = lot[bounds[lot] < self.upper_usd]
            if not len(now):
                return
            sequences = first_if_up(columns, sets[now]) if ordered else in_order(columns, rank, sets[now])
            self.compared += len(sequences)
            better = best_shares(columns, moving, sequences, self._best_micros)
            if better is not None:
                self.best = Phased(columns=columns, moving=moving, found=better)
            if better is None or not better.unsaved:
                self.known.update(_rows(names, sets[now], ordered=ordered))


def _below_usd(micros: float) -> float:
    """What a plan must cost less than by lines for its bill to be less than this, with room for rounding."""
    return micros / 1e6 + 3 * _ROUNDING


def _by_kin(lines: Straight, prices: Floats, upper_usd: float, *, phases: int) -> Ints:
    """Which columns some plan of two to so many phases may use, by either line of each, beside others of their kin."""
    kept = []
    for kin in sorted(set(lines.kin.tolist())):
        mine = np.flatnonzero(lines.kin == kin)
        mine = mine[worthwhile(lines.take(mine), prices, upper_usd, phases=phases)]
        among = lines.take(mine)
        if len(mine) and among.bent:
            mine = mine[worthwhile(among.early, prices, upper_usd, phases=phases)]
        # Two of them at least make a plan.
        kept.append(mine if len(mine) > 1 else mine[:0])
    return np.sort(np.concatenate(kept))


def _used(sets: Ints) -> tuple[Ints, Ints]:
    """The columns that are in any of these sets, and the sets as numbers of those."""
    used, which = np.unique(sets, return_inverse=True)
    return used, which.reshape(sets.shape)


def _names(table: Configurations) -> Ints:
    """A number for each configuration, whatever table it is in."""
    return np.asarray((table.market << 52) + (table.place << 20) + table.nodes)


def _rows(names: Ints, sets: Ints, *, ordered: bool) -> list[bytes]:
    """The names of each set, in its order or in any, as one key."""
    named = names[sets] if ordered else np.sort(names[sets], axis=1)
    whole, wide = named.tobytes(), named.itemsize * named.shape[1]
    return [whole[begin : begin + wide] for begin in range(0, len(whole), wide)]
