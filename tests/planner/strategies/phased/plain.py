"""A second, plain way to find the cheapest plan in phases: loops over all offers, all orders and a grid of shares.

Nothing is pruned, and no offer is left out because another of its kind is cheaper. Shares are the points of a coarse grid,
and those at which the deadline binds, found by trying; so a plan may beat this search, and must never lose.
"""

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, permutations, product
from statistics import NormalDist

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.model.interruption_rates import MOST_WAIT_LOG_SPREAD, WAIT_LOG_SPREAD
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.storage_rates import storage_usd_per_gb_month
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.verify.billed_hours import expected_billed
from gpuplan.planner.workload import work_of
from tests.planner.plain_setup import plain_setup_hours
from tests.planner.small_catalogues import START, estimated

STEPS = 100_000


_NEVER = (math.inf, math.inf, math.inf)
#: The 95th percentile of the standard normal.
_Z95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class Column:
    """One configuration, as phases need it; `machine` if it is the user's own and has windows."""

    key: tuple[str, str, str, str, str]
    nodes: int
    setup_hours: float
    work_hours: float
    log_sigma: float
    stack: tuple[str, str]
    rate: float
    usd_per_hour: float
    power_usd_per_hour: float
    step_hours: float
    minimum_hours: float
    term_hours: float
    longest_hours: float
    machine: OwnedMachine | None = None

    @property
    def place(self) -> tuple[str, str]:
        return self.key[0], self.key[1]


@dataclass(frozen=True)
class Plain:
    """What a plan costs, in micro-dollars, and takes with the confidence asked."""

    micros: int
    hours: float
    columns: tuple[Column, ...]
    steps: tuple[int, ...]


class Search:
    """All plans of a job over a catalogue and some own machines."""

    def __init__(
        self, job: TrainingJob, columns: Columns, settings: PlannerSettings, owned: tuple[OwnedMachine, ...] = ()
    ) -> None:
        if settings.spot_wait_hours is None:
            raise ValueError("this search knows only a stated spot_wait_hours")
        self.job, self.settings, self.wait_hours = job, settings, settings.spot_wait_hours
        self.start: datetime = job.start or START
        self.gb = checkpoint_gb(work_of(job.workload, job.training), job.training)
        self.z = NormalDist().inv_cdf(job.confidence)
        self.columns = [*self._rented(columns), *self._owned(owned)]

    def _rented(self, columns: Columns) -> list[Column]:
        kinds = self.job.constraints.price_kinds or tuple(n for n, kind in price_kinds().items() if kind.in_default)
        types = {
            (instance_type.provider, instance_type.name): instance_type for instance_type in columns.instance_types
        }
        rented = []
        for offer in columns.offers:
            instance_type, kind = types[offer.provider, offer.instance_type], price_kinds()[offer.price_kind]
            if offer.price_kind not in kinds:
                continue
            rate = offer.interruptions_per_hour
            rate = self.settings.default_interruptions_per_hour if rate is None else rate
            rented += self._columns(
                instance_type,
                key=offer.key,
                rate=rate if kind.interruptible else 0.0,
                usd_per_hour=offer.usd_micros_per_hour / 1e6,
                kind=offer.price_kind,
            )
        return rented

    def _owned(self, owned: tuple[OwnedMachine, ...]) -> list[Column]:
        columns = []
        for machine in owned:
            instance_type = machine.instance_type
            columns += self._columns(
                instance_type,
                key=(instance_type.provider, machine.region, "", instance_type.name, "owned"),
                rate=0.0,
                usd_per_hour=round(machine.usd_per_hour_full * 1e6) / 1e6,
                kind="owned",
                most=machine.machines,
                power=machine.usd_per_hour_power,
                machine=machine if machine.windows else None,
            )
        return columns

    def _columns(
        self,
        instance_type: InstanceType,
        *,
        key: tuple[str, ...],
        rate: float,
        usd_per_hour: float,
        kind: str,
        most: int = 10**6,
        power: float = 0.0,
        machine: OwnedMachine | None = None,
    ) -> list[Column]:
        columns, job, terms = [], self.job, price_kinds()[kind]
        for nodes in range(1, min(job.constraints.max_nodes, most) + 1):
            if nodes > 1 and not instance_type.clusters:
                continue
            ran = estimated(job.workload, job.training, instance_type, nodes, self.settings.goodput)
            if ran is None:
                continue
            hours, log_sigma, precision = ran
            columns.append(
                Column(
                    key=key,  # type: ignore[arg-type]
                    nodes=nodes,
                    setup_hours=plain_setup_hours(
                        instance_type.provider, instance_type.accelerator, kind, nodes, self.settings
                    ),
                    work_hours=hours,
                    log_sigma=log_sigma,
                    stack=(accelerators()[instance_type.accelerator].stack, precision),
                    rate=rate * nodes**self.settings.node_loss_exponent,
                    usd_per_hour=usd_per_hour,
                    power_usd_per_hour=power,
                    step_hours=terms.billing_step_seconds / 3600,
                    minimum_hours=terms.billing_minimum_seconds / 3600,
                    term_hours=float(terms.term_hours),
                    longest_hours=terms.max_run_hours or math.inf,
                    machine=machine,
                )
            )
        return columns

    def phase(self, column: Column, steps: int, *, last: bool) -> tuple[float, tuple[float, float, float]]:
        """USD without egress, and busy hours with the confidence asked (inf: not allowed), expected, and of 19 of 20."""
        settings, work = self.settings, column.work_hours * (steps / STEPS)
        write = self.gb / settings.checkpoint_gbs / 3600 / column.nodes
        fixed = column.setup_hours + (0.0 if last else write)
        run, wall, variance = work, work, column.log_sigma**2
        if column.rate:
            tau = min(max(math.sqrt(2 * write / column.rate), 1e-9), work)
            if column.rate * (tau + write + settings.restart_hours) > 700:
                return math.inf, _NEVER
            run = work / tau * math.exp(column.rate * settings.restart_hours)
            run *= math.expm1(column.rate * (tau + write)) / column.rate
            losses, lost, wait = column.rate * run, settings.restart_hours + (tau + write) / 2, self.wait_hours
            wall = run + losses * wait
            # Hours lost are uniform, hours waited are exponential: their variances, and the square of their mean.
            squared = (tau + write) ** 2 / 12 + wait**2 + (lost + wait) ** 2
            variance += math.log1p(losses * squared / wall**2)
            variance += min(WAIT_LOG_SPREAD * (wall - run) / wall, MOST_WAIT_LOG_SPREAD) ** 2
        sigma, mean = math.sqrt(variance), math.exp(column.log_sigma**2 / 2)
        confident, late = (fixed + wall * math.exp(z * sigma) for z in (self.z, _Z95))
        hours = fixed + wall * mean
        if hours > column.longest_hours:
            return math.inf, _NEVER
        step, least = (column.term_hours, 0.0) if column.term_hours else (column.step_hours, column.minimum_hours)
        billed = expected_billed(fixed, run, column.log_sigma, step, least)
        rates = storage_usd_per_gb_month(*column.place)
        stored = rates.block_usd_per_gb_month * self._data_gb(column.place)
        stored += rates.object_usd_per_gb_month * settings.checkpoints_kept * self.gb
        power = column.power_usd_per_hour * (fixed + run * mean)
        return column.nodes * (billed * column.usd_per_hour + power) + stored / 730.5 * hours, (confident, hours, late)

    def _data_gb(self, place: tuple[str, str]) -> float:
        data = self.job.data
        return 0.0 if place == (data.provider, data.region) else data.dataset_gb

    def _brought(self, place: tuple[str, str]) -> float:
        data, gb = self.job.data, self._data_gb(place)
        return egress_tiers(data.provider, data.region, *place).egress_usd(gb) if gb and data.provider else 0.0

    def priced(self, columns: tuple[Column, ...], steps: tuple[int, ...]) -> Plain:
        """A plan: each phase's own bill, moves between them, and the wait for windows."""
        micros, clocks, before = 0, [0.0, 0.0, 0.0], None
        for i, (column, share) in enumerate(zip(columns, steps, strict=True)):
            usd, busy = self.phase(column, share, last=i == len(columns) - 1)
            if before is None or before.place != column.place:
                usd += self._brought(column.place)
            if before is not None and before.place != column.place:
                usd += egress_tiers(*before.place, *column.place).egress_usd(self.gb)
                clocks = [clock + self.gb / self.settings.move_gbs / 3600 for clock in clocks]
            if math.isinf(sum(busy) + sum(clocks)):
                return Plain(0, math.inf, columns, steps)
            clocks = [clock + self._elapsed(column, hours, clock) for clock, hours in zip(clocks, busy, strict=True)]
            micros += round(usd * 1e6)
            before = column
        return Plain(micros, math.inf if math.isinf(sum(clocks)) else clocks[0], columns, steps)

    def _elapsed(self, column: Column, busy: float, clock: float) -> float:
        """Hours from `clock` until a column's machines were busy so long."""
        if column.machine is None:
            return busy
        begins = self.start + timedelta(hours=clock)
        return column.machine.elapsed_hours(begins, busy, restart_hours=self.settings.restart_hours)

    def allowed(self, plan: Plain) -> bool:
        """Whether deadline and budget are kept."""
        job = self.job
        in_time = plan.hours <= (math.inf if job.deadline_hours is None else job.deadline_hours)
        return in_time and plan.micros / 1e6 <= (math.inf if job.budget_usd is None else job.budget_usd)

    def orders(self, count: int) -> list[tuple[Column, ...]]:
        """Every sequence of so many columns that may follow each other."""
        names = range(len(self.columns))
        sequences = []
        for numbers in product(names, repeat=count):
            columns = tuple(self.columns[i] for i in numbers)
            if len({column.stack for column in columns}) > 1 or any(a == b for a, b in pairwise(numbers)):
                continue
            sequences.append(columns)
        return sequences

    def best(self, *, pair_points: int) -> Plain | None:
        """The cheapest plan of one or two phases on a grid of shares, and where two phases just meet the deadline."""
        plans = [self.priced(order, (STEPS,)) for order in self.orders(1)]
        for columns in self.orders(2):
            first = {round(STEPS * i / pair_points) for i in range(1, pair_points)} | self._binding(columns)
            plans += [self.priced(columns, (a, STEPS - a)) for a in sorted(first) if 0 < a < STEPS]
        return min((plan for plan in plans if self.allowed(plan)), key=lambda plan: plan.micros, default=None)

    def _binding(self, columns: tuple[Column, ...]) -> set[int]:
        """Shares of the first of two at which the deadline just holds, and their neighbours."""
        if self.job.deadline_hours is None:
            return set()
        low, high = 1, STEPS - 1
        while high - low > 1:
            middle = (low + high) // 2
            late = self.priced(columns, (middle, STEPS - middle)).hours > self.job.deadline_hours
            low, high = (low, middle) if late else (middle, high)
        return {low - 1, low, high, high + 1}


def neighbours(draw: random.Random, steps: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """Shares near these, from a step away to anywhere."""
    schedules = []
    for _ in range(count):
        changed = list(steps)
        for one, other in permutations(range(len(steps)), 2):
            by = draw.choice((0, 0, 1, -1, draw.randint(-300, 300), draw.randint(-50_000, 50_000)))
            if changed[one] - by > 0 and changed[other] + by > 0:
                changed[one], changed[other] = changed[one] - by, changed[other] + by
        schedules.append(tuple(changed))
    return schedules
