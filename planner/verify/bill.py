"""What one configuration takes and costs, line by line in plain numbers.

hours    = set-up + wall hours of the work, preemption included; the mean of the estimate's lognormal band
compute  = nodes x price x expected billed hours (whole steps, at least the minimum; whole terms where there is one)
power    = nodes x USD per hour x hours             for own machines
storage  = USD per hour of the place x hours        egress = once
"""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from catalog.carbon import carbon
from catalog.egress import egress_tiers
from catalog.price_kinds import PriceKind
from planner.job import TrainingJob
from planner.settings import PlannerSettings
from planner.verify.billing import expected_billed, mean_of
from planner.verify.clock import NEVER_HOURS, Clock, quantile, spread, wall_hours
from planner.verify.estimates import Row
from planner.verify.place import PlaceCost, carbon_kg, checkpoint_gb, place_cost
from planner.verify.shelves import Lot, Machine, Place
from planner.workload.work import Work

P95 = 0.95
#: What a clock hangs on: hours of work, log_sigma, one node's rate, the longest run, nodes, and whether it hands over.
_Of = tuple[float, float, float, float, int, bool]


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


class Rates:
    """Clock and bill of any configuration of one job under one set of assumptions; each clock is worked out once."""

    def __init__(self, job: TrainingJob, start: datetime, work: Work, settings: PlannerSettings) -> None:
        """For this job from `start` on."""
        self._job, self._start, self._settings = job, start, settings
        self.checkpoint_gb = checkpoint_gb(work, job.training)
        self._z, self._z95 = quantile(job.confidence), quantile(P95)
        self._clocks: dict[_Of, Clock | None] = {}
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
        longest = lot.kind.max_run_hours or math.inf
        key = (row.hours_with_goodput * share, row.log_sigma, lot.rate, longest, nodes, hands_over)
        if key not in self._clocks:
            self._clocks[key] = self._clock(lot.rate * nodes, key)
        return self._clocks[key]

    def _clock(self, rate: float, of: _Of) -> Clock | None:
        work, log_sigma, _, longest, nodes, hands_over = of
        write, settings = self.checkpoint_hours(nodes), self._settings
        wait = settings.spot_wait_hours
        up = wall_hours(work, write, settings.restart_hours, rate)
        run, fixed = up * (1 + rate * wait), settings.setup_hours + (write if hands_over else 0.0)
        expected = fixed + mean_of(run, log_sigma)
        if not expected <= min(longest, NEVER_HOURS):
            return None
        sigma = spread(up, work, write, settings.restart_hours, rate, log_sigma=log_sigma, wait=wait)
        kept = fixed + run * math.exp(self._z * sigma)
        if not math.isfinite(kept):
            return None
        p95 = fixed + run * math.exp(self._z95 * sigma)
        paid = 1 / (1 + rate * wait)
        return Clock(run, sigma, expected, fixed + run, kept, p95, paid, fixed, log_sigma)

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
        usd, place = micros / 1e6, self.place(lot.place)
        term = 0 if lot.paid else lot.kind.term_hours
        brought = place.egress if egress is None else egress
        step, least = billing(lot.kind, term)
        node_hours = nodes * expected_billed(clock.fixed, clock.run * clock.paid, clock.log_sigma, step, least)
        power_per_hour = nodes * lot.machine.power_usd_per_hour
        compute, power = node_hours * usd, power_per_hour * (clock.fixed + clock.up)
        storage = place.storage_per_hour * clock.expected
        setup = 0.0 if term else min(nodes * usd * clock.fixed, compute)

        def at(hours: float) -> float:
            """USD of a run of so many hours."""
            up = clock.fixed + (hours - clock.fixed) * clock.paid
            billed = max(math.ceil(up / step - 1e-9) * step, least)
            return nodes * billed * usd + power_per_hour * up + place.storage_per_hour * hours + brought

        return Bill(
            compute,
            setup,
            storage,
            brought,
            power,
            compute + power + storage + brought,
            at(clock.median),
            at(clock.p95),
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
