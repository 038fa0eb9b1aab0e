"""The configurations of a job as columns of a plan in phases: where they stand, and what a share of the work costs on each.

The straight lines below cost and time come first (`planner.phases.lines`), since by them most configurations are left out;
columns are made of those that are left.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from catalog.owned import OwnedMachine
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.candidates.market import Market
from planner.cost.bill import Run, z_score
from planner.cost.checkpoints import checkpoint_gb
from planner.phases.lines import Lined, every_line, lined, windowed_machines
from planner.phases.straight import Straight
from planner.settings import PlannerSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseColumns:
    """One element per configuration of `lined`, which has the straight lines below cost and time.

    `place` numbers distinct regions, `places` names them; columns move only within the same `kin` (software stack and
    precision). `machine` is the own machine of a column with windows, else None; `caps` the largest share of the work
    that price kind and windows leave room for, `most_steps` that which the deadline leaves too, in steps. Columns that are
    `up` can only come first; any other that does costs `first_usd` more and waits `first_hours`, where a job is under way.
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
        """What is bought in each of them."""
        return self.lined.run

    @property
    def lines(self) -> Straight:
        """The straight lines below cost and time."""
        return self.lined.lines

    @cached_property
    def intervals(self) -> Floats:
        """Hours of work between checkpoints where there is more work than that; 0 without preemption."""
        run = self.run
        intervals, hit = np.zeros(len(run)), np.flatnonzero(run.cluster_rate > 0)
        intervals[hit] = np.maximum(np.sqrt(2 * run.checkpoint_hours[hit] / run.cluster_rate[hit]), 1e-9)
        return intervals

    @property
    def deadline_hours(self) -> float:
        """The deadline; inf if there is none."""
        return self.lines.deadline_hours

    @property
    def fixed_usd(self) -> Floats:
        """A of the lines, in USD."""
        return self.lines.fixed_usd

    @property
    def slope_usd(self) -> Floats:
        """B of the lines, in USD."""
        return self.lines.slope_usd

    @property
    def fixed_hours(self) -> Floats:
        """The lines' a."""
        return self.lines.fixed_hours

    @property
    def slope_hours(self) -> Floats:
        """The lines' b."""
        return self.lines.slope_hours

    @property
    def data_usd(self) -> Floats:
        """Bringing the data to the place of a column."""
        return self.run.egress_usd

    @property
    def caps(self) -> Floats:
        """The largest share of the work, deadline apart."""
        return self.lines.caps

    @property
    def kin(self) -> Ints:
        """Software stack and precision."""
        return self.lined.kin

    @property
    def most_steps(self) -> Ints:
        """The largest share of the work in time, in steps."""
        return self.lines.most_steps

    @property
    def write_hours(self) -> Floats:
        """Time to write one checkpoint, per configuration."""
        return self.run.checkpoint_hours

    def take(self, which: Ints) -> "PhaseColumns":
        """The columns at these elements; nothing of a column rests on the others."""
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
    As 2 sigma + 1 / sigma is at least the root of 8, that is never positive up to a confidence of 99.7 %, and above it
    where sigma, which falls as r grows, is below the lesser root. There T rises too, by 1 - z h / (2 sigma) of itself per
    part of r, since z h / (2 sigma) <= h + h / (2 sigma^2), and h <= sigma^2 <= 1 / 2. Below the median it never is.
    """
    z = z_score(confidence)
    if z < 0:
        return -math.inf
    return math.inf if z * z <= 8.0 else (z - math.sqrt(z * z - 8.0)) / 4.0


#: Searches for standbys and for a fallback ask in turn; some plans are made at the same time.
@lru_cache(maxsize=4)
def every_column(found: Candidates) -> PhaseColumns:
    """All of `found.shares` as columns, worked out once."""
    return columns_on(found, every_line(found))


def columns_of_table(found: Candidates) -> tuple[PhaseColumns, Ints]:
    """Columns among which all configurations of `found.table` are, and which of them these are."""
    every = every_column(found)
    if found.table is found.shares:
        return every, np.arange(len(found.table))
    whole = np.flatnonzero(np.isfinite(every.table.bill.hours_kept))
    names = ("market", "place", "nodes")
    if len(whole) == len(found.table) and all(
        np.array_equal(getattr(every.table, name)[whole], getattr(found.table, name)) for name in names
    ):
        return every, whole
    return phase_columns(found, found.table), np.arange(len(found.table))


def phase_columns(found: Candidates, table: Configurations) -> PhaseColumns:
    """The configurations of `table`, which are some of those found, as columns."""
    return columns_on(found, lined(found, table))


def columns_on(found: Candidates, some: Lined) -> PhaseColumns:
    """Configurations as columns."""
    question, table, takeover = found.question, some.table, some.run.takeover
    up = [i for i, each in enumerate(question.markets) if each.up]
    place, places = _places(found, table)
    machines, zeros = windowed_machines(found, table), np.zeros(len(table))
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
        windowed=np.array([each is not None for each in machine], np.bool_) if machines else zeros > 0,
        up=np.isin(table.market, up) if up else zeros > 0,
        first_usd=zeros if takeover is None else takeover.fetch_usd + takeover.lead_usd,
        first_hours=zeros if takeover is None else takeover.delay_hours,
    )


def _places(found: Candidates, table: Configurations) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """The number of each configuration's (provider, region), the same in all markets, and the names by number."""
    markets = found.question.markets
    by_market, names = _numbered(markets)
    if len(markets) == 1:
        return by_market[0][markets[0].snapshot.region_index[table.place]], names
    place = np.empty(len(table), np.int64)
    for number, market in enumerate(markets):
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


def ranks(found: Candidates, columns: PhaseColumns) -> Ints:
    """The rank of each column among phases, where orders cost the same: interruptible first, then the slowest; the
    catalogue's order between equals.
    """
    table, run = columns.table, columns.run
    offer = np.empty(len(table), np.int64)
    for number, market in enumerate(found.question.markets):
        mine = np.flatnonzero(table.market == number)
        offer[mine] = market.snapshot.original[table.place[mine]]
    order = np.lexsort((table.nodes, offer, table.market, -run.work_hours, run.cluster_rate == 0))
    rank = np.empty(len(table), np.int64)
    rank[order] = np.arange(len(table))
    # What runs already comes before everything else, whatever it is.
    rank[columns.up] = -1
    return rank
