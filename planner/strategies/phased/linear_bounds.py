"""Linear lower bounds on the cost and hours of a share of the work on each configuration.

A phase does a share x of the work on configuration k, in whole steps of 1/100,000 of the work:

    cost_k(x)  = the cost of x times the work (set-up, minimum, billing steps as for any run), plus writing the
                 checkpoint at its end unless it is the last phase
    hours_k(x) = set-up + that writing + the hours of x times the work at the requested confidence

The cost is an expected cost, so its hours are mean hours: e^(sigma^2 / 2) times the estimate's hours after set-up. One
common factor scales the estimates of all phases, so quantiles of phases add up exactly. Affine functions lie below both,
and every bound of the search rests on them:

    cost_k(x) >= A_k + B_k x          hours_k(x) >= a_k + b_k x

Without preemption the cost exceeds its line only by rounding up to the billing step (and by the minimum). With
preemption, hours rise by r per hour of work from the first full checkpoint interval tau on. Below tau, an hour of work
takes at least r_0 wall hours at any checkpoint interval t:

    r_0 = e^(lambda R) min_t (e^(lambda (t + d)) - 1) / (lambda t) = e^(lambda R) / (1 - y),  e^(-y - lambda d) = 1 - y

(Daly 2006). So E[T] >= r w - (r - r_0) tau for every w, and E[T] >= r_0 w, which is the tighter line below tau (`early`):
where many machines are preempted often, the first line is far below zero there. The spread of a share is at least that of
the whole run, or, within one interval, the minimum of R^2 / v + R + v / 3 over v = w + d. A window can only add hours.

Below the median a wider spread means fewer hours, so confident hours need an upper bound on the spread instead. From
tau on they are T(w) = g w e^(z sigma), z < 0, with sigma^2 = L^2 + ln(1 + k / w), and convex in w (`concave_below_sigma`
has the second derivative): the tangent at all the work, T(W) (1 + |z| h / (2 sigma)) w / W - T(W) |z| h / (2 sigma) with
h = k / (k + W), lies below them. For less work, r_0 w e^(z s) lies below them, with s the spread at the larger end of
R^2 / v + R + v / 3, which is convex in v, over v from d to tau + d. The tangent is lowered until it lies below that line
at tau. As it starts below zero, it then lies below the hours of every share.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations, run_of
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.cost.cost_breakdown import LONGEST_RUN_HOURS, CostBreakdown, z_score
from gpuplan.planner.cost.preemption_and_checkpoint_interval import wait_log_spread
from gpuplan.planner.cost.run_inputs import Run, TakeOver
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS, LinearUnderestimator
from gpuplan.planner.strategies.phased.migration_classes import migration_classes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lined:
    """Configurations of `table`, the machines run for each of them (`run`), and the lines below them (`linear_bounds`).

    The lines are computed on first use, unless they are `known`: most jobs need none.
    """

    candidates: Candidates
    table: Configurations
    run: Run
    known: LinearUnderestimator | None = None

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.table)

    @cached_property
    def migration_class(self) -> Ints:
        """Configurations between which a run can move: same software stack, same planned precision."""
        return migration_classes(self.candidates, self.table) if self.known is None else self.known.migration_class

    @cached_property
    def linear_bounds(self) -> LinearUnderestimator:
        """The lines below cost and hours of each configuration."""
        return _lines(self) if self.known is None else self.known

    def take(self, which: Ints) -> "Lined":
        """Some of the configurations; each is independent of the others."""
        some = self.linear_bounds.take(which)
        return Lined(candidates=self.candidates, table=self.table.take(which), run=self.run.take(which), known=some)


def lined(candidates: Candidates, table: Configurations) -> Lined:
    """Some of the candidate configurations (`table`), with the lines below them."""
    run = run_of(candidates.question, table, candidates.estimated, candidates.costs)
    return Lined(candidates=candidates, table=table, run=run)


def usd_by_the_hour(run: Run) -> tuple[Floats, Floats]:
    """Per configuration: USD per hour that its machines are up, and USD paid once however short a phase is."""
    by_hour = run.nodes * run.power_usd_per_node_hour + run.storage_usd_per_hour
    compute, term = run.nodes * run.usd_per_node_hour, run.term_hours > 0
    per_hour = by_hour + np.where(term, 0.0, compute)
    once_usd = np.where(term, compute * run.term_hours, 0.0)
    if run.takeover is not None:
        # What was billed ahead for machines that are up is the most by which a bill from now may fall short.
        once_usd = once_usd - compute * _paid_ahead(run, run.takeover)
    return per_hour, once_usd


def _lines(some: Lined) -> LinearUnderestimator:
    question, table, run = some.candidates.question, some.table, some.run
    job = question.job
    deadline = np.inf if job.deadline_hours is None else job.deadline_hours
    slowed = _slowed(run, table.cost_breakdown, question)
    setup, (per_hour, once_usd) = run.setup_hours, usd_by_the_hour(run)
    wall_hours, least_hours = run.work_hours * slowed.growth, run.work_hours * slowed.least
    # Cost uses expected hours, time uses quantiles around the hours of the estimate.
    mean = mean_factor(run.log_sigma)
    slope_hours, spared_hours = slowed.confident.slope_hours, slowed.confident.spared_hours
    caps = _caps(question, run, windowed_machines(some.candidates, table), setup=setup, slowed=slowed)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.maximum(deadline - setup + spared_hours, 0.0)
        in_time = np.where(slope_hours > 0, room / slope_hours, 1.0)
    return LinearUnderestimator.of(
        (
            per_hour * (setup - slowed.spared_hours * mean) + once_usd,
            per_hour * wall_hours * mean,
            setup - spared_hours,
            slope_hours,
        ),
        (per_hour * setup + once_usd, per_hour * least_hours * mean, setup, slowed.confident.least_hours),
        data_usd=run.egress_usd,
        caps=caps,
        migration_class=some.migration_class,
        most_steps=np.floor(np.minimum(caps, in_time) * STEPS + 1e-6).astype(np.int64),
        deadline_hours=deadline,
    )


def _paid_ahead(run: Run, takeover: TakeOver) -> Floats:
    """Hours per node that are billed already and lie ahead; a whole term where one is running."""
    up = takeover.up_hours
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.maximum(np.ceil(up / run.billing_step_hours) * run.billing_step_hours, run.billing_minimum_hours)
    return np.where(up > 0, np.where(run.term_hours > 0, run.term_hours, np.maximum(steps - up, 0.0)), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ConfidentHours:
    """Lower bounds on the hours of all the work at the requested confidence.

    The line of large shares rises by `slope_hours` from `-spared_hours`, that of small shares by `least_hours` from 0.
    """

    slope_hours: Floats
    spared_hours: Floats
    least_hours: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slowed:
    """How preemption stretches the work of each configuration.

    `growth` is wall hours per hour of work as estimated, `spared_hours` what to subtract so that the line lies below every
    share, `least` the least wall hours of an hour of work, and `confident` the hours on the clock at the confidence.
    """

    growth: Floats
    spared_hours: Floats
    least: Floats
    confident: _ConfidentHours


def _slowed(run: Run, whole: CostBreakdown, question: Question) -> _Slowed:
    """`whole` is the cost breakdown of all the work."""
    settings, z = question.settings, z_score(question.job.confidence)
    growth, spared, least = np.ones(len(run)), np.zeros(len(run)), np.ones(len(run))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    risk = _Risk(
        work=run.work_hours[hit],
        rate=run.cluster_rate[hit],
        wait=run.wait_hours[hit],
        write=run.checkpoint_hours[hit],
        # The spread of waits between zones is that of every share of a run, like the error of the estimate.
        log_sigma=np.hypot(run.log_sigma[hit], wait_log_spread(run.cluster_rate[hit], run.wait_hours[hit])),
        whole_hours=whole.run_hours[hit] / mean_factor(run.log_sigma[hit]),
        whole_sigma=whole.sigma[hit],
    )
    if len(hit):
        growth[hit], spared[hit], least[hit] = _growth(risk, settings.restart_hours)
    sigma = run.log_sigma.copy()
    if z >= 0 and len(hit):
        sigma[hit] = _least_sigma(risk, settings)
    # Waiting for preempted machines to return counts on the clock, not in the cost.
    longer = np.exp(z * sigma) * (1.0 + run.cluster_rate * run.wait_hours)
    confident = _ConfidentHours(
        slope_hours=run.work_hours * growth * longer,
        spared_hours=spared * longer,
        least_hours=run.work_hours * least * longer,
    )
    if z < 0 and len(hit):
        below = _below_the_median(risk, least[hit], z, settings)
        for field in fields(_ConfidentHours):
            getattr(confident, field.name)[hit] = getattr(below, field.name)
    return _Slowed(growth=growth, spared_hours=spared, least=least, confident=confident)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Risk:
    """Interruptible configurations.

    Hours of work, preemptions per hour, hours of waiting after each, hours to write a checkpoint, log-spread of the estimate and of waits between zones, and,
    for all the work, the expected hours up and their log-spread.
    """

    work: Floats
    rate: Floats
    wait: Floats
    write: Floats
    log_sigma: Floats
    whole_hours: Floats
    whole_sigma: Floats

    @property
    def interval_hours(self) -> Floats:
        """Hours of work between checkpoints, where there is more work than that."""
        return np.sqrt(2.0 * self.write / self.rate)

    @property
    def exposed_hours(self) -> Floats:
        """Hours from one checkpoint to the end of the next."""
        return self.interval_hours + self.write


#: Newton steps towards y, from above: the fourth is exact to float precision.
_NEWTON = 4


def _growth(risk: _Risk, restart_hours: float) -> tuple[Floats, Floats, Floats]:
    """Wall hours per hour of work, hours to subtract so that the line lies below every share, and least wall hours per hour."""
    lost = np.maximum(risk.rate * risk.write, 1e-24)
    y = np.minimum(np.sqrt(2 * lost), 1.0)
    for _ in range(_NEWTON):
        y = y + (y / np.expm1(-(y + lost)) + 1.0)
    with np.errstate(over="ignore"):
        # Slightly less than the root keeps the bound valid.
        least = np.exp(np.minimum(risk.rate * restart_hours, 700.0)) / (1 - np.clip(y, 0.0, 1.0) * (1 - 1e-9))
    interval = risk.interval_hours
    whole = risk.whole_hours / risk.work
    saves = (risk.work >= interval) & (whole > least)
    return np.where(saves, whole, least), np.where(saves, (whole - least) * interval, 0.0), least


def _least_sigma(risk: _Risk, settings: PlannerSettings) -> Floats:
    """A lower bound on the log-spread of every share of a run."""
    rate = risk.rate
    exposed = rate * risk.exposed_hours
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # Expected hours of a share within one interval lie below the chord from zero to a whole interval.
        chord = np.exp(np.minimum(rate * settings.restart_hours, 700.0)) * np.where(
            exposed > 0, np.expm1(np.minimum(exposed, 700.0)) / exposed, 1.0
        )
    # Waits add to the spread, and to the hours it is relative to.
    waits = 1.0 + rate * risk.wait
    short = rate * settings.restart_hours * (1 + 2 / np.sqrt(3)) / chord / waits**2
    variation = np.minimum(np.expm1(risk.whole_sigma**2 - risk.log_sigma**2), short)
    return np.asarray(np.sqrt(risk.log_sigma**2 + np.log1p(np.maximum(variation, 0.0))))


def _most_sigma(risk: _Risk, settings: PlannerSettings) -> Floats:
    """An upper bound on the log-spread of every share of a run; inf where a checkpoint takes no time."""
    rate, restart, wait = risk.rate, settings.restart_hours, risk.wait
    variation = np.zeros(len(rate))
    with np.errstate(divide="ignore", over="ignore"):
        for exposed in (risk.write, risk.exposed_hours):
            # Squared hours that one failure costs, divided by the hours between failures.
            squared = restart**2 / exposed + restart + exposed / 3.0
            squared = squared + 2.0 * wait * ((restart + wait) / exposed + 0.5)
            variation = np.maximum(variation, rate * squared)
        variation /= np.exp(np.minimum(rate * restart, 700.0)) * (1.0 + rate * wait) ** 2
    return np.asarray(np.sqrt(risk.log_sigma**2 + np.log1p(variation)))


def _below_the_median(risk: _Risk, least: Floats, z: float, settings: PlannerSettings) -> _ConfidentHours:
    """The confident hours at z < 0, where an hour of work takes at least `least` hours up."""
    waits, interval = 1.0 + risk.rate * risk.wait, np.maximum(risk.interval_hours, 1e-9)
    at_least = least * waits * np.exp(z * _most_sigma(risk, settings))
    confident = risk.whole_hours * waits * np.exp(z * risk.whole_sigma)
    # |z| h / (2 sigma), with h from the spread that preemption adds to that of the estimate.
    added = -np.expm1(risk.log_sigma**2 - risk.whole_sigma**2)
    bend = -z * added / np.maximum(2.0 * risk.whole_sigma, 1e-300)
    slope = confident * (1.0 + bend) / risk.work
    spared = np.maximum(confident * bend, (slope - at_least) * interval)
    saves = risk.work >= interval
    return _ConfidentHours(
        slope_hours=risk.work * np.where(saves, slope, at_least),
        spared_hours=np.where(saves, spared, 0.0),
        least_hours=risk.work * at_least,
    )


def windowed_machines(candidates: Candidates, table: Configurations) -> dict[int, OwnedMachine]:
    """The owned machine of each configuration whose machine has availability windows."""
    machines = {}
    for number, market in enumerate(candidates.question.markets):
        if not any(machine.windows for machine in market.owned):
            continue
        for i in np.flatnonzero(table.market == number).tolist():
            machine = market.owned[int(market.snapshot.type_index[int(table.place[i])])]
            if machine.windows:
                machines[i] = machine
    return machines


def _caps(question: Question, run: Run, machines: dict[int, OwnedMachine], *, setup: Floats, slowed: _Slowed) -> Floats:
    """The largest share of each column that its longest run, and its windows before the deadline, may leave room for."""
    deadline, wall_hours = question.job.deadline_hours, run.work_hours * slowed.growth
    longest = run.longest_hours if run.takeover is None else run.longest_hours - run.takeover.up_hours
    # A price kind must have room for the expected hours of a run.
    mean = mean_factor(run.log_sigma)
    share = np.minimum((longest - setup + slowed.spared_hours * mean) / (wall_hours * mean), 1.0)
    # Windows may leave too little time for all of the work at any start.
    until = LONGEST_RUN_HOURS if deadline is None else deadline
    free_hours = {machine: _free_hours(machine, question.start, until) for machine in set(machines.values())}
    for i, machine in machines.items():
        room = free_hours[machine] - setup[i] + slowed.confident.spared_hours[i]
        share[i] = min(share[i], room / slowed.confident.slope_hours[i])
    return np.maximum(share, 0.0)


def _free_hours(machine: OwnedMachine, start: datetime, deadline: float) -> float:
    """An upper bound, within a second, on the hours that a machine is free between the start and the deadline."""
    low, high = 0.0, deadline
    if machine.elapsed_hours(start, high) <= deadline:
        return high
    while high - low > 1 / 3600:
        middle = (low + high) / 2
        low, high = (middle, high) if machine.elapsed_hours(start, middle) <= deadline else (low, middle)
    return high
