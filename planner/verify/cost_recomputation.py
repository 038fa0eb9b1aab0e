"""Hours and cost of one offer at several node counts, recomputed part by part.

hours    = set-up + wall hours of the work with preemption; the mean of the estimate's lognormal band
compute  = nodes x price x expected billed hours (whole steps, at least the minimum; whole terms where there is one)
power    = nodes x USD per hour x hours             for own machines
storage  = USD per hour of the place x hours        egress = once
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.grid_carbon import carbon
from gpuplan.catalog.model.price_kinds import PriceKind
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.billed_hours import all_expected_billed, means_of
from gpuplan.planner.verify.estimator_port import Row, Scaling, Work
from gpuplan.planner.verify.named_offers import Named
from gpuplan.planner.verify.offer_groups import Machine, OfferGroup, Place
from gpuplan.planner.verify.place_check import PlaceCost, carbon_kg, checkpoint_gb, place_cost
from gpuplan.planner.verify.price_spread import PRICE_DEVIATIONS, RUN_DEVIATIONS, Spread, relative_prices
from gpuplan.planner.verify.setup_and_preemption import cluster_rate, setup_hours, wait_hours
from gpuplan.planner.verify.wall_clock_hours import (
    NEVER_HOURS,
    Clock,
    Clocks,
    Floats,
    Ints,
    quantile,
    spread,
    wall_hours,
)

P95 = 0.95


class _Parts[Usd: (float, Floats)](NamedTuple):
    """Expected USD by part and in total, the median and the 95 % quantile. `setup` is a share of `compute`."""

    compute: Usd
    setup: Usd
    storage: Usd
    egress: Usd
    power: Usd
    total: Usd
    median: Usd
    p95: Usd


#: The cost of one offer at one node count, and at several: arrays of equal length.
RecomputedCost = _Parts[float]
CostBreakdowns = _Parts[Floats]


class Rates:
    """Hours and cost of any configuration of one job under one set of settings."""

    def __init__(self, job: TrainingJob, start: datetime, work: Work, settings: PlannerSettings) -> None:
        """Rates for this job, starting at `start`."""
        self._job, self._start, self._settings = job, start, settings
        self.checkpoint_gb = checkpoint_gb(work, job.training)
        self._z, self._z95 = quantile(job.confidence), quantile(P95)
        self._uninterrupted: dict[tuple[Scaling, float, float], tuple[Ints, Clocks]] = {}
        self._places: dict[Place, PlaceCost] = {}
        self._carbon: dict[tuple[int, Place], tuple[float | None, Machine]] = {}

    def place(self, place: Place) -> PlaceCost:
        """Egress and storage costs of running in the place."""
        if place not in self._places:
            gb = self._settings.checkpoints_kept * self.checkpoint_gb
            self._places[place] = place_cost(place, self._job.data, gb)
        return self._places[place]

    def kg_per_node_hour(self, offer_group: OfferGroup) -> float | None:
        """kg of CO2 per hour of one busy node; None where unknown."""
        key = (id(offer_group.machine), offer_group.place)
        if key not in self._carbon:
            self._carbon[key] = carbon_kg(offer_group.machine, offer_group.place, 1.0), offer_group.machine
        return self._carbon[key][0]

    def kg_per_kwh(self, place: Place) -> float | None:
        """kg of CO2 per kWh of computing in a place, PUE included; None where unknown."""
        figures = carbon(*place)
        if figures.grid_g_per_kwh is None or figures.pue is None:
            return None
        return figures.grid_g_per_kwh * figures.pue / 1000

    def checkpoint_hours(self, nodes: int) -> float:
        """Hours in which all nodes together write one checkpoint."""
        return self.checkpoint_gb / self._settings.checkpoint_gbs / 3600.0 / nodes

    def preempted(self, offer_group: OfferGroup, nodes: Ints) -> tuple[Floats, Floats]:
        """Preemptions per hour of so many nodes, and the unpaid hours after each."""
        wait = wait_hours(offer_group, nodes, self._settings, self._start.year)
        return cluster_rate(offer_group, nodes, self._settings), wait

    def preempted_cluster(self, offer_group: OfferGroup, nodes: int) -> tuple[float, float]:
        """`preempted` of one cluster."""
        rate, wait = self.preempted(offer_group, np.array([nodes]))
        return float(rate[0]), float(wait[0])

    def setup_hours(self, offer_group: OfferGroup, nodes: Ints) -> Floats:
        """Hours before the first step on so many nodes."""
        return setup_hours(offer_group, nodes, self._settings)

    def setup_hours_of(self, offer_group: OfferGroup, nodes: int) -> float:
        """`setup_hours` of one cluster."""
        return float(self.setup_hours(offer_group, np.array([nodes]))[0])

    def clock(
        self, offer_group: OfferGroup, nodes: int, row: Row, *, share: float = 1.0, hands_over: bool = False
    ) -> Clock | None:
        """The hours of a share of the work; None where it never ends or exceeds the maximum run of its price kind."""
        work, sigma = np.array([row.hours_with_goodput * share]), np.array([row.log_sigma])
        ends, clocks = self._clocks(offer_group, np.array([nodes]), work, sigma, hands_over=hands_over)
        return clocks.at(0) if len(ends) else None

    def clocks(self, offer_group: OfferGroup, scaling: Scaling) -> tuple[Ints, Clocks]:
        """The node counts at which the run ends, as indices into `scaling`, and their hours."""
        longest = offer_group.kind.max_run_hours or math.inf
        if offer_group.rate:
            return self._clocks(offer_group, scaling.nodes, scaling.hours_with_goodput, scaling.log_sigma)
        key = scaling, longest, self.setup_hours_of(offer_group, 1)
        if key not in self._uninterrupted:
            clocks = self._clocks(offer_group, scaling.nodes, scaling.hours_with_goodput, scaling.log_sigma)
            self._uninterrupted[key] = clocks
        return self._uninterrupted[key]

    def _clocks(
        self, offer_group: OfferGroup, nodes: Ints, work: Floats, log_sigma: Floats, *, hands_over: bool = False
    ) -> tuple[Ints, Clocks]:
        write, settings = self.checkpoint_gb / self._settings.checkpoint_gbs / 3600.0 / nodes, self._settings
        rate, wait = self.preempted(offer_group, nodes)
        up = wall_hours(work, write, settings.restart_hours, rate) if offer_group.rate else work
        run = up * (1 + rate * wait)
        fixed = self.setup_hours(offer_group, nodes) + (write if hands_over else np.zeros(len(nodes)))
        expected = fixed + means_of(run, log_sigma)
        ends = np.flatnonzero(expected <= min(offer_group.kind.max_run_hours or math.inf, NEVER_HOURS))
        up, run, fixed, log_sigma = up[ends], run[ends], fixed[ends], log_sigma[ends]
        rate, wait = rate[ends], wait[ends]
        sigma = paid_sigma = log_sigma
        if offer_group.rate:
            of_run = partial(spread, up, work[ends], write[ends], settings.restart_hours, rate, log_sigma=log_sigma)
            sigma, paid_sigma = of_run(wait=wait), of_run(wait=np.zeros(len(ends)))
        with np.errstate(over="ignore"):
            confident, p95 = fixed + run * np.exp(self._z * sigma), fixed + run * np.exp(self._z95 * sigma)
        paid = 1 / (1 + rate * wait)
        clocks = Clocks(run, sigma, expected[ends], fixed + run, confident, p95, paid, fixed, log_sigma, paid_sigma)
        finite = np.isfinite(confident)
        return ends[finite], clocks.take(finite)

    def clocks_in_windows(self, machine: Machine, clocks: Clocks) -> tuple[Ints, Clocks]:
        """The runs that fit into the availability windows of an own machine, as indices, and their hours with waits."""
        if machine.owned is None or not machine.owned.windows:
            return np.arange(len(clocks.run)), clocks
        every = [self.in_windows(machine, clocks.at(number)) for number in range(len(clocks.run))]
        possible = [clock for clock in every if clock is not None]
        columns = (np.array(column, np.float64) for column in zip(*possible, strict=True))
        listed = [number for number, clock in enumerate(every) if clock is not None]
        return np.array(listed, np.int64), Clocks(*columns) if possible else clocks.take(np.zeros(len(every), np.bool_))

    def in_windows(self, machine: Machine, clock: Clock) -> Clock | None:
        """The hours on an own machine with availability windows: work stops and restarts with each window.

        None where the windows are too short for the expected run, for one at the job's confidence, or for 19 of 20.
        """
        owned_machine = machine.owned
        if owned_machine is None or not owned_machine.windows:
            return clock
        times = (clock.expected, clock.median, clock.confident, clock.p95)
        expected, median, confident, p95 = (self.elapsed(machine, busy, 0.0) for busy in times)
        if not math.isfinite(expected + confident + p95):
            return None
        expected = clock.expected + mean_wait(
            (busy, self.elapsed(machine, busy, 0.0)) for busy in clock.equally_likely()
        )
        return clock._replace(expected=expected, median=median, confident=confident, p95=p95)

    def elapsed(self, machine: Machine, busy: float, begun: float) -> float:
        """Hours from `begun` hours after the start until the machine has been busy for `busy` hours in its windows."""
        owned_machine = machine.owned
        if owned_machine is None or not owned_machine.windows or not math.isfinite(begun):
            return busy
        return owned_machine.elapsed_hours(
            self._start, busy, restart_hours=self._settings.restart_hours, after_hours=begun
        )

    def moving(self, before: Place, after: Place) -> tuple[float, float]:
        """(USD, hours) to move a checkpoint between places, with a new copy of the data."""
        if before == after:
            return 0.0, 0.0
        usd = egress_tiers(*before, *after).egress_usd(self.checkpoint_gb)
        return self.place(after).egress + usd, self.checkpoint_gb / self._settings.move_gbs / 3600.0

    def cost_breakdown(
        self, offer_group: OfferGroup, micros: int, nodes: int, clock: Clock, *, egress: float | None = None
    ) -> RecomputedCost:
        """The cost of busy hours (before waits for windows) at a price per node-hour; egress is the place's unless
        given.
        """
        breakdowns = self.cost_breakdowns(offer_group, micros, np.array([nodes]), Clocks.of(clock), egress=egress)
        return RecomputedCost(*(float(values[0]) for values in breakdowns))

    def cost_breakdowns(
        self, offer_group: OfferGroup, micros: int, nodes: Ints, clocks: Clocks, *, egress: float | None = None
    ) -> CostBreakdowns:
        """`cost_breakdown` at several node counts."""
        usd, place = micros / 1e6, self.place(offer_group.place)
        term = 0 if offer_group.paid else offer_group.kind.term_hours
        brought = np.full(len(nodes), place.egress if egress is None else egress)
        step, least = billing(offer_group.kind, term)
        compute, power, storage = self._expected(offer_group, usd, nodes, clocks, (step, least))
        power_per_hour = nodes * offer_group.machine.power_usd_per_hour
        setup = np.zeros(len(nodes)) if term else np.minimum(nodes * usd * clocks.fixed, compute)

        def at(hours: Floats, deviations: float) -> Floats:
            """USD of runs of so many hours, at this deviation of the paid ones."""
            up = clocks.fixed + clocks.run * clocks.paid * np.exp(deviations * clocks.paid_sigma)
            billed = np.maximum(np.ceil(up / step - 1e-9) * step, least)
            return np.asarray(nodes * billed * usd + power_per_hour * up + place.storage_per_hour * hours + brought)

        return CostBreakdowns(
            compute,
            setup,
            storage,
            brought,
            power,
            compute + power + storage + brought,
            at(clocks.median, 0.0),
            at(clocks.p95, self._z95),
        )

    def cost_by_deviation(self, named: Named, clock: Clock, *, egress: float | None = None) -> Spread:
        """The cost of busy hours by their deviation, at the expected price of the named offer."""
        (offer_group, offer, nodes), place = named, self.place(named.offer_group.place)
        step, least = billing(offer_group.kind, 0 if offer_group.paid else offer_group.kind.term_hours)
        ran = clock.run * np.exp(clock.sigma * RUN_DEVIATIONS)
        up = clock.fixed + clock.run * clock.paid * np.exp(clock.paid_sigma * RUN_DEVIATIONS)
        billed = np.maximum(np.ceil(up / step - 1e-9) * step, least)
        beside = place.egress if egress is None else egress
        power_usd = nodes * offer_group.machine.power_usd_per_hour * up
        return Spread(
            machines_usd=nodes * offer_group.micros / 1e6 * billed,
            other_usd=power_usd + place.storage_per_hour * (clock.fixed + ran) + beside,
            prices=relative_prices(offer, PRICE_DEVIATIONS),
        )

    def totals(self, offer_group: OfferGroup, micros: int, nodes: Ints, clocks: Clocks) -> Floats:
        """The expected cost alone of `cost_breakdowns`."""
        step = billing(offer_group.kind, 0 if offer_group.paid else offer_group.kind.term_hours)
        compute, power, storage = self._expected(offer_group, micros / 1e6, nodes, clocks, step)
        return compute + power + storage + self.place(offer_group.place).egress

    def _expected(
        self, offer_group: OfferGroup, usd: float, nodes: Ints, clocks: Clocks, billed: tuple[float, float]
    ) -> tuple[Floats, Floats, Floats]:
        """Expected USD of compute, power and storage at a price per node-hour, by `billed` step and minimum."""
        hours = all_expected_billed(clocks.fixed, clocks.run * clocks.paid, clocks.log_sigma, *billed)
        power = nodes * offer_group.machine.power_usd_per_hour * (clocks.fixed + clocks.up)
        return nodes * hours * usd, power, self.place(offer_group.place).storage_per_hour * clocks.expected


def mean_wait(runs: Iterable[tuple[float, float]]) -> float:
    """Mean of elapsed less busy hours over the (busy, elapsed) runs that end; inf where none does."""
    waits = [elapsed - busy for busy, elapsed in runs if math.isfinite(elapsed)]
    return math.fsum(waits) / len(waits) if waits else math.inf


def billing(kind: PriceKind, term_hours: float) -> tuple[float, float]:
    """(step, minimum) of billed hours per node; the step is the whole term where there is one."""
    if term_hours:
        return term_hours, 0.0
    return kind.billing_step_seconds / 3600, kind.billing_minimum_seconds / 3600


PARTS = ("storage", "egress", "power", "setup")


def cost_parts(cost_breakdowns: Sequence[RecomputedCost]) -> dict[str, int]:
    """Micro-dollars of several cost breakdowns by part, and `expected` for their sum.

    Each breakdown is rounded once; compute absorbs the rounding of the other parts.
    """
    parts = {
        name: sum(round(getattr(cost_breakdown, name) * 1e6) for cost_breakdown in cost_breakdowns) for name in PARTS
    }
    expected = sum(round(cost_breakdown.total * 1e6) for cost_breakdown in cost_breakdowns)
    return {"expected": expected, "compute": expected - sum(parts.values()), **parts}
