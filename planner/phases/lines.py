"""The straight lines below what a share of the work costs and takes on each configuration.

A phase does a share x of the work on configuration k, in whole steps of 1/100,000 of the work:

    cost_k(x)  = the bill of x times the work (set-up, minimum, billing steps as for any run), plus writing the
                 checkpoint at its end unless it is the last
    hours_k(x) = set-up + that writing + the hours of x times the work that are kept with the asked confidence

The bill is expected, so that its hours are those of the mean, e^(sigma^2 / 2) times the estimate's after set-up. Errors of
the estimates are taken as one common factor of all phases, so quantiles of phases add up exactly. Below both
functions lie straight lines, which every bound of the search rests on:

    cost_k(x) >= A_k + B_k x          hours_k(x) >= a_k + b_k x

Without preemption they differ from the lines by rounding up to the billing step (and the minimum) alone. With it, hours
rise by r per hour of work from the first full checkpoint interval tau on; of less work, no interval makes less of it than

    r_0 = e^(lambda R) min_t (e^(lambda (t + d)) - 1) / (lambda t) = e^(lambda R) / (1 - y),  e^(-y - lambda d) = 1 - y

(Daly 2006), so E[T] >= r w - (r - r_0) tau throughout, and E[T] >= r_0 w, the closer of the two lines below tau (`early`):
the first may lie far below nothing there, where many machines are hit often. The spread of a share is at least that of the whole run, or, within
one interval, what the least of R^2 / v + R + v / 3 over v = w + d gives. A window can only add to the hours.

Below the median a wider spread means fewer hours, so that confident hours need an upper bound of the spread instead. From
tau on they are T(w) = g w e^(z sigma), z < 0, with sigma^2 = L^2 + ln(1 + k / w), and convex in w (`concave_below_sigma`
has the second derivative): the tangent at all the work, T(W) (1 + |z| h / (2 sigma)) w / W - T(W) |z| h / (2 sigma) with
h = k / (k + W), lies below them. Of less work, r_0 w e^(z s) does, with s the spread at the larger end of
R^2 / v + R + v / 3, which is convex in v, over v from d to tau + d. The tangent is lowered until it lies below that at tau,
and so, as it begins below nothing, at every share.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.owned import OwnedMachine
from planner.candidates.configurations import Configurations, run_of
from planner.candidates.gather import Candidates
from planner.candidates.shapes import Shapes
from planner.cost.bill import LONGEST_RUN_HOURS, Bill, Run, TakeOver, z_score
from planner.cost.expected_billing import mean_factor
from planner.estimate.chips import PRECISIONS
from planner.phases.straight import STEPS, Straight
from planner.question import Question
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lined:
    """Configurations of `table`, what is bought in each of them (`run`), and the straight lines below them (`lines`).

    The lines are worked out when they are first asked for, unless they are `known`: most jobs ask for none.
    """

    found: Candidates
    table: Configurations
    run: Run
    known: Straight | None = None

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.table)

    @cached_property
    def kin(self) -> Ints:
        """Configurations between which a run can move: the same software stack, and the same precision as planned."""
        return _kin(self.found, self.table) if self.known is None else self.known.kin

    @cached_property
    def lines(self) -> Straight:
        """The straight lines below cost and time of each configuration."""
        return _lines(self) if self.known is None else self.known

    def take(self, which: Ints) -> "Lined":
        """Some of the configurations; nothing of one rests on the others."""
        some = self.lines.take(which)
        return Lined(found=self.found, table=self.table.take(which), run=self.run.take(which), known=some)


#: Searches for phases, for standbys and for a fallback ask in turn; some plans are made at the same time.
@lru_cache(maxsize=4)
def every_line(found: Candidates) -> Lined:
    """All of `found.shares`, their lines worked out once."""
    return lined(found, found.shares)


def lined(found: Candidates, table: Configurations) -> Lined:
    """The configurations of `table`, which are some of those found, with the lines below them."""
    run = run_of(found.question, table, found.estimated, found.costs)
    return Lined(found=found, table=table, run=run)


def usd_by_the_hour(run: Run) -> tuple[Floats, Floats]:
    """What each configuration is billed per hour that its machines are up, and once, however short a phase is."""
    by_hour = run.nodes * run.power_usd_per_node_hour + run.storage_usd_per_hour
    compute, term = run.nodes * run.usd_per_node_hour, run.term_hours > 0
    per_hour = by_hour + np.where(term, 0.0, compute)
    once = np.where(term, compute * run.term_hours, 0.0)
    if run.takeover is not None:
        # What machines that are up have been billed beyond their hours is the most that a bill from now may fall short.
        once = once - compute * _paid_ahead(run, run.takeover)
    return per_hour, once


def _lines(some: Lined) -> Straight:
    question, table, run = some.found.question, some.table, some.run
    job, settings = question.job, question.settings
    deadline = np.inf if job.deadline_hours is None else job.deadline_hours
    slowed = _slowed(run, table.bill, question)
    setup, (per_hour, once) = run.setup_hours(settings), usd_by_the_hour(run)
    wall_hours, least_hours = run.work_hours * slowed.growth, run.work_hours * slowed.least
    # Money is told by expected hours, time by quantiles around those of the estimate.
    mean = mean_factor(run.log_sigma)
    slope_hours, spared_hours = slowed.kept.slope_hours, slowed.kept.spared_hours
    caps = _caps(question, run, windowed_machines(some.found, table), setup=setup, slowed=slowed)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.maximum(deadline - setup + spared_hours, 0.0)
        in_time = np.where(slope_hours > 0, room / slope_hours, 1.0)
    return Straight.of(
        (
            per_hour * (setup - slowed.spared_hours * mean) + once,
            per_hour * wall_hours * mean,
            setup - spared_hours,
            slope_hours,
        ),
        (per_hour * setup + once, per_hour * least_hours * mean, setup, slowed.kept.least_hours),
        data_usd=run.egress_usd,
        caps=caps,
        kin=some.kin,
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
class _KeptHours:
    """Hours of all the work that are kept with the asked confidence, at least: by the line of large shares, which rises by
    `slope_hours` from `spared_hours` below nothing, and by that of small ones, which rises by `least_hours`.
    """

    slope_hours: Floats
    spared_hours: Floats
    least_hours: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slowed:
    """What preemption makes of the work of each configuration.

    `growth` are wall hours per hour of work, as estimated, `spared_hours` those to take off so that the line lies below
    every share, `least` the wall hours that an hour of work takes at least, and `kept` the confident hours on the clock.
    """

    growth: Floats
    spared_hours: Floats
    least: Floats
    kept: _KeptHours


def _slowed(run: Run, whole: Bill, question: Question) -> _Slowed:
    """`whole` is the bill of all the work."""
    settings, z = question.settings, z_score(question.job.confidence)
    growth, spared, least = np.ones(len(run)), np.zeros(len(run)), np.ones(len(run))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    risk = _Risk(
        work=run.work_hours[hit],
        rate=run.cluster_rate[hit],
        write=run.checkpoint_hours[hit],
        log_sigma=run.log_sigma[hit],
        whole_hours=whole.run_hours[hit] / mean_factor(run.log_sigma[hit]),
        whole_sigma=whole.sigma[hit],
    )
    if len(hit):
        growth[hit], spared[hit], least[hit] = _growth(risk, settings.restart_hours)
    sigma = run.log_sigma.copy()
    if z >= 0 and len(hit):
        sigma[hit] = _least_sigma(risk, settings)
    # Machines that were taken away are waited for: on the clock, not on the bill.
    longer = np.exp(z * sigma) * (1.0 + run.cluster_rate * settings.spot_wait_hours)
    kept = _KeptHours(
        slope_hours=run.work_hours * growth * longer,
        spared_hours=spared * longer,
        least_hours=run.work_hours * least * longer,
    )
    if z < 0 and len(hit):
        below = _below_the_median(risk, least[hit], z, settings)
        for each in fields(_KeptHours):
            getattr(kept, each.name)[hit] = getattr(below, each.name)
    return _Slowed(growth=growth, spared_hours=spared, least=least, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Risk:
    """Interruptible configurations: hours of work, preemptions per hour, the hours to write a checkpoint, the log-spread of
    the estimate, and of all the work the expected hours up and their log-spread.
    """

    work: Floats
    rate: Floats
    write: Floats
    log_sigma: Floats
    whole_hours: Floats
    whole_sigma: Floats

    @property
    def interval_hours(self) -> Floats:
        """Hours of work between checkpoints where there is more work than that."""
        return np.sqrt(2.0 * self.write / self.rate)

    @property
    def exposed_hours(self) -> Floats:
        """Hours from one checkpoint to the end of the next."""
        return self.interval_hours + self.write


#: Newton's steps towards y, which comes from above: the fourth is exact to what a float can hold.
_NEWTON = 4


def _growth(risk: _Risk, restart_hours: float) -> tuple[Floats, Floats, Floats]:
    """Wall hours per hour of work, the hours to take off so that the line lies below every share, and the least per hour."""
    lost = np.maximum(risk.rate * risk.write, 1e-24)
    y = np.minimum(np.sqrt(2 * lost), 1.0)
    for _ in range(_NEWTON):
        y = y + (y / np.expm1(-(y + lost)) + 1.0)
    with np.errstate(over="ignore"):
        # A little less than the root is on the safe side.
        least = np.exp(np.minimum(risk.rate * restart_hours, 700.0)) / (1 - np.clip(y, 0.0, 1.0) * (1 - 1e-9))
    interval = risk.interval_hours
    whole = risk.whole_hours / risk.work
    saves = (risk.work >= interval) & (whole > least)
    return np.where(saves, whole, least), np.where(saves, (whole - least) * interval, 0.0), least


def _least_sigma(risk: _Risk, settings: PlannerSettings) -> Floats:
    """The log-spread that no share of a run falls below."""
    rate = risk.rate
    exposed = rate * risk.exposed_hours
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # Expected hours of a share within one interval lie below the chord from none to a whole one.
        chord = np.exp(np.minimum(rate * settings.restart_hours, 700.0)) * np.where(
            exposed > 0, np.expm1(np.minimum(exposed, 700.0)) / exposed, 1.0
        )
    # Waits add to the spread, and to the hours that it is told against.
    waits = 1.0 + rate * settings.spot_wait_hours
    short = rate * settings.restart_hours * (1 + 2 / np.sqrt(3)) / chord / waits**2
    variation = np.minimum(np.expm1(risk.whole_sigma**2 - risk.log_sigma**2), short)
    return np.asarray(np.sqrt(risk.log_sigma**2 + np.log1p(np.maximum(variation, 0.0))))


def _most_sigma(risk: _Risk, settings: PlannerSettings) -> Floats:
    """The log-spread that no share of a run exceeds; inf where a checkpoint takes no time."""
    rate, restart, wait = risk.rate, settings.restart_hours, settings.spot_wait_hours
    variation = np.zeros(len(rate))
    with np.errstate(divide="ignore", over="ignore"):
        for exposed in (risk.write, risk.exposed_hours):
            # Hours that one failure costs, squared, by those that it comes in.
            squared = restart**2 / exposed + restart + exposed / 3.0
            squared = squared + 2.0 * wait * ((restart + wait) / exposed + 0.5)
            variation = np.maximum(variation, rate * squared)
        variation /= np.exp(np.minimum(rate * restart, 700.0)) * (1.0 + rate * wait) ** 2
    return np.asarray(np.sqrt(risk.log_sigma**2 + np.log1p(variation)))


def _below_the_median(risk: _Risk, least: Floats, z: float, settings: PlannerSettings) -> _KeptHours:
    """The confident hours at z < 0 of runs of which an hour of work takes so many hours up at least."""
    waits, interval = 1.0 + risk.rate * settings.spot_wait_hours, np.maximum(risk.interval_hours, 1e-9)
    at_least = least * waits * np.exp(z * _most_sigma(risk, settings))
    kept = risk.whole_hours * waits * np.exp(z * risk.whole_sigma)
    # |z| h / (2 sigma), with h from the spread that preemption adds to that of the estimate.
    added = -np.expm1(risk.log_sigma**2 - risk.whole_sigma**2)
    bend = -z * added / np.maximum(2.0 * risk.whole_sigma, 1e-300)
    slope = kept * (1.0 + bend) / risk.work
    spared = np.maximum(kept * bend, (slope - at_least) * interval)
    saves = risk.work >= interval
    return _KeptHours(
        slope_hours=risk.work * np.where(saves, slope, at_least),
        spared_hours=np.where(saves, spared, 0.0),
        least_hours=risk.work * at_least,
    )


def _kin(found: Candidates, table: Configurations) -> Ints:
    if len(found.question.markets) == 1:
        return _kin_of(found, 0, table.place, table.row)
    kin = np.empty(len(table), np.int64)
    for number in range(len(found.question.markets)):
        mine = np.flatnonzero(table.market == number)
        kin[mine] = _kin_of(found, number, table.place[mine], table.row[mine])
    return kin


def _kin_of(found: Candidates, number: int, place: Ints, row: Ints) -> Ints:
    """The same for offers and estimates of one market."""
    snapshot, estimates = found.question.markets[number].snapshot, found.estimated[number].estimates
    shapes = snapshot.shapes
    stack = _stack_of(shapes)[shapes.of_type[snapshot.type_index[place]]]
    precisions = np.array([PRECISIONS.index(name) for name in estimates.precisions])
    return np.asarray(stack * len(PRECISIONS) + precisions[estimates.precision[row]])


@lru_cache(maxsize=8)
def _stack_of(shapes: Shapes) -> Ints:
    """The number of the software stack of each of these shapes, in alphabetical order of all there are."""
    stacks = sorted({each.stack for each in accelerators().values()})
    return np.array([stacks.index(each.stack) for each in shapes.accelerators], np.int64)[shapes.accelerator]


def windowed_machines(found: Candidates, table: Configurations) -> dict[int, OwnedMachine]:
    """The own machine of each configuration whose machine has windows."""
    machines = {}
    for number, market in enumerate(found.question.markets):
        if not any(each.windows for each in market.owned):
            continue
        for i in np.flatnonzero(table.market == number).tolist():
            machine = market.owned[int(market.snapshot.type_index[int(table.place[i])])]
            if machine.windows:
                machines[i] = machine
    return machines


def _caps(question: Question, run: Run, machines: dict[int, OwnedMachine], *, setup: Floats, slowed: _Slowed) -> Floats:
    """The largest share of each column that its longest run and its windows, before the deadline, may leave room for."""
    deadline, wall_hours = question.job.deadline_hours, run.work_hours * slowed.growth
    longest = run.longest_hours if run.takeover is None else run.longest_hours - run.takeover.up_hours
    # A price kind must have room for the hours expected of a run.
    mean = mean_factor(run.log_sigma)
    share = np.minimum((longest - setup + slowed.spared_hours * mean) / (wall_hours * mean), 1.0)
    # Windows may leave too little time for all of the work whenever it is done.
    until = LONGEST_RUN_HOURS if deadline is None else deadline
    free_hours = {machine: _free_hours(machine, question.start, until) for machine in set(machines.values())}
    for i, machine in machines.items():
        room = free_hours[machine] - setup[i] + slowed.kept.spared_hours[i]
        share[i] = min(share[i], room / slowed.kept.slope_hours[i])
    return np.maximum(share, 0.0)


def _free_hours(machine: OwnedMachine, start: datetime, deadline: float) -> float:
    """At least the hours that a machine is free between the start and the deadline, to a second."""
    low, high = 0.0, deadline
    if machine.elapsed_hours(start, high) <= deadline:
        return high
    while high - low > 1 / 3600:
        middle = (low + high) / 2
        low, high = (middle, high) if machine.elapsed_hours(start, middle) <= deadline else (low, middle)
    return high
