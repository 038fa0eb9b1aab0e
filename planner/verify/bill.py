"""What one offer takes and costs at several node counts, line by line.

hours    = set-up + wall hours of the work, preemption included; the mean of the estimate's lognormal band
compute  = nodes x price x expected billed hours (whole steps, at least the minimum; whole terms where there is one)
power    = nodes x USD per hour x hours             for own machines
storage  = USD per hour of the place x hours        egress = once
"""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import numpy as np

from catalog.carbon import carbon
from catalog.egress import egress_tiers
from catalog.price_kinds import PriceKind
from planner.job import TrainingJob
from planner.settings import PlannerSettings
from planner.verify.billing import all_expected_billed, means_of
from planner.verify.clock import NEVER_HOURS, Clock, Clocks, Floats, Ints, quantile, spread, wall_hours
from planner.verify.estimates import Row, Scaling, Work
from planner.verify.place import PlaceCost, carbon_kg, checkpoint_gb, place_cost
from planner.verify.shelves import Lot, Machine, Place

P95 = 0.95


class Bill(NamedTuple):
    """Expected USD by part; `compute` includes what `setup` shows apart. What half and 95 % of runs stay within."""

    compute: float
    setup: float
    storage: float
    egress: float
    power: float
    total: float
    median: float
    p95: float


class Bills(NamedTuple):
    """The same of one offer at several node counts: arrays of equal length."""

    compute: Floats
    setup: Floats
    storage: Floats
    egress: Floats
    power: Floats
    total: Floats
    median: Floats
    p95: Floats


class Rates:
    """Clock and bill of any configuration of one job under one set of assumptions."""

    def __init__(self, job: TrainingJob, start: datetime, work: Work, settings: PlannerSettings) -> None:
        """For this job from `start` on."""
        self._job, self._start, self._settings = job, start, settings
        self.checkpoint_gb = checkpoint_gb(work, job.training)
        self._z, self._z95 = quantile(job.confidence), quantile(P95)
        self._uninterrupted: dict[tuple[Scaling, float], tuple[Ints, Clocks]] = {}
        self._places: dict[Place, PlaceCost] = {}
        self._carbon: dict[tuple[int, Place], tuple[float | None, Machine]] = {}

    def place(self, place: Place) -> PlaceCost:
        """What the place adds."""
        if place not in self._places:
            gb = self._settings.checkpoints_kept * self.checkpoint_gb
            self._places[place] = place_cost(place, self._job.data, gb)
        return self._places[place]

    def kg_per_node_hour(self, lot: Lot) -> float | None:
        """kg of CO2 of one busy node for an hour; None where it is unknown."""
        key = (id(lot.machine), lot.place)
        if key not in self._carbon:
            self._carbon[key] = carbon_kg(lot.machine, lot.place, 1.0), lot.machine
        return self._carbon[key][0]

    def kg_per_kwh(self, place: Place) -> float | None:
        """kg of CO2 for a kWh of computing in a place, PUE included; None where it is unknown."""
        figures = carbon(*place)
        if figures.grid_g_per_kwh is None or figures.pue is None:
            return None
        return figures.grid_g_per_kwh * figures.pue / 1000

    def checkpoint_hours(self, nodes: int) -> float:
        """Hours to write one checkpoint, all nodes together."""
        return self.checkpoint_gb / self._settings.checkpoint_gbs / 3600.0 / nodes

    def clock(self, lot: Lot, nodes: int, row: Row, *, share: float = 1.0, hands_over: bool = False) -> Clock | None:
        """The hours of a share of the work; None where it does not end or its price kind does not allow as many."""
        work, sigma = np.array([row.hours_with_goodput * share]), np.array([row.log_sigma])
        ends, clocks = self._clocks(lot, np.array([nodes]), work, sigma, hands_over=hands_over)
        return clocks.at(0) if len(ends) else None

    def clocks(self, lot: Lot, scaling: Scaling) -> tuple[Ints, Clocks]:
        """Which node counts end, as elements of `scaling`, and the hours of those."""
        longest = lot.kind.max_run_hours or math.inf
        if lot.rate:
            return self._clocks(lot, scaling.nodes, scaling.hours_with_goodput, scaling.log_sigma)
        if (scaling, longest) not in self._uninterrupted:
            found = self._clocks(lot, scaling.nodes, scaling.hours_with_goodput, scaling.log_sigma)
            self._uninterrupted[scaling, longest] = found
        return self._uninterrupted[scaling, longest]

    def _clocks(
        self, lot: Lot, nodes: Ints, work: Floats, log_sigma: Floats, *, hands_over: bool = False
    ) -> tuple[Ints, Clocks]:
        write, settings = self.checkpoint_gb / self._settings.checkpoint_gbs / 3600.0 / nodes, self._settings
        rate, wait = np.asarray(lot.rate * nodes, np.float64), settings.spot_wait_hours
        up = wall_hours(work, write, settings.restart_hours, rate) if lot.rate else work
        run = up * (1 + rate * wait)
        fixed = settings.setup_hours + (write if hands_over else np.zeros(len(nodes)))
        expected = fixed + means_of(run, log_sigma)
        ends = np.flatnonzero(expected <= min(lot.kind.max_run_hours or math.inf, NEVER_HOURS))
        up, run, fixed, rate, log_sigma = up[ends], run[ends], fixed[ends], rate[ends], log_sigma[ends]
        sigma = log_sigma
        if lot.rate:
            restart = settings.restart_hours
            sigma = spread(up, work[ends], write[ends], restart, rate, log_sigma=log_sigma, wait=wait)
        with np.errstate(over="ignore"):
            kept, p95 = fixed + run * np.exp(self._z * sigma), fixed + run * np.exp(self._z95 * sigma)
        paid = 1 / (1 + rate * wait)
        found = Clocks(run, sigma, expected[ends], fixed + run, kept, p95, paid, fixed, log_sigma)
        finite = np.isfinite(kept)
        return ends[finite], found.take(finite)

    def clocks_in_windows(self, machine: Machine, clocks: Clocks) -> tuple[Ints, Clocks]:
        """The same on own machines that are free at times only: which of them the windows leave time for, and their hours."""
        if machine.own is None or not machine.own.windows:
            return np.arange(len(clocks.run)), clocks
        every = [self.in_windows(machine, clocks.at(number)) for number in range(len(clocks.run))]
        found = [each for each in every if each is not None]
        columns = (np.array(column, np.float64) for column in zip(*found, strict=True))
        listed = [number for number, each in enumerate(every) if each is not None]
        return np.array(listed, np.int64), Clocks(*columns) if found else clocks.take(np.zeros(len(every), np.bool_))

    def in_windows(self, machine: Machine, clock: Clock) -> Clock | None:
        """The same on an own machine that is free at times only: work stops and restarts with each window.

        None where the windows leave no time for the expected run, for one at the job's confidence, or for 19 of 20.
        """
        own = machine.own
        if own is None or not own.windows:
            return clock
        times = (clock.expected, clock.median, clock.kept, clock.p95)
        expected, median, kept, p95 = (self.elapsed(machine, busy, 0.0) for busy in times)
        if not math.isfinite(expected + kept + p95):
            return None
        expected = clock.expected + mean_wait(
            (busy, self.elapsed(machine, busy, 0.0)) for busy in clock.equally_likely()
        )
        return clock._replace(expected=expected, median=median, kept=kept, p95=p95)

    def elapsed(self, machine: Machine, busy: float, begun: float) -> float:
        """Hours from `begun` hours after the start until a machine has been busy for so long in its free windows."""
        own = machine.own
        if own is None or not own.windows or not math.isfinite(begun):
            return busy
        return own.elapsed_hours(self._start, busy, restart_hours=self._settings.restart_hours, after_hours=begun)

    def moving(self, before: Place, after: Place) -> tuple[float, float]:
        """USD and hours of the checkpoint's way from one place to another; data bought anew with it."""
        if before == after:
            return 0.0, 0.0
        usd = egress_tiers(*before, *after).egress_usd(self.checkpoint_gb)
        return self.place(after).egress + usd, self.checkpoint_gb / self._settings.move_gbs / 3600.0

    def bill(self, lot: Lot, micros: int, nodes: int, clock: Clock, *, egress: float | None = None) -> Bill:
        """The bill of busy hours (before windows stretch them) at a price per node-hour; egress of the place unless given."""
        found = self.bills(lot, micros, np.array([nodes]), Clocks.of(clock), egress=egress)
        return Bill(*(float(each[0]) for each in found))

    def bills(self, lot: Lot, micros: int, nodes: Ints, clocks: Clocks, *, egress: float | None = None) -> Bills:
        """The same at several node counts."""
        usd, place = micros / 1e6, self.place(lot.place)
        term = 0 if lot.paid else lot.kind.term_hours
        brought = np.full(len(nodes), place.egress if egress is None else egress)
        step, least = billing(lot.kind, term)
        node_hours = nodes * all_expected_billed(clocks.fixed, clocks.run * clocks.paid, clocks.log_sigma, step, least)
        power_per_hour = nodes * lot.machine.power_usd_per_hour
        compute, power = node_hours * usd, power_per_hour * (clocks.fixed + clocks.up)
        storage = place.storage_per_hour * clocks.expected
        setup = np.zeros(len(nodes)) if term else np.minimum(nodes * usd * clocks.fixed, compute)

        def at(hours: Floats) -> Floats:
            """USD of runs of so many hours."""
            up = clocks.fixed + (hours - clocks.fixed) * clocks.paid
            billed = np.maximum(np.ceil(up / step - 1e-9) * step, least)
            return np.asarray(nodes * billed * usd + power_per_hour * up + place.storage_per_hour * hours + brought)

        return Bills(
            compute,
            setup,
            storage,
            brought,
            power,
            compute + power + storage + brought,
            at(clocks.median),
            at(clocks.p95),
        )


def mean_wait(runs: Iterable[tuple[float, float]]) -> float:
    """The mean of what runs take beyond their busy hours, (busy, elapsed) each, of those that ever end."""
    waits = [elapsed - busy for busy, elapsed in runs if math.isfinite(elapsed)]
    return math.fsum(waits) / len(waits) if waits else math.inf


def billing(kind: PriceKind, term_hours: float) -> tuple[float, float]:
    """Hours of a step, the whole term where there is one, and of the minimum that a node is billed for."""
    if term_hours:
        return term_hours, 0.0
    return kind.billing_step_seconds / 3600, kind.billing_minimum_seconds / 3600
