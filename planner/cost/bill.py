"""What a configuration costs and how long it takes: one formula per line of the bill, over arrays.

    hours   = set-up + what a move takes + expected wall hours of the work (preemption included)
    compute = nodes x price x E[billed(hours)], a term paid whole; the set-up share is shown apart
    storage = rate of the place x hours        egress = data to the place, once
    power   = owned machines only: nodes x kW x PUE x USD/kWh x hours

Expected means expectation. The estimate is the median of a lognormal of `log_sigma`, whose mean is e^(log_sigma^2 / 2) times
that, and wall hours are proportional to the work; so expected hours after set-up are those of the estimate times that
factor, and billed hours are the expectation of what is rounded up (`planner.cost.expected_billing`).

Quantiles (the median, the asked confidence, 95 %) are those of the spread of the finish, which joins the estimate's band (lognormal) and the preemption noise, taken as the
lognormal of the same coefficient of variation c = standard deviation / run hours:
sigma^2 = log_sigma^2 + ln(1 + c^2) around the wall hours of the estimate. (Adding c^2 itself would give a run of seconds a
tail of millennia.) Costs at a quantile are those of its hours.
"""

from dataclasses import dataclass, fields
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from catalog.price_kinds import price_kinds
from planner.cost.expected_billing import expected_billed, mean_factor, whole_steps
from planner.cost.preemption import interrupted
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]

P95 = 0.95
#: A thousand years, in hours: no price means anything by then, and calendars end soon after.
LONGEST_RUN_HOURS = 8_766_000.0
#: Above this many standard deviations, hours at a confidence need not rise with what is interrupted: the spread of
#: preemption falls faster than the share of an interruptible phase rises (r / (2 (1 + r) sqrt(ln(1 + r))) is at most
#: 1 / 3.13).
RISING_UP_TO = 3.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TakeOver:
    """One element per configuration, where a job is under way: what differs for its first machines from now.

    `ready_hours` of set-up are spared and `up_hours` have been billed so far, both 0 but on machines that run it already.
    On others, `fetch_usd` brings the checkpoint, `lead_usd` is paid for the machines that write it, and `delay_hours` pass
    on the clock until these can start, which no bill shows.
    """

    ready_hours: Floats
    up_hours: Floats
    fetch_usd: Floats
    lead_usd: Floats
    delay_hours: Floats

    def only(self, which: NDArray[np.int64]) -> "TakeOver":
        """Some elements."""
        return TakeOver(**{each.name: getattr(self, each.name)[which] for each in fields(TakeOver)})

    def take(self, which: NDArray[np.int64], first: NDArray[np.bool_]) -> "TakeOver":
        """Some elements; those that are not `first` of a plan take over from its earlier machines, at no cost of these."""
        return TakeOver(
            ready_hours=self.ready_hours[which],
            up_hours=self.up_hours[which],
            fetch_usd=np.where(first, self.fetch_usd[which], 0.0),
            lead_usd=np.where(first, self.lead_usd[which], 0.0),
            delay_hours=np.where(first, self.delay_hours[which], 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One element per configuration: what is bought, before time and money are worked out.

    `work_hours` is training time at the stated goodput, as estimated: the median; `cluster_rate` preemptions per hour of all
    nodes together; `checkpoint_hours` the time to write one checkpoint; `longest_hours` what the
    price kind allows in one run (inf: any). `beside_hours` are paid beside set-up and work: what a phase takes to
    hand over to the next. Money is in USD. `takeover` is None for a job that starts.
    """

    nodes: Floats
    work_hours: Floats
    beside_hours: Floats
    log_sigma: Floats
    cluster_rate: Floats
    checkpoint_hours: Floats
    usd_per_node_hour: Floats
    power_usd_per_node_hour: Floats
    egress_usd: Floats
    storage_usd_per_hour: Floats
    billing_step_hours: Floats
    billing_minimum_hours: Floats
    term_hours: Floats
    longest_hours: Floats
    takeover: TakeOver | None = None

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.nodes)

    def take(self, which: NDArray[np.int64]) -> "Run":
        """What is bought in some of them."""
        arrays = {name: getattr(self, name)[which] for name in RUN_ARRAYS}
        return Run(**arrays, takeover=None if self.takeover is None else self.takeover.only(which))

    def setup_hours(self, settings: PlannerSettings) -> Floats:
        """Hours before the first step of work, per configuration."""
        spared = 0.0 if self.takeover is None else self.takeover.ready_hours
        return np.asarray(settings.setup_hours - spared + np.zeros(len(self)))


#: The fields of a run that have one element per configuration.
RUN_ARRAYS = tuple(each.name for each in fields(Run) if each.name != "takeover")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bill:
    """One element per configuration: hours from start to finish and USD by part.

    `hours`, and USD but for those of a quantile, are expectations. `run_hours` are those paid for beside set-up,
    `waiting_hours` unpaid ones for machines to come back, both in `hours`. `log_sigma` is the spread of the estimate, `sigma`
    that of the hours after set-up. `hours_median` are exceeded by half of the runs, `hours_kept` are not exceeded with the asked confidence, `hours_p95` with 95 %. Infinite where
    the run never ends (a thousand years count as that) or its price kind does not allow it.
    """

    hours: Floats
    hours_median: Floats
    hours_kept: Floats
    hours_p95: Floats
    run_hours: Floats
    waiting_hours: Floats
    log_sigma: Floats
    sigma: Floats
    compute_usd: Floats
    setup_usd: Floats
    storage_usd: Floats
    egress_usd: Floats
    power_usd: Floats
    cost_usd: Floats
    cost_median_usd: Floats
    cost_p95_usd: Floats

    @property
    def mean_factor(self) -> Floats:
        """Expected hours after set-up per hour at the estimate itself."""
        return mean_factor(self.log_sigma)


def part(
    run: Run,
    which: NDArray[np.int64],
    share: Floats,
    *,
    beside_hours: Floats,
    egress_usd: Floats,
    first: NDArray[np.bool_],
) -> Run:
    """A share of the work of some configurations, as one phase of a longer run: everything else as for the whole.

    One element per element of `which`, which indexes `run`; `share` lies in (0, 1], `first` marks first phases.
    """
    taken = {name: getattr(run, name)[which] for name in RUN_ARRAYS}
    taken["work_hours"] = taken["work_hours"] * share
    takeover = None if run.takeover is None else run.takeover.take(which, first)
    return Run(**taken | {"beside_hours": beside_hours, "egress_usd": egress_usd}, takeover=takeover)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Clock:
    """One element per configuration: hours of a run by what they are for; `hours` are all of them, expected.

    `run_hours`, `waiting_hours` and both together, `wall_hours`, are those of a run that takes what was estimated;
    expected ones are `factor` times that.
    """

    fixed_hours: Floats
    run_hours: Floats
    waiting_hours: Floats
    wall_hours: Floats
    factor: Floats
    hours: Floats
    sigma: Floats

    def kept(self, run: Run, confidence: float) -> Floats:
        """Hours that are not exceeded with this confidence; inf where the run never ends or its kind does not allow it."""
        longest = run.longest_hours if run.takeover is None else run.longest_hours - run.takeover.up_hours
        kept = self.at(confidence)
        kept[self.hours > np.minimum(longest, LONGEST_RUN_HOURS)] = np.inf
        return kept

    def at(self, probability: float) -> Floats:
        """This quantile of the hours."""
        return np.asarray(self.fixed_hours + self.wall_hours * np.exp(z_score(probability) * self.sigma))


def _clock(run: Run, settings: PlannerSettings) -> _Clock:
    """The hours of every configuration; preemption is worked out where there is any."""
    run_hours, waiting, sigma = run.work_hours, np.zeros(len(run)), run.log_sigma
    hit = np.flatnonzero((run.cluster_rate > 0) & (run_hours > 0) & (run_hours < np.inf))
    if len(hit):
        ran = interrupted(
            run_hours[hit],
            run.checkpoint_hours[hit],
            settings.restart_hours,
            run.cluster_rate[hit],
            wait_hours=settings.spot_wait_hours,
        )
        run_hours, sigma = run_hours.copy(), sigma.copy()
        run_hours[hit], waiting[hit] = ran.run_hours, ran.waiting_hours
        sigma[hit] = np.sqrt(sigma[hit] ** 2 + ran.log_variance)
    fixed_hours = settings.setup_hours + run.beside_hours
    if run.takeover is not None:
        fixed_hours = fixed_hours - run.takeover.ready_hours
    wall_hours, factor = run_hours + waiting, mean_factor(run.log_sigma)
    return _Clock(
        fixed_hours=fixed_hours,
        run_hours=run_hours,
        waiting_hours=waiting,
        wall_hours=wall_hours,
        factor=factor,
        hours=fixed_hours + wall_hours * factor,
        sigma=sigma,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outline:
    """What plans are compared by, as a `Bill` has it."""

    hours_kept: Floats
    sigma: Floats
    cost_usd: Floats


def outline(run: Run, confidence: float, settings: PlannerSettings) -> Outline:
    """Hours and money of every configuration in all, as `bill` has them: for many that are compared by these alone."""
    clock, once = _clock(run, settings), run.egress_usd
    if run.takeover is not None:
        once = once + run.takeover.fetch_usd + run.takeover.lead_usd
    compute, power, storage = _expected_costs(run, clock)
    return Outline(hours_kept=clock.kept(run, confidence), sigma=clock.sigma, cost_usd=compute + power + storage + once)


def bill(run: Run, confidence: float, settings: PlannerSettings) -> Bill:
    """Hours and money of every configuration."""
    clock = _clock(run, settings)
    fixed_hours, taking_over = clock.fixed_hours, run.takeover
    median, p95 = clock.fixed_hours + clock.wall_hours, clock.at(P95)
    # Of the hours after set-up, waits take the same share whenever the run ends.
    waits = 1.0 + run.cluster_rate * settings.spot_wait_hours
    compute, power, storage = _expected_costs(run, clock)
    setup = run.nodes * run.usd_per_node_hour * fixed_hours
    setup[run.term_hours > 0] = 0.0
    # A run shorter than the billing minimum pays more than its hours; the surplus counts as compute.
    setup = np.minimum(setup, compute)
    egress, once = run.egress_usd, run.egress_usd
    # Set-up as it is shown, with what was paid for the machines before.
    shown = setup
    if taking_over is not None:
        egress = egress + taking_over.fetch_usd
        once, shown = egress + taking_over.lead_usd, setup + taking_over.lead_usd
    return Bill(
        hours=clock.hours,
        hours_median=median,
        hours_kept=clock.kept(run, confidence),
        hours_p95=p95,
        run_hours=clock.run_hours * clock.factor,
        waiting_hours=clock.waiting_hours * clock.factor,
        log_sigma=run.log_sigma,
        sigma=clock.sigma,
        compute_usd=compute - setup,
        setup_usd=shown,
        storage_usd=storage,
        egress_usd=egress,
        power_usd=power,
        cost_usd=compute + power + storage + once,
        cost_median_usd=_certain_costs(run, median, fixed_hours + clock.run_hours) + once,
        cost_p95_usd=_certain_costs(run, p95, fixed_hours + (p95 - fixed_hours) / waits) + once,
    )


def _expected_costs(run: Run, clock: _Clock) -> tuple[Floats, Floats, Floats]:
    """Expected compute, power and storage in USD."""
    run_hours = clock.run_hours * clock.factor
    return (
        run.nodes * run.usd_per_node_hour * _expected_billed_hours(run, clock.fixed_hours, run_hours),
        run.nodes * run.power_usd_per_node_hour * (clock.fixed_hours + run_hours),
        run.storage_usd_per_hour * clock.hours,
    )


def _certain_costs(run: Run, hours: Floats, paid_hours: Floats) -> Floats:
    """Compute, power and storage in USD of a run that takes `hours` on the clock, of which machines are up for `paid_hours`."""
    step, minimum = _billing(run)
    before = 0.0 if run.takeover is None else run.takeover.up_hours
    billed = whole_steps(before + paid_hours, step, minimum) - _billed_so_far(run)
    node_usd = run.usd_per_node_hour * billed + run.power_usd_per_node_hour * paid_hours
    return run.nodes * node_usd + run.storage_usd_per_hour * hours


def _expected_billed_hours(run: Run, certain_hours: Floats, mean_hours: Floats) -> Floats:
    """Expected hours that one node is billed for: whole terms where there is one, else whole billing steps, at least the
    minimum. Of machines that have been up for a while, what is billed beyond the bill so far.
    """
    step, minimum = _billing(run)
    before = 0.0 if run.takeover is None else run.takeover.up_hours
    billed = expected_billed(before + certain_hours, mean_hours, run.log_sigma, step, minimum)
    return billed - _billed_so_far(run)


def _billed_so_far(run: Run) -> Floats | float:
    """Hours that machines which have been up for a while are billed for already."""
    if run.takeover is None:
        return 0.0
    before = run.takeover.up_hours
    return np.where(before > 0, whole_steps(before, *_billing(run)), 0.0)


def _billing(run: Run) -> tuple[Floats, Floats]:
    """Hours of a billing step, the whole term where there is one, and of the minimum."""
    if not run.term_hours.any():
        return run.billing_step_hours, run.billing_minimum_hours
    term = run.term_hours > 0
    return np.where(term, run.term_hours, run.billing_step_hours), np.where(term, 0.0, run.billing_minimum_hours)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BillingTables:
    """Properties of price kinds as columns, times in hours; a kind without a longest run has inf."""

    interruptible: NDArray[np.bool_]
    step_hours: Floats
    minimum_hours: Floats
    term_hours: Floats
    longest_hours: Floats


@cache
def billing_tables(names: tuple[str, ...]) -> BillingTables:
    """The columns of these kinds, in this order."""
    kinds = [price_kinds()[name] for name in names]
    return BillingTables(
        interruptible=np.array([kind.interruptible for kind in kinds]),
        step_hours=np.array([kind.billing_step_seconds / 3600 for kind in kinds]),
        minimum_hours=np.array([kind.billing_minimum_seconds / 3600 for kind in kinds]),
        term_hours=np.array([float(kind.term_hours) for kind in kinds]),
        longest_hours=np.array([kind.max_run_hours or np.inf for kind in kinds]),
    )


def deadline_probability(
    bill_: Bill, index: int, deadline_hours: float, settings: PlannerSettings, *, before_hours: float | None = None
) -> float:
    """Probability that configuration `index` finishes within the deadline; `before_hours` stand for its set-up where given."""
    room = deadline_hours - (settings.setup_hours if before_hours is None else before_hours)
    if room <= 0:
        return 0.0
    sigma = float(bill_.sigma[index])
    median = (bill_.run_hours[index] + bill_.waiting_hours[index]) / bill_.mean_factor[index]
    excess = float(np.log(room / median))
    return (1.0 if excess >= 0 else 0.0) if sigma == 0 else NormalDist().cdf(excess / sigma)


@lru_cache(maxsize=256)
def z_score(probability: float) -> float:
    """The standard normal quantile of a probability."""
    return NormalDist().inv_cdf(probability)


def rises_with_preemption(confidence: float) -> bool:
    """Whether hours at this confidence never fall as machines are taken away more often.

    They may below the median, where a wider spread is an earlier quantile, and above `RISING_UP_TO` deviations.
    """
    return 0.0 <= z_score(confidence) <= RISING_UP_TO
