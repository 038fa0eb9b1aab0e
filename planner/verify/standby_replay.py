"""Monte Carlo replay of the standby rule, preemption by preemption, from a fixed seed.

A run does n segments of L hours (its work at the estimate's error f = e^(sigma z), and a checkpoint) on interruptible
machines. It attempts a segment only if a failure at its very end would still leave the standby in time:

    clock <= last = deadline - L - changeover - (1 - done / n) U        U: all work on the standby, at the same z

Preemptions have a constant rate. After one the run waits for a machine (unpaid, exponential) and restarts (paid, and
preempted at the same rate). Zones differ in their mean wait, so waiting and paid hours spread by s instead, with
s^2 = sigma^2 + (spread between zones)^2: while e^(sigma z) hours are paid, e^(s z) times those with the typical wait go by, and
no fewer than are paid. If wait and restart both end by `last`, it goes on. Else it waits until `last` less a restart and
calls the standby. A run whose standby is late even so calls it after the first segment.

Runs are replayed in batches. Each batch stratifies the estimate's error: one z from each of equally likely ranges.
The standard error of a figure is that of its means, or quantiles, over the batches.
"""

import math
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.verify.price_spread import is_estimate, relative_prices

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Batches, and runs in each.
BATCHES, RUNS = 32, 2000
SEED = 20261121
#: Half the width of the interval in standard errors: 2 in 100,000 lie beyond, of 32 batches.
SIGMAS = 5.0
P95 = 0.95
#: Tolerance in hours of sums of doubles.
_HAIR = 1e-9


class Pair(NamedTuple):
    """Interruptible machines and their standby: hours of work, spread of ln(hours), preemptions and checkpoints of
    the first, hours of the changeover, and prices per hour of all nodes, while machines are up and, beside that, on
    the clock (storage, power). `zone_log_sigma` is the spread of hours by the waits in zones. The offers say whether these
    prices are estimates; of the standby's price per hour, `standby_machine_usd_per_hour` follows that of its offer.
    """

    work_hours: float
    log_sigma: float
    preemptions_per_hour: float
    checkpoint_hours: float
    usd_per_hour: float
    clock_usd_per_hour: float
    fixed_usd: float
    standby_work_hours: float
    standby_log_sigma: float
    standby_usd_per_hour: float
    standby_fixed_usd: float
    changeover_hours: float
    offer: Offer | None = None
    standby_offer: Offer | None = None
    standby_machine_usd_per_hour: float = 0.0
    zone_log_sigma: float = 0.0

    def waits(self, typical_hours: float, z: Floats) -> Floats:
        """Mean hours of a wait in the zones of runs at these deviations."""
        spread_apart = math.hypot(self.log_sigma, self.zone_log_sigma) - self.log_sigma
        clock_per_paid_hour = np.exp(spread_apart * z) * (1.0 + self.preemptions_per_hour * typical_hours)
        return np.asarray(np.maximum(clock_per_paid_hour - 1.0, 0.0) / self.preemptions_per_hour)


class Rule(NamedTuple):
    """Parameters from the job and the settings: hours to the deadline, of set-up, of a restart, and of the typical wait
    for a machine.
    """

    deadline_hours: float
    setup_hours: float
    restart_hours: float
    wait_hours: float


class Estimated(NamedTuple):
    """A figure of the replayed runs and its standard error."""

    value: float
    error: float

    def allows(self, stated: float, *, share: float = 0.0, absolute: float = 0.0) -> bool:
        """Whether a stated figure lies in the interval, widened by a relative and an absolute tolerance."""
        return abs(stated - self.value) <= SIGMAS * self.error + share * abs(self.value) + absolute

    def of_event(self, chance: float, size: float) -> "Estimated":
        """The same with at least the standard error of an event of this probability and size, which few runs may have
        met.
        """
        error = size * math.sqrt(max(chance * (1.0 - chance), 0.0) / (BATCHES * RUNS))
        return self._replace(error=max(self.error, error))


class Runs(NamedTuple):
    """Replayed runs: [batches, runs].

    Hours on the clock at the end and at the call of the standby (nan: not called), hours paid and on the clock on
    interruptible machines, hours on the standby, and whether it was called, and too late.
    """

    end: Floats
    called_at: Floats
    paid: Floats
    on_clock: Floats
    standby: Floats
    called: NDArray[np.bool_]
    late: NDArray[np.bool_]

    def mean(self, values: Floats) -> Estimated:
        """The mean over all runs."""
        return _estimated(values.mean(axis=1))

    def quantile(self, values: Floats, probability: float) -> Estimated:
        """The quantile over all runs."""
        return _estimated(np.quantile(values, probability, axis=1))

    def mean_of(self, values: Floats, which: NDArray[np.bool_]) -> Estimated | None:
        """The mean over the marked runs; None where a batch has none."""
        counts = which.sum(axis=1)
        if not counts.all():
            return None
        return _estimated(np.where(which, values, 0.0).sum(axis=1) / counts)


class Figures(NamedTuple):
    """Expectations and quantiles over all replayed runs, and over the estimate's error.

    Expected hours paid and on the clock on interruptible machines and paid on the standby, the probability of a call,
    its mean time among calls in time (None: hardly any), and quantiles of hours and cost.
    """

    paid_hours: Estimated
    clock_hours: Estimated
    standby_hours: Estimated
    calls: Estimated
    called_at: Estimated | None
    hours: Estimated
    median_hours: Estimated
    confident_hours: Estimated
    p95_hours: Estimated
    median_usd: Estimated
    p95_usd: Estimated

    def usd(self, pair: Pair, *, whole_hours: float, calls: float) -> Estimated:
        """Expected cost of both legs before rounding up to billing steps, with the stated probability of a call."""
        standby = self.standby_hours.of_event(calls, whole_hours)
        called = self.calls.of_event(calls, 1.0)
        parts = (
            (pair.usd_per_hour, self.paid_hours),
            (pair.clock_usd_per_hour, self.clock_hours),
            (pair.standby_usd_per_hour, standby),
            (pair.standby_fixed_usd, called),
        )
        value = pair.fixed_usd + sum(price * hours.value for price, hours in parts)
        return Estimated(value, sum(price * hours.error for price, hours in parts))


def figures(pair: Pair, rule: Rule, interval_hours: float, confidence: float) -> Figures:
    """The figures of the pair with this checkpoint interval."""
    runs = replayed(pair, rule, interval_hours)
    changeover = pair.changeover_hours
    rescued = np.where(runs.called, changeover + runs.standby, 0.0)
    usd = (
        pair.fixed_usd
        + pair.usd_per_hour * runs.paid
        + pair.clock_usd_per_hour * runs.on_clock
        + np.where(runs.called, pair.standby_fixed_usd, 0.0)
        + pair.standby_usd_per_hour * rescued
    )
    if is_estimate(pair.offer) or is_estimate(pair.standby_offer):
        price, standby_price = _drawn_prices(pair, usd.shape)
        usd += pair.usd_per_hour * runs.paid * (price - 1.0)
        usd += pair.standby_machine_usd_per_hour * rescued * (standby_price - 1.0)
    return Figures(
        paid_hours=runs.mean(runs.paid),
        clock_hours=runs.mean(runs.on_clock),
        standby_hours=runs.mean(rescued),
        calls=runs.mean(runs.called.astype(np.float64)),
        called_at=runs.mean_of(np.nan_to_num(runs.called_at), runs.called & ~runs.late),
        hours=runs.mean(runs.end),
        median_hours=runs.quantile(runs.end, 0.5),
        confident_hours=runs.quantile(runs.end, confidence),
        p95_hours=runs.quantile(runs.end, P95),
        median_usd=runs.quantile(usd, 0.5),
        p95_usd=runs.quantile(usd, P95),
    )


def _drawn_prices(pair: Pair, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Prices of both legs over the expected ones, one deviation for both; deviations of their own seed, stratified."""
    batches, runs = shape
    deviations = _deviations(np.random.default_rng(SEED + 1), batches, runs).reshape(shape)
    deviations = np.random.default_rng(SEED + 2).permuted(deviations, axis=1)
    price, standby_price = (
        relative_prices(offer, deviations.ravel()).reshape(shape) for offer in (pair.offer, pair.standby_offer)
    )
    return price, standby_price


def _estimated(batches: Floats) -> Estimated:
    error = float(batches.std(ddof=1)) / math.sqrt(len(batches))
    return Estimated(float(batches.mean()), error)


def replayed(pair: Pair, rule: Rule, interval_hours: float, *, batches: int = BATCHES, runs: int = RUNS) -> Runs:
    """Replay runs of the pair with this checkpoint interval."""
    draw = np.random.default_rng(SEED)
    state = _State.begun(pair, rule, interval_hours, _deviations(draw, batches, runs))
    while len(state.active):
        state.stretch(draw)
    shape = (batches, runs)
    columns = (state.end, state.called_at, state.paid, state.clock, state.standby_hours)
    end, called_at, paid, on_clock, standby = (column.reshape(shape) for column in columns)
    called = ~np.isnan(called_at)
    late = state.late.reshape(shape)
    return Runs(end, called_at, paid, on_clock, np.where(called, standby, 0.0), called, late)


@cache
def _edges(runs: int) -> Floats:
    """Standard normal quantiles of equally likely ranges."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((number + 0.5) / (8 * runs)) for number in range(8 * runs)])


def _deviations(draw: np.random.Generator, batches: int, runs: int) -> Floats:
    """One deviate from each of equally likely ranges, batch by batch: one of eight quantiles within each range."""
    inner = draw.integers(0, 8, size=(batches, runs))
    return np.asarray(_edges(runs)[8 * np.arange(runs) + inner].ravel())


class _State:
    """All runs at once: arrays with one element per run; `active` lists the runs that continue."""

    def __init__(
        self,
        rule: Rule,
        rate: float,
        *,
        count: Floats,
        length: Floats,
        work: Floats,
        waits: Floats,
        changeover: float,
    ) -> None:
        """The state after set-up."""
        runs = len(count)
        self.rule, self.rate, self.waits = rule, rate, waits
        self.count, self.length, self.work, self.changeover = count, length, work, changeover
        self.clock = np.full(runs, rule.setup_hours)
        self.paid = np.full(runs, rule.setup_hours)
        self.done = np.zeros(runs)
        self.called_at = np.full(runs, np.nan)
        self.end = np.full(runs, np.nan)
        self.standby_hours = np.zeros(runs)
        self.late = rule.setup_hours + length + changeover + work > rule.deadline_hours
        self.active = np.flatnonzero(~self.late)
        late = np.flatnonzero(self.late)
        self.clock[late] += length[late]
        self.paid[late] += length[late]
        self._call(late, self.clock[late], work[late])

    @staticmethod
    def begun(pair: Pair, rule: Rule, interval_hours: float, z: Floats) -> "_State":
        """The runs at these deviations of the estimate."""
        work = pair.work_hours * np.exp(pair.log_sigma * z)
        count = np.maximum(1.0, np.ceil(work / interval_hours - _HAIR))
        return _State(
            rule,
            pair.preemptions_per_hour,
            count=count,
            length=work / count + pair.checkpoint_hours,
            work=pair.standby_work_hours * np.exp(pair.standby_log_sigma * z),
            waits=pair.waits(rule.wait_hours, z),
            changeover=pair.changeover_hours,
        )

    def stretch(self, draw: np.random.Generator) -> None:
        """Advance every active run to its next preemption, the end of its work, or its call, and past the preemption."""
        runs = self.active
        clock, length, left = self.clock[runs], self.length[runs], self.count[runs] - self.done[runs]
        until = draw.exponential(1 / self.rate, len(runs))
        # Each segment uses its length of the time to `last`, and saves part of the standby's work.
        loses = length - self.work[runs] / self.count[runs]
        slack = self._last(runs) - clock + _HAIR
        attempts = np.full(len(runs), np.inf)
        losing = loses > 0
        attempts[losing] = np.floor(slack[losing] / loses[losing]) + 1
        attempts[slack < 0] = 0
        passed = np.minimum(np.minimum(np.floor(until / length), attempts), left)
        self._pass(runs, passed, passed * length)
        ends = passed == left
        calls = ~ends & (passed == attempts)
        self.end[runs[ends]] = self.clock[runs[ends]]
        self._call(runs[calls], self.clock[runs[calls]], self._left(runs[calls]))
        struck = ~ends & ~calls
        lost = (until - passed * length)[struck]
        self._pass(runs[struck], 0.0, lost)
        self.active = self._paused(runs[struck], draw)

    def _paused(self, runs: Ints, draw: np.random.Generator) -> Ints:
        """The runs that have restarted on a machine; the others have called the standby."""
        restart, back = self.rule.restart_hours, list[Ints]()
        while len(runs):
            last = self._last(runs)
            wait = draw.exponential(self.waits[runs]) if self.rule.wait_hours else np.zeros(len(runs))
            calls = self.clock[runs] + wait + restart > last
            latest = np.maximum(self.clock[runs], last - restart)
            self._call(runs[calls], latest[calls], self._left(runs[calls]))
            runs, wait = runs[~calls], wait[~calls]
            up = np.minimum(draw.exponential(1 / self.rate, len(runs)), restart)
            self.clock[runs] += wait + up
            self.paid[runs] += up
            back.append(runs[up == restart])
            runs = runs[up < restart]
        return np.sort(np.concatenate(back)) if back else runs

    def _pass(self, runs: Ints, segments: Floats | float, hours: Floats) -> None:
        self.done[runs] += segments
        self.clock[runs] += hours
        self.paid[runs] += hours

    def _last(self, runs: Ints) -> Floats:
        """The latest time to begin an attempt at the next segment."""
        return self.rule.deadline_hours - self.length[runs] - self.changeover - self._left(runs)

    def _left(self, runs: Ints) -> Floats:
        """Hours that the standby takes for the remaining work."""
        return (1.0 - self.done[runs] / self.count[runs]) * self.work[runs]

    def _call(self, runs: Ints, at: Floats, left: Floats) -> None:
        # The run waits for a machine until the call: hours on the clock, with storage, but unpaid.
        self.clock[runs] = at
        self.called_at[runs] = at
        self.standby_hours[runs] = left
        self.end[runs] = at + self.changeover + left
