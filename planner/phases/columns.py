"""The configurations of a job as columns of a plan in phases: what a share of the work costs and takes on each.

A phase does a share x of the work on configuration k, in whole steps of 1/100,000 of the work:

    cost_k(x)  = the bill of x times the work (set-up, minimum, billing steps as for any run), plus writing the
                 checkpoint at its end unless it is the last
    hours_k(x) = set-up + that writing + the hours of x times the work that are kept with the asked confidence

Errors of the estimates are taken as one common factor of all phases, so quantiles of phases add up exactly. Below both
functions lie straight lines, which every bound of the search rests on:

    cost_k(x) >= A_k + B_k x          hours_k(x) >= a_k + b_k x

Without preemption they differ from the lines by rounding up to the billing step (and the minimum) alone. With it, hours
rise by r per hour of work from the first full checkpoint interval tau on; of less work, no interval makes less of it than

    r_0 = e^(lambda R) min_t (e^(lambda (t + d)) - 1) / (lambda t) = e^(lambda R) / (1 - y),  e^(-y - lambda d) = 1 - y

(Daly 2006), so E[T] >= r w - (r - r_0) tau throughout, and E[T] >= r_0 w, the closer of the two lines below tau (`early_`):
the first may lie far below nothing there, where many machines are hit often. The spread of a share is at least that of the whole run, or, within
one interval, what the least of R^2 / v + R + v / 3 over v = w + d gives. A window can only add to the hours.
"""

import math
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.owned import OwnedMachine
from planner.candidates.configurations import Configurations, run_of
from planner.candidates.gather import Candidates
from planner.candidates.market import Market
from planner.candidates.shapes import Shapes
from planner.cost.bill import RUN_ARRAYS, Run, TakeOver
from planner.cost.checkpoints import checkpoint_gb
from planner.estimate.chips import PRECISIONS
from planner.phases.straight import Straight
from planner.question import Question
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Shares are whole numbers of this part of the work: finer than any estimate, and a finite set to prove over.
STEPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseColumns:
    """One element per configuration of `table`; `fixed_usd` to `slope_hours` are A, B, a and b of the module's docstring.

    `place` numbers distinct regions, `places` names them; columns move only within the same `kin` (software stack and
    precision). `machine` is the own machine of a column with windows, else None; `caps` the largest share of the work
    that price kind and windows leave room for, `most_steps` that which the deadline leaves too, in steps. Columns that are
    `up` can only come first; any other that does costs `first_usd` more and waits `first_hours`, where a job is under way.
    """

    table: Configurations
    run: Run
    settings: PlannerSettings
    start: datetime
    confidence: float
    deadline_hours: float
    checkpoint_gb: float
    place: Ints
    places: tuple[tuple[str, str], ...]
    kin: Ints
    machine: tuple[OwnedMachine | None, ...]
    windowed: NDArray[np.bool_]
    fixed_usd: Floats
    slope_usd: Floats
    fixed_hours: Floats
    slope_hours: Floats
    early_fixed_usd: Floats
    early_slope_usd: Floats
    early_fixed_hours: Floats
    early_slope_hours: Floats
    data_usd: Floats
    caps: Floats
    most_steps: Ints
    up: NDArray[np.bool_]
    first_usd: Floats
    first_hours: Floats

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.table)

    @property
    def lines(self) -> Straight:
        """The straight lines below cost and time."""
        return Straight(**{each.name: getattr(self, each.name) for each in fields(Straight)})

    def take(self, which: Ints) -> "PhaseColumns":
        """The columns at these elements; nothing of a column rests on the others."""
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(PhaseColumns)}
        given |= {name: given[name][which] for name in _BY_COLUMN}
        run, windows = self.run, bool(self.windowed.any())
        ahead = run.takeover
        taken = None if ahead is None else TakeOver(**{f.name: getattr(ahead, f.name)[which] for f in fields(TakeOver)})
        given["run"] = Run(**{name: getattr(run, name)[which] for name in RUN_ARRAYS}, takeover=taken)
        given["table"] = self.table.take(which)
        given["machine"] = tuple(self.machine[i] for i in which.tolist()) if windows else (None,) * len(which)
        return PhaseColumns(**given)

    @property
    def intervals(self) -> Floats:
        """Hours of work between checkpoints where there is more work than that; 0 without preemption."""
        hit = self.run.cluster_rate > 0
        rate = np.where(hit, self.run.cluster_rate, 1.0)
        return np.where(hit, np.maximum(np.sqrt(2 * self.run.checkpoint_hours / rate), 1e-9), 0.0)

    def saves(self, which: Ints, steps: Ints) -> NDArray[np.bool_]:
        """Whether so many steps of the work fill an interval between checkpoints."""
        return np.asarray(steps / STEPS * self.run.work_hours[which] >= self.intervals[which])

    @property
    def write_hours(self) -> Floats:
        """Time to write one checkpoint, per configuration."""
        return self.run.checkpoint_hours


def concave_below_sigma(confidence: float) -> float:
    """The sigma up to which confident hours T = r exp(z sigma) rise with the run hours r and are concave in them.

    With sigma^2 = L + ln(1 + q / r) and h = q / (r + q), T'' is h^2 z T / (4 r^2 sigma^2) times z - 2 sigma - 1 / sigma.
    As 2 sigma + 1 / sigma is at least the root of 8, that is never positive up to a confidence of 99.7 %, and above it
    where sigma, which falls as r grows, is below the lesser root. There T rises too, by 1 - z h / (2 sigma) of itself per
    part of r, since z h / (2 sigma) <= h + h / (2 sigma^2), and h <= sigma^2 <= 1 / 2. Below the median it never is.
    """
    z = NormalDist().inv_cdf(confidence)
    if z < 0:
        return -math.inf
    return math.inf if z * z <= 8.0 else (z - math.sqrt(z * z - 8.0)) / 4.0


#: The fields that are arrays of one element per column.
_BY_COLUMN = (
    *("place", "kin", "windowed", "fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd", "caps"),
    *("early_fixed_usd", "early_slope_usd", "early_fixed_hours", "early_slope_hours"),
    *("most_steps", "up", "first_usd", "first_hours"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lines:
    """Slopes of expected and of confident hours, and the expected hours that the line may lie above the set-up less."""

    wall_hours: Floats
    kept_hours: Floats
    spared_hours: Floats


#: Searches for phases, for standbys and for a fallback ask in turn; some plans are made at the same time.
@lru_cache(maxsize=4)
def every_column(found: Candidates) -> PhaseColumns:
    """All of `found.shares` as columns, worked out once."""
    return phase_columns(found, found.shares)


def columns_of_table(found: Candidates) -> tuple[PhaseColumns, Ints]:
    """Columns among which all configurations of `found.table` are, and which of them these are."""
    every = every_column(found)
    whole = np.flatnonzero(np.isfinite(every.table.bill.hours_kept))
    names = ("market", "place", "nodes")
    if len(whole) == len(found.table) and all(
        np.array_equal(getattr(every.table, name)[whole], getattr(found.table, name)) for name in names
    ):
        return every, whole
    return phase_columns(found, found.table), np.arange(len(found.table))


def phase_columns(found: Candidates, table: Configurations) -> PhaseColumns:
    """The configurations of `table`, which are some of those found, as columns."""
    question = found.question
    job, settings = question.job, question.settings
    run = run_of(question, table, found.estimated, found.costs)
    deadline = np.inf if job.deadline_hours is None else job.deadline_hours
    growth, spared, least = _growth(run, table.bill.run_hours, settings.restart_hours)
    z = NormalDist().inv_cdf(job.confidence)
    # Below the median more spread means fewer hours: then only the set-up is certain.
    certain = (run.cluster_rate == 0) | (z >= 0)
    sigma = _least_sigma(table.bill.sigma, run, settings)
    longer = np.where(certain, np.exp(z * sigma), 0.0)
    # Machines that were taken away are waited for: on the clock, not on the bill.
    waits = 1.0 + run.cluster_rate * settings.spot_wait_hours
    longer = longer * waits
    slope_hours = run.work_hours * growth * longer
    by_hour = run.nodes * run.power_usd_per_node_hour + run.storage_usd_per_hour
    compute = run.nodes * run.usd_per_node_hour
    setup, takeover, zeros = run.setup_hours(settings), run.takeover, np.zeros(len(table))
    term = run.term_hours > 0
    # What machines that are up have been billed beyond their hours is the most that a bill from now may fall short.
    paid_ahead = zeros if takeover is None else _paid_ahead(run, takeover)
    per_hour = by_hour + np.where(term, 0.0, compute)
    once = np.where(term, compute * run.term_hours, 0.0) - compute * paid_ahead
    place, places = _places(found, table)
    machine = _windowed(found, table)
    lines = _Lines(wall_hours=run.work_hours * growth, kept_hours=slope_hours, spared_hours=spared)
    caps = _caps(question, run, machine, lines)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.maximum(deadline - setup + spared * longer, 0.0)
        in_time = np.where(slope_hours > 0, room / slope_hours, 1.0)
    return PhaseColumns(
        table=table,
        run=run,
        settings=settings,
        start=question.start,
        confidence=job.confidence,
        deadline_hours=deadline,
        checkpoint_gb=checkpoint_gb(question.work, job.training),
        place=place,
        places=places,
        kin=_kin(found, table),
        machine=machine,
        windowed=np.array([each is not None for each in machine], np.bool_),
        fixed_usd=per_hour * (setup - spared) + once,
        slope_usd=per_hour * run.work_hours * growth,
        fixed_hours=setup - spared * longer,
        slope_hours=slope_hours,
        early_fixed_usd=per_hour * setup + once,
        early_slope_usd=per_hour * run.work_hours * least,
        early_fixed_hours=setup,
        early_slope_hours=run.work_hours * least * longer,
        data_usd=run.egress_usd,
        caps=caps,
        most_steps=np.asarray(np.floor(np.minimum(caps, in_time) * STEPS + 1e-6), np.int64),
        up=np.isin(table.market, [i for i, each in enumerate(question.markets) if each.up]),
        first_usd=zeros if takeover is None else takeover.fetch_usd + takeover.lead_usd,
        first_hours=zeros if takeover is None else takeover.delay_hours,
    )


def _paid_ahead(run: Run, takeover: TakeOver) -> Floats:
    """Hours per node that are billed already and lie ahead; a whole term where one is running."""
    up = takeover.up_hours
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.maximum(np.ceil(up / run.billing_step_hours) * run.billing_step_hours, run.billing_minimum_hours)
    return np.where(up > 0, np.where(run.term_hours > 0, run.term_hours, np.maximum(steps - up, 0.0)), 0.0)


#: Newton's steps towards y; the last ones change nothing that a float can hold.
_NEWTON = 12


def _growth(run: Run, run_hours: Floats, restart_hours: float) -> tuple[Floats, Floats, Floats]:
    """Wall hours per hour of work, the hours to take off so that the line lies below every share, and the least per hour."""
    growth, spared, never_less = np.ones(len(run_hours)), np.zeros(len(run_hours)), np.ones(len(run_hours))
    hit = np.flatnonzero((run.cluster_rate > 0) & (run.work_hours > 0))
    rate, work, write = run.cluster_rate[hit], run.work_hours[hit], run.checkpoint_hours[hit]
    lost = rate * write
    y = np.minimum(np.sqrt(2 * lost), 1.0)
    for _ in range(_NEWTON):
        tail = np.exp(-y - lost)
        y = np.minimum(np.maximum(y - (1 - y - tail) / np.minimum(tail - 1, -1e-300), 0.0), 1.0)
    with np.errstate(over="ignore", divide="ignore"):
        # A little less than the root is on the safe side.
        least = np.exp(np.minimum(rate * restart_hours, 700.0)) / (1 - y * (1 - 1e-9))
    interval = np.sqrt(2 * write / rate)
    whole = run_hours[hit] / work
    saves = (work >= interval) & (whole > least)
    growth[hit] = np.where(saves, whole, least)
    spared[hit] = np.where(saves, (growth[hit] - least) * interval, 0.0)
    never_less[hit] = least
    return growth, spared, never_less


def _least_sigma(whole: Floats, run: Run, settings: PlannerSettings) -> Floats:
    """The log-spread that no share of a run falls below; `whole` is that of all the work."""
    rate = np.where(run.cluster_rate > 0, run.cluster_rate, 1.0)
    interval = np.sqrt(2.0 * run.checkpoint_hours / rate) + run.checkpoint_hours
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # Expected hours of a share within one interval lie below the chord from none to a whole one.
        chord = np.exp(np.minimum(rate * settings.restart_hours, 700.0)) * np.where(
            interval > 0, np.expm1(np.minimum(rate * interval, 700.0)) / (rate * interval), 1.0
        )
    # Waits add to the spread, and to the hours that it is told against.
    waits = 1.0 + rate * settings.spot_wait_hours
    short = rate * settings.restart_hours * (1 + 2 / np.sqrt(3)) / chord / waits**2
    variation = np.minimum(np.expm1(whole**2 - run.log_sigma**2), short)
    return np.where(
        run.cluster_rate > 0, np.sqrt(run.log_sigma**2 + np.log1p(np.maximum(variation, 0.0))), run.log_sigma
    )


def _places(found: Candidates, table: Configurations) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """The number of each configuration's (provider, region), the same in all markets, and the names by number."""
    by_market, names = _numbered(found.question.markets)
    place = np.empty(len(table), np.int64)
    for number, market in enumerate(found.question.markets):
        mine = table.market == number
        place[mine] = by_market[number][market.snapshot.region_index[table.place[mine]]]
    return place, names


@lru_cache(maxsize=4)
def _numbered(markets: tuple[Market, ...]) -> tuple[tuple[Ints, ...], tuple[tuple[str, str], ...]]:
    """The number of each region of each market, and the names by number."""
    names: dict[tuple[str, str], int] = {}
    numbers = tuple(
        np.array([names.setdefault(each, len(names)) for each in market.columns.regions], np.int64)
        for market in markets
    )
    return numbers, tuple(names)


def _kin(found: Candidates, table: Configurations) -> Ints:
    """Configurations between which a run can move: the same software stack, and the same precision as planned."""
    kin = np.empty(len(table), np.int64)
    for number, market in enumerate(found.question.markets):
        mine = np.flatnonzero(table.market == number)
        snapshot, estimates = market.snapshot, found.estimated[number].estimates
        shapes = snapshot.shapes
        chip = shapes.accelerator[shapes.of_type[snapshot.type_index[table.place[mine]]]]
        kin[mine] = (
            _stack_of(shapes)[chip] * len(PRECISIONS)
            + np.array([PRECISIONS.index(name) for name in estimates.precisions])[estimates.precision[table.row[mine]]]
        )
    return kin


@lru_cache(maxsize=8)
def _stack_of(shapes: Shapes) -> Ints:
    """The number of the software stack of each of the accelerators of these shapes, in alphabetical order of all there are."""
    stacks = sorted({each.stack for each in accelerators().values()})
    return np.array([stacks.index(each.stack) for each in shapes.accelerators], np.int64)


def _windowed(found: Candidates, table: Configurations) -> tuple[OwnedMachine | None, ...]:
    machines: list[OwnedMachine | None] = [None] * len(table)
    for number, market in enumerate(found.question.markets):
        if not any(each.windows for each in market.owned):
            continue
        for i in np.flatnonzero(table.market == number).tolist():
            machine = market.owned[int(market.snapshot.type_index[int(table.place[i])])]
            machines[i] = machine if machine.windows else None
    return tuple(machines)


def ranks(found: Candidates, columns: PhaseColumns) -> Ints:
    """The rank of each column among phases: interruptible first, then the slowest; names decide between equals.

    Prices decide nothing, so that a dearer offer cannot change the order and make some move cheaper by it.
    """
    table, markets = columns.table, found.question.markets
    names = []
    for number, place in zip(table.market.tolist(), table.place.tolist(), strict=True):
        market = markets[number]
        names.append(market.columns.offer(int(market.snapshot.original[place])).key)
    steady = (columns.run.cluster_rate == 0).tolist()
    slow_first = (-columns.run.work_hours).tolist()
    nodes = table.nodes.tolist()
    order = sorted(range(len(table)), key=lambda i: (steady[i], slow_first[i], names[i], nodes[i]))
    rank = np.empty(len(table), np.int64)
    rank[order] = np.arange(len(table))
    # What runs already comes before everything else, whatever it is.
    rank[columns.up] = -1
    return rank


def _caps(question: Question, run: Run, machine: tuple[OwnedMachine | None, ...], lines: _Lines) -> Floats:
    """The largest share of each column that its longest run and its windows before the deadline may leave room for."""
    setup, deadline = run.setup_hours(question.settings), question.job.deadline_hours
    longest = run.longest_hours if run.takeover is None else run.longest_hours - run.takeover.up_hours
    share = np.minimum((longest - setup + lines.spared_hours) / lines.wall_hours, 1.0)
    for i, each in enumerate(machine if deadline is not None else ()):
        if each is not None and deadline is not None:
            share[i] = min(share[i], (_free_hours(each, question.start, deadline) - setup[i]) / lines.kept_hours[i])
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
