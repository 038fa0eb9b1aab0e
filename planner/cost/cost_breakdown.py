"""Cost and duration of configurations as arrays: one formula per part of the cost breakdown.

    hours   = set-up + hours of a migration + expected wall hours of the work (preemption included)
    compute = nodes x price x E[billed(hours)]; a commitment's term is paid whole; the set-up share is shown apart
    storage = rate of the region x hours        egress = data to the region, once
    power   = owned machines only: nodes x kW x PUE x USD/kWh x hours

Expected means the mathematical expectation. The estimate is the median of a lognormal with `log_sigma`, whose mean is
e^(log_sigma^2 / 2) times the median. Wall hours are proportional to the work, so expected hours after set-up are the
estimated ones times that factor. Billed hours are the expectation of the rounded hours
(`gpuplan.planner.cost.billing_rounding`).

Quantiles (the median, the requested confidence, 95 %) are of the finish time. Its spread combines the estimate's band
(lognormal) with the preemption noise, approximated by the lognormal with the same coefficient of variation
c = standard deviation / run hours: sigma^2 = log_sigma^2 + ln(1 + c^2) around the wall hours of the estimate. (Adding c^2
itself would give a run of seconds a tail of millennia.) Waits add their log-spread between zones, which is not paid. Costs at
a quantile are the costs of its hours.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.planner.cost.billing_rounding import expected_billed, mean_factor, whole_steps
from gpuplan.planner.cost.preemption_and_checkpoint_interval import interrupted
from gpuplan.planner.cost.run_inputs import RUN_ARRAYS, Run
from gpuplan.planner.model.settings import PlannerSettings

Floats = NDArray[np.float64]

P95 = 0.95
#: A thousand years, in hours: prices have no meaning that far ahead, and calendars end soon after.
LONGEST_RUN_HOURS = 8_766_000.0
#: Up to this many standard deviations, hours at a confidence rise with the interruption rate. Above it, they need not:
#: the spread of preemption falls faster than the share of an interruptible phase rises
#: (r / (2 (1 + r) sqrt(ln(1 + r))) is at most 1 / 3.13).
RISING_UP_TO = 3.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostBreakdown:
    """One element per configuration: hours from start to finish and USD by part.

    `hours` and all USD are expectations unless named after a quantile. `hours` contain the paid `run_hours` after
    set-up and the unpaid `waiting_hours` for preempted machines to come back. `log_sigma` is the spread of the
    estimate, `sigma` that of the hours after set-up, `paid_sigma` that of the paid ones among them. Half of the runs
    exceed `hours_median`; runs stay within `hours_at_confidence` with the requested confidence and within `hours_p95` with
    95 %. Quantiles are infinite if the run never ends (or takes over a thousand years) or its price kind does not allow it.
    """

    hours: Floats
    hours_median: Floats
    hours_at_confidence: Floats
    hours_p95: Floats
    run_hours: Floats
    waiting_hours: Floats
    log_sigma: Floats
    sigma: Floats
    paid_sigma: Floats
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
        """Expected hours after set-up per estimated (median) hour."""
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
    """The configurations at the indices `which`, each with a `share` of its work as one phase of a longer run.

    All arguments have one element per element of `which`. `share` is in (0, 1]; `first` marks first phases. The other
    properties are those of the whole run.
    """
    taken = {name: getattr(run, name).take(which) for name in RUN_ARRAYS}
    taken["work_hours"] = taken["work_hours"] * share
    takeover = None if run.takeover is None else run.takeover.take(which, first)
    return Run(**taken | {"beside_hours": beside_hours, "egress_usd": egress_usd}, takeover=takeover)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Clock:
    """Hours of a run by purpose, one element per configuration; `hours` is the expected total.

    `run_hours`, `waiting_hours` and their sum `wall_hours` are those of a run as long as estimated (the median); expected
    ones are `factor` times longer. `fixed_hours` are certain. `paid_sigma` lacks what only unpaid waits add to `sigma`.
    """

    fixed_hours: Floats
    run_hours: Floats
    waiting_hours: Floats
    wall_hours: Floats
    factor: Floats
    hours: Floats
    sigma: Floats
    paid_sigma: Floats

    def at_confidence(self, run: Run, confidence: float) -> Floats:
        """Hours not exceeded with this confidence; inf if the run never ends or its price kind does not allow it."""
        longest = run.longest_hours if run.takeover is None else run.longest_hours - run.takeover.up_hours
        hours = self.at(confidence)
        hours[self.hours > np.minimum(longest, LONGEST_RUN_HOURS)] = np.inf
        return hours

    def at(self, probability: float) -> Floats:
        """The hours at this quantile."""
        return np.asarray(self.fixed_hours + self.wall_hours * np.exp(z_score(probability) * self.sigma))


def _clock(run: Run, settings: PlannerSettings) -> _Clock:
    """The hours of every configuration, with preemption where the rate is above 0."""
    run_hours, waiting, sigma = run.work_hours, np.zeros(len(run)), run.log_sigma
    paid_sigma = sigma
    hit = np.flatnonzero((run.cluster_rate > 0) & (run_hours > 0) & (run_hours < np.inf))
    if len(hit):
        ran = interrupted(
            run_hours[hit],
            run.checkpoint_hours[hit],
            settings.restart_hours,
            run.cluster_rate[hit],
            wait_hours=run.wait_hours[hit],
        )
        run_hours, sigma, paid_sigma = run_hours.copy(), sigma.copy(), sigma.copy()
        run_hours[hit], waiting[hit] = ran.run_hours, ran.waiting_hours
        paid_sigma[hit] = np.sqrt(sigma[hit] ** 2 + ran.paid_log_variance)
        sigma[hit] = np.sqrt(sigma[hit] ** 2 + ran.log_variance)
    fixed_hours = run.setup_hours + run.beside_hours
    wall_hours, factor = run_hours + waiting, mean_factor(run.log_sigma)
    return _Clock(
        fixed_hours=fixed_hours,
        run_hours=run_hours,
        waiting_hours=waiting,
        wall_hours=wall_hours,
        factor=factor,
        hours=fixed_hours + wall_hours * factor,
        sigma=sigma,
        paid_sigma=paid_sigma,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outline:
    """The fields of a `CostBreakdown` by which plans are compared."""

    hours_at_confidence: Floats
    sigma: Floats
    cost_usd: Floats


def outline(run: Run, confidence: float, settings: PlannerSettings) -> Outline:
    """Total hours and cost of every configuration, equal to those of `cost_breakdown`; faster for comparing many."""
    clock, one_off_usd = _clock(run, settings), run.egress_usd
    if run.takeover is not None:
        one_off_usd = one_off_usd + run.takeover.fetch_usd + run.takeover.lead_usd
    compute, power, storage = _expected_costs(run, clock)
    return Outline(
        hours_at_confidence=clock.at_confidence(run, confidence),
        sigma=clock.sigma,
        cost_usd=compute + power + storage + one_off_usd,
    )


def cost_breakdown(run: Run, confidence: float, settings: PlannerSettings) -> CostBreakdown:
    """Hours and costs of every configuration."""
    clock = _clock(run, settings)
    fixed_hours, taking_over = clock.fixed_hours, run.takeover
    median, p95 = clock.fixed_hours + clock.wall_hours, clock.at(P95)
    # Independent waits are the same share of the hours after set-up at every quantile; those between zones are unpaid.
    paid_p95 = fixed_hours + clock.run_hours * np.exp(z_score(P95) * clock.paid_sigma)
    compute, power, storage = _expected_costs(run, clock)
    setup = run.nodes * run.usd_per_node_hour * fixed_hours
    setup[run.term_hours > 0] = 0.0
    # A run shorter than the billing minimum pays for more than its hours; the surplus counts as compute.
    setup = np.minimum(setup, compute)
    egress, one_off_usd = run.egress_usd, run.egress_usd
    # The set-up cost shown includes the cost of the earlier machines.
    shown = setup
    if taking_over is not None:
        egress = egress + taking_over.fetch_usd
        one_off_usd, shown = egress + taking_over.lead_usd, setup + taking_over.lead_usd
    return CostBreakdown(
        hours=clock.hours,
        hours_median=median,
        hours_at_confidence=clock.at_confidence(run, confidence),
        hours_p95=p95,
        run_hours=clock.run_hours * clock.factor,
        waiting_hours=clock.waiting_hours * clock.factor,
        log_sigma=run.log_sigma,
        sigma=clock.sigma,
        paid_sigma=clock.paid_sigma,
        compute_usd=compute - setup,
        setup_usd=shown,
        storage_usd=storage,
        egress_usd=egress,
        power_usd=power,
        cost_usd=compute + power + storage + one_off_usd,
        cost_median_usd=_certain_costs(run, median, fixed_hours + clock.run_hours) + one_off_usd,
        cost_p95_usd=_certain_costs(run, p95, paid_p95) + one_off_usd,
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
    """Compute, power and storage in USD of a run of `hours` wall hours, of which machines are up for `paid_hours`."""
    step, minimum = _billing(run)
    before = 0.0 if run.takeover is None else run.takeover.up_hours
    billed = whole_steps(before + paid_hours, step, minimum) - _billed_so_far(run)
    node_usd = run.usd_per_node_hour * billed + run.power_usd_per_node_hour * paid_hours
    return run.nodes * node_usd + run.storage_usd_per_hour * hours


def _expected_billed_hours(run: Run, certain_hours: Floats, mean_hours: Floats) -> Floats:
    """Expected billed hours of one node: whole terms under a commitment, else whole billing steps, at least the minimum.

    For machines that are already up, only the hours billed from now on.
    """
    step, minimum = _billing(run)
    before = 0.0 if run.takeover is None else run.takeover.up_hours
    billed = expected_billed(before + certain_hours, mean_hours, run.log_sigma, step, minimum)
    return billed - _billed_so_far(run)


def _billed_so_far(run: Run) -> Floats | float:
    """Hours already billed for machines that are up."""
    if run.takeover is None:
        return 0.0
    before = run.takeover.up_hours
    return np.where(before > 0, whole_steps(before, *_billing(run)), 0.0)


def _billing(run: Run) -> tuple[Floats, Floats]:
    """Hours of a billing step (the whole term under a commitment) and of the billing minimum."""
    if not run.term_hours.any():
        return run.billing_step_hours, run.billing_minimum_hours
    term = run.term_hours > 0
    return np.where(term, run.term_hours, run.billing_step_hours), np.where(term, 0.0, run.billing_minimum_hours)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BillingTables:
    """Properties of price kinds as columns, times in hours; `longest_hours` is inf for a kind without a limit."""

    interruptible: NDArray[np.bool_]
    step_hours: Floats
    minimum_hours: Floats
    term_hours: Floats
    longest_hours: Floats


def billing_tables(names: tuple[str, ...]) -> BillingTables:
    """The properties of these kinds, in this order."""
    kinds = [price_kinds()[name] for name in names]
    return BillingTables(
        interruptible=np.array([kind.interruptible for kind in kinds]),
        step_hours=np.array([kind.billing_step_seconds / 3600 for kind in kinds]),
        minimum_hours=np.array([kind.billing_minimum_seconds / 3600 for kind in kinds]),
        term_hours=np.array([float(kind.term_hours) for kind in kinds]),
        longest_hours=np.array([kind.max_run_hours or np.inf for kind in kinds]),
    )


def deadline_probability(
    breakdown: CostBreakdown,
    index: int,
    deadline_hours: float,
    *,
    before_hours: float,
) -> float:
    """Probability that configuration `index`, which does its first step after `before_hours`, finishes within the deadline."""
    room = deadline_hours - before_hours
    if room <= 0:
        return 0.0
    sigma = float(breakdown.sigma[index])
    median = (breakdown.run_hours[index] + breakdown.waiting_hours[index]) / breakdown.mean_factor[index]
    excess = float(np.log(room / median))
    return (1.0 if excess >= 0 else 0.0) if sigma == 0 else NormalDist().cdf(excess / sigma)


def z_score(probability: float) -> float:
    """The standard normal quantile of a probability."""
    return NormalDist().inv_cdf(probability)


def rises_with_preemption(confidence: float) -> bool:
    """Whether hours at this confidence never fall as the interruption rate rises.

    They may fall below the median, where a wider spread gives an earlier quantile, and above `RISING_UP_TO` deviations.
    """
    return 0.0 <= z_score(confidence) <= RISING_UP_TO
