"""The configurations of a job as columns of a plan in phases: their region, machine, lines and set-up.

The lines below cost and hours come first (`linear_bounds`), since they exclude most configurations. Columns are made of
those that are left.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.cost.cost_breakdown import z_score
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.cost.run_inputs import Run
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.strategies.phased.linear_bounds import Lined, lined, windowed_machines
from gpuplan.planner.strategies.phased.linear_underestimators import LinearUnderestimator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseColumns:
    """One element per configuration of `lined`, which has the lines below cost and hours.

    `place` numbers distinct regions, `places` names them. A run moves only between columns of the same `migration_class`
    (software stack and precision). `machine` is the owned machine of a column with windows, else None; `caps` the largest
    share of the work that price kind and windows leave room for; `most_steps` the same with the deadline, in steps. Columns
    that are `up` can only come first. Where a job is running, any other first column costs `first_usd` more and waits
    `first_hours`.
    """

    lined: Lined
    settings: PlannerSettings
    start: datetime
    confidence: float
    checkpoint_gb: float
    place: Ints
    places: tuple[tuple[str, str], ...]
    machine: tuple[OwnedMachine | None, ...]
    windowed: NDArray[np.bool_]
    up: NDArray[np.bool_]
    first_usd: Floats
    first_hours: Floats

    def __len__(self) -> int:
        """How many configurations there are."""
        return len(self.table)

    @property
    def table(self) -> Configurations:
        """The configurations."""
        return self.lined.table

    @property
    def run(self) -> Run:
        """The machines run for each of them."""
        return self.lined.run

    @property
    def linear_bounds(self) -> LinearUnderestimator:
        """The lines below cost and hours."""
        return self.lined.linear_bounds

    @cached_property
    def intervals(self) -> Floats:
        """Hours of work between checkpoints, where there is more work than that; 0 without preemption."""
        run = self.run
        intervals, hit = np.zeros(len(run)), np.flatnonzero(run.cluster_rate > 0)
        intervals[hit] = np.maximum(np.sqrt(2 * run.checkpoint_hours[hit] / run.cluster_rate[hit]), 1e-9)
        return intervals

    @property
    def deadline_hours(self) -> float:
        """The deadline; inf if there is none."""
        return self.linear_bounds.deadline_hours

    @property
    def fixed_usd(self) -> Floats:
        """A of the lines, in USD."""
        return self.linear_bounds.fixed_usd

    @property
    def slope_usd(self) -> Floats:
        """B of the lines, in USD."""
        return self.linear_bounds.slope_usd

    @property
    def fixed_hours(self) -> Floats:
        """a of the lines, in hours."""
        return self.linear_bounds.fixed_hours

    @property
    def slope_hours(self) -> Floats:
        """b of the lines, in hours."""
        return self.linear_bounds.slope_hours

    @property
    def data_usd(self) -> Floats:
        """Egress of the data to the region of a column, in USD."""
        return self.run.egress_usd

    @property
    def caps(self) -> Floats:
        """The largest share of the work, without the deadline."""
        return self.linear_bounds.caps

    @property
    def migration_class(self) -> Ints:
        """Software stack and precision."""
        return self.lined.migration_class

    @property
    def most_steps(self) -> Ints:
        """The largest share of the work within the deadline, in steps."""
        return self.linear_bounds.most_steps

    @property
    def write_hours(self) -> Floats:
        """Time to write one checkpoint, per configuration."""
        return self.run.checkpoint_hours

    def take(self, which: Ints) -> "PhaseColumns":
        """The columns at these indices; each is independent of the others."""
        windows = bool(self.windowed.any())
        return PhaseColumns(
            lined=self.lined.take(which),
            settings=self.settings,
            start=self.start,
            confidence=self.confidence,
            checkpoint_gb=self.checkpoint_gb,
            place=self.place[which],
            places=self.places,
            machine=tuple(self.machine[i] for i in which.tolist()) if windows else (None,) * len(which),
            windowed=self.windowed[which],
            up=self.up[which],
            first_usd=self.first_usd[which],
            first_hours=self.first_hours[which],
        )


def concave_below_sigma(confidence: float) -> float:
    """The sigma up to which confident hours T = r exp(z sigma) rise with the run hours r and are concave in them.

    With sigma^2 = L + ln(1 + q / r) and h = q / (r + q), T'' is h^2 z T / (4 r^2 sigma^2) times z - 2 sigma - 1 / sigma.
    As 2 sigma + 1 / sigma >= sqrt(8), T'' is never positive up to a confidence of 99.7 %. Above that confidence it is not
    positive where sigma, which falls as r grows, is below the lesser root. There T rises too, by 1 - z h / (2 sigma) of
    itself per part of r, since z h / (2 sigma) <= h + h / (2 sigma^2), and h <= sigma^2 <= 1 / 2. Below the median T is
    never concave.
    """
    z = z_score(confidence)
    if z < 0:
        return -math.inf
    return math.inf if z * z <= 8.0 else (z - math.sqrt(z * z - 8.0)) / 4.0


def columns_of_table(candidates: Candidates) -> tuple[PhaseColumns, Ints]:
    """Columns that include all configurations of `candidates.table`, and the indices of these."""
    every = phase_columns(candidates, candidates.shares)
    if candidates.table is candidates.shares:
        return every, np.arange(len(candidates.table))
    whole = np.flatnonzero(np.isfinite(every.table.cost_breakdown.hours_at_confidence))
    names = ("market", "place", "nodes")
    if len(whole) == len(candidates.table) and all(
        np.array_equal(getattr(every.table, name)[whole], getattr(candidates.table, name)) for name in names
    ):
        return every, whole
    return phase_columns(candidates, candidates.table), np.arange(len(candidates.table))


def phase_columns(candidates: Candidates, table: Configurations) -> PhaseColumns:
    """Some of the candidate configurations (`table`) as columns."""
    return columns_on(candidates, lined(candidates, table))


def columns_on(candidates: Candidates, some: Lined) -> PhaseColumns:
    """Configurations as columns."""
    question, table, takeover = candidates.question, some.table, some.run.takeover
    up = [i for i, market in enumerate(question.markets) if market.up]
    place, places = _places(candidates, table)
    machines, zeros = windowed_machines(candidates, table), np.zeros(len(table))
    machine = tuple(machines.get(i) for i in range(len(table))) if machines else (None,) * len(table)
    return PhaseColumns(
        lined=some,
        settings=question.settings,
        start=question.start,
        confidence=question.job.confidence,
        checkpoint_gb=checkpoint_gb(question.work, question.job.training),
        place=place,
        places=places,
        machine=machine,
        windowed=np.array([owned is not None for owned in machine], np.bool_) if machines else zeros > 0,
        up=np.isin(table.market, up) if up else zeros > 0,
        first_usd=zeros if takeover is None else takeover.fetch_usd + takeover.lead_usd,
        first_hours=zeros if takeover is None else takeover.delay_hours,
    )


def _places(candidates: Candidates, table: Configurations) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """The number of each configuration's (provider, region), the same in all markets, and the names by number."""
    markets = candidates.question.markets
    by_market, names = _numbered(markets)
    if len(markets) == 1:
        return by_market[0][markets[0].snapshot.region_index[table.place]], names
    place = np.empty(len(table), np.int64)
    for number, market in enumerate(markets):
        mine = table.market == number
        place[mine] = by_market[number][market.snapshot.region_index[table.place[mine]]]
    return place, names


@lru_cache(maxsize=8)
def _numbered(markets: tuple[Market, ...]) -> tuple[tuple[Ints, ...], tuple[tuple[str, str], ...]]:
    """The number of each region of each market, and the names by number."""
    names: dict[tuple[str, str], int] = {}
    numbers = tuple(
        np.array([names.setdefault(region, len(names)) for region in market.columns.regions], np.int64)
        for market in markets
    )
    return numbers, tuple(names)


def ranks(candidates: Candidates, columns: PhaseColumns) -> Ints:
    """The rank of each column where orders cost the same: interruptible first, then the slowest, then the catalogue's order."""
    table, run = columns.table, columns.run
    offer = np.empty(len(table), np.int64)
    for number, market in enumerate(candidates.question.markets):
        mine = np.flatnonzero(table.market == number)
        offer[mine] = market.snapshot.original[table.place[mine]]
    order = np.lexsort((table.nodes, offer, table.market, -run.work_hours, run.cluster_rate == 0))
    rank = np.empty(len(table), np.int64)
    rank[order] = np.arange(len(table))
    # Machines that are up come before all others.
    rank[columns.up] = -1
    return rank
