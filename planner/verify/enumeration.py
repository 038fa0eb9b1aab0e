"""Every configuration of the job: each lot at every whole node count up to the most allowed, and slices at their size.

No node count is left out and none is excluded by a bound: which counts the planner looked at plays no part here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.job import TrainingJob
from planner.verify.bill import Rates
from planner.verify.clock import Floats, Ints
from planner.verify.estimates import Estimator, Scaling
from planner.verify.shelves import Lot, Machine

#: What a configuration may break by its size, time, money and carbon, beside what its lot breaks: one bit each.
EXTRA = (
    "constraints.carbon_budget_kg",
    "objective",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "deadline",
    "budget_usd",
)
BIT = {name: 1 << number for number, name in enumerate(EXTRA)}
Bools = NDArray[np.bool_]


class Priced(NamedTuple):
    """A lot at a node count: whole micro-dollars, hours at the asked confidence, kg of CO2 (None: unknown), and the
    requirements it breaks.
    """

    lot: Lot
    nodes: int
    micros: int
    kept_hours: float
    carbon_kg: float | None
    broken: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """A lot at every node count at which it can run the job and ends: arrays of equal length, fewest nodes first.

    `carbon_kg` is nan where it is unknown; `broken` holds the bits of `EXTRA` beside what the lot itself breaks.
    """

    lot: Lot
    nodes: Ints
    micros: Ints
    kept_hours: Floats
    carbon_kg: Floats
    broken: Ints

    def __len__(self) -> int:
        """How many configurations it holds."""
        return len(self.nodes)

    def at(self, index: int) -> Priced:
        """One configuration."""
        kg = float(self.carbon_kg[index])
        return Priced(
            self.lot,
            int(self.nodes[index]),
            int(self.micros[index]),
            float(self.kept_hours[index]),
            None if math.isnan(kg) else kg,
            self.lot.broken.union(names_of(int(self.broken[index]))),
        )

    def every(self) -> Iterator[Priced]:
        """Every configuration."""
        return (self.at(index) for index in range(len(self)))

    def within(self, allowed: frozenset[str]) -> "Sweep":
        """The configurations that break nothing but what is allowed."""
        if not self.lot.broken <= allowed:
            return self.take(np.zeros(len(self), np.bool_))
        refused = sum(bit for name, bit in BIT.items() if name not in allowed)
        kept = (self.broken & refused) == 0
        return self if kept.all() else self.take(kept)

    def take(self, which: Bools) -> "Sweep":
        """The configurations that are marked."""
        return Sweep(
            lot=self.lot,
            nodes=self.nodes[which],
            micros=self.micros[which],
            kept_hours=self.kept_hours[which],
            carbon_kg=self.carbon_kg[which],
            broken=self.broken[which],
        )


def names_of(bits: int) -> frozenset[str]:
    """The requirements that these bits of `EXTRA` stand for."""
    return frozenset(name for name, bit in BIT.items() if bits & bit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """What to enumerate: a job's lots with the estimates of their machines."""

    job: TrainingJob
    rates: Rates
    estimator: Estimator

    def scalings(self, lots: list[Lot], most_nodes: int) -> list[Scaling]:
        """The estimates of the machine of each lot at every node count, up to what is asked or what its shelf holds."""
        most: dict[int, int] = {}
        for lot in lots:
            most[lot.shelf] = max(most.get(lot.shelf, 1), min(most_nodes, lot.machine.limit))
        return self.estimator.scalings((lot.machine, node_counts(lot.machine, most[lot.shelf])) for lot in lots)

    def runnable(self, lots: list[Lot], most_nodes: int) -> Iterator[tuple[Lot, Scaling]]:
        """Every lot at the node counts at which its machines can run the job, whatever that takes."""
        runs: dict[Scaling, Scaling] = {}
        for lot, scaling in zip(lots, self.scalings(lots, most_nodes), strict=True):
            if scaling not in runs:
                runs[scaling] = scaling.that_run()
            found = runs[scaling]
            if len(found.nodes) and found.nodes[-1] > lot.machine.limit:
                found = found.take(found.nodes <= lot.machine.limit)
            if len(found.nodes):
                yield lot, found

    def sweeps(self, lots: list[Lot], most_nodes: int) -> Iterator[Sweep]:
        """Every configuration of these lots that ends, lot by lot, with what it breaks."""
        for lot, scaling in self.runnable(lots, most_nodes):
            found = self.sweep(lot, scaling)
            if len(found):
                yield found

    def priced(self, lots: list[Lot], most_nodes: int) -> Iterator[Priced]:
        """The same one by one."""
        return (each for sweep in self.sweeps(lots, most_nodes) for each in sweep.every())

    def sweep(self, lot: Lot, scaling: Scaling) -> Sweep:
        """One lot at the node counts of a scaling; those that do not end are left out."""
        ends, busy = self.rates.clocks(lot, scaling)
        free, clocks = self.rates.clocks_in_windows(lot.machine, busy)
        if len(free) < len(ends):
            ends, busy = ends[free], busy.take(np.isin(np.arange(len(ends)), free))
        nodes = scaling.nodes[ends]
        micros = np.rint(self.rates.bills(lot, lot.micros, nodes, busy).total * 1e6).astype(np.int64)
        each = self.rates.kg_per_node_hour(lot)
        kg = np.full(len(nodes), np.nan) if each is None else each * nodes * busy.up
        broken = self._broken(lot, nodes, micros, clocks.kept, kg)
        return Sweep(lot=lot, nodes=nodes, micros=micros, kept_hours=clocks.kept, carbon_kg=kg, broken=broken)

    def _broken(self, lot: Lot, nodes: Ints, micros: Ints, kept_hours: Floats, kg: Floats) -> Ints:
        """What of size, time, money and carbon is broken; kilograms count as they are shown, to nine digits."""
        job, asked = self.job, self.job.constraints
        broken = np.zeros(len(nodes), np.int64)

        def mark(name: str, where: Bools) -> None:
            broken[where] |= BIT[name]

        if asked.carbon_budget_kg is not None:
            mark("constraints.carbon_budget_kg", ~(kg <= asked.carbon_budget_kg * (1 + 1e-9)))
        if job.objective == "carbon":
            mark("objective", np.isnan(kg))
        mark("constraints.max_nodes", nodes > asked.max_nodes)
        if asked.max_accelerators is not None:
            mark("constraints.max_accelerators", nodes * lot.machine.type.devices > asked.max_accelerators)
        if job.deadline_hours is not None:
            mark("deadline", kept_hours > job.deadline_hours)
        if job.budget_usd is not None:
            mark("budget_usd", micros / 1e6 > job.budget_usd)
        return broken


def node_counts(machine: Machine, most: int) -> range:
    """The node counts that a machine can be had in: every whole one to the most where its nodes cluster, one where they do
    not, and all hosts together of a slice that has no more than the most.
    """
    each = machine.type
    if each.fixed_nodes:
        return range(each.fixed_nodes, each.fixed_nodes + 1 if each.fixed_nodes <= most else each.fixed_nodes)
    return range(1, most + 1 if each.clusters else 2)


def at_price(lot: Lot, micros: int) -> Lot:
    """The same lot at another price: one of its dearer offers."""
    return replace(lot, micros=micros)
