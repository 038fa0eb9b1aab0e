"""Every configuration of a job: each offer group at every allowed node count, slices at their size.

No node count is omitted or excluded by a bound, and the planner's choice of node counts is not used.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.verify.cost_recomputation import Rates
from gpuplan.planner.verify.estimator_port import Estimator, Scaling
from gpuplan.planner.verify.offer_groups import Machine, OfferGroup
from gpuplan.planner.verify.wall_clock_hours import Floats, Ints

#: Requirements on size, time, cost and carbon, one bit each; the offer group lists the others that it breaks.
EXTRA = (
    "constraints.carbon_budget_kg",
    "objective",
    "constraints.max_nodes",
    "constraints.max_accelerators",
    "deadline",
    "budget_usd",
    "constraints.quotas",
)
BIT = {name: 1 << number for number, name in enumerate(EXTRA)}
Bools = NDArray[np.bool_]


class Priced(NamedTuple):
    """An offer group at a node count: micro-dollars, hours at the requested confidence, kg of CO2 (None: unknown),
    and the requirements that it breaks.
    """

    offer_group: OfferGroup
    nodes: int
    micros: int
    confident_hours: float
    carbon_kg: float | None
    broken: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """An offer group at every node count at which the job runs and ends: arrays of equal length, ascending node
    counts.

    `carbon_kg` is nan where unknown. `broken` has the bits of `EXTRA`; `offer_group.broken` lists other requirements.
    """

    offer_group: OfferGroup
    nodes: Ints
    micros: Ints
    confident_hours: Floats
    carbon_kg: Floats
    broken: Ints

    def __len__(self) -> int:
        """The number of configurations."""
        return len(self.nodes)

    def at(self, index: int) -> Priced:
        """The configuration at this index."""
        kg = float(self.carbon_kg[index])
        return Priced(
            self.offer_group,
            int(self.nodes[index]),
            int(self.micros[index]),
            float(self.confident_hours[index]),
            None if math.isnan(kg) else kg,
            self.offer_group.broken.union(names_of(int(self.broken[index]))),
        )

    def every(self) -> Iterator[Priced]:
        """All configurations one by one."""
        return (self.at(index) for index in range(len(self)))

    def within(self, allowed: frozenset[str]) -> "Sweep":
        """The configurations that break no requirement other than these."""
        if not self.offer_group.broken <= allowed:
            return self.take(np.zeros(len(self), np.bool_))
        is_allowed = (self.broken & _refused(allowed)) == 0
        return self if is_allowed.all() else self.take(is_allowed)

    def take(self, which: Bools) -> "Sweep":
        """The marked configurations."""
        return Sweep(
            offer_group=self.offer_group,
            nodes=self.nodes[which],
            micros=self.micros[which],
            confident_hours=self.confident_hours[which],
            carbon_kg=self.carbon_kg[which],
            broken=self.broken[which],
        )


#: There are 128 sets of them.
@cache
def names_of(bits: int) -> frozenset[str]:
    """The names of the requirements in these bits of `EXTRA`."""
    return frozenset(name for name, bit in BIT.items() if bits & bit)


@lru_cache(maxsize=64)
def _refused(allowed: frozenset[str]) -> int:
    """The bits of `EXTRA` that are not allowed."""
    return sum(bit for name, bit in BIT.items() if name not in allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """The inputs of the enumeration: the job, its costs and its estimates.

    All hosts of a run together need `hosts_gib` of memory.
    """

    job: TrainingJob
    rates: Rates
    estimator: Estimator
    hosts_gib: float = 0.0

    def scalings(self, offer_groups: list[OfferGroup], most_nodes: int) -> list[Scaling]:
        """The estimates of every offer group's machine at each node count up to `most_nodes` or the nodes of its
        source.
        """
        most: dict[int, int] = {}
        for offer_group in offer_groups:
            most[offer_group.source_number] = max(
                most.get(offer_group.source_number, 1), min(most_nodes, offer_group.machine.limit)
            )
        return self.estimator.scalings(
            (offer_group.machine, node_counts(offer_group.machine, most[offer_group.source_number]))
            for offer_group in offer_groups
        )

    def runnable(self, offer_groups: list[OfferGroup], most_nodes: int) -> Iterator[tuple[OfferGroup, Scaling]]:
        """Every offer group at the node counts that can run the job, at any cost and duration."""
        runs: dict[Scaling, Scaling] = {}
        for offer_group, scaling in zip(offer_groups, self.scalings(offer_groups, most_nodes), strict=True):
            if scaling not in runs:
                runs[scaling] = scaling.that_run()
            runnable = runs[scaling]
            if len(runnable.nodes) and runnable.nodes[-1] > offer_group.machine.limit:
                runnable = runnable.take(runnable.nodes <= offer_group.machine.limit)
            if self.hosts_gib and offer_group.machine.type.ram_gib is not None:
                runnable = runnable.take(runnable.nodes * offer_group.machine.type.ram_gib >= self.hosts_gib)
            if len(runnable.nodes):
                yield offer_group, runnable

    def sweeps(self, offer_groups: list[OfferGroup], most_nodes: int) -> Iterator[Sweep]:
        """The configurations of each offer group that end, with the requirements that they break."""
        for offer_group, scaling in self.runnable(offer_groups, most_nodes):
            sweep = self.sweep(offer_group, scaling)
            if len(sweep):
                yield sweep

    def priced(self, offer_groups: list[OfferGroup], most_nodes: int) -> Iterator[Priced]:
        """The same configurations one by one."""
        return (priced for sweep in self.sweeps(offer_groups, most_nodes) for priced in sweep.every())

    def sweep(self, offer_group: OfferGroup, scaling: Scaling) -> Sweep:
        """One offer group at the node counts of a scaling, without those at which the job does not end."""
        ends, busy = self.rates.clocks(offer_group, scaling)
        free, clocks = self.rates.clocks_in_windows(offer_group.machine, busy)
        if len(free) < len(ends):
            ends, busy = ends[free], busy.take(np.isin(np.arange(len(ends)), free))
        nodes = scaling.nodes[ends]
        micros = np.rint(self.rates.totals(offer_group, offer_group.micros, nodes, busy) * 1e6).astype(np.int64)
        kg_per_node_hour = self.rates.kg_per_node_hour(offer_group)
        kg = np.full(len(nodes), np.nan) if kg_per_node_hour is None else kg_per_node_hour * nodes * busy.up
        broken = self._broken(offer_group, nodes, micros, clocks.confident, kg)
        return Sweep(
            offer_group=offer_group,
            nodes=nodes,
            micros=micros,
            confident_hours=clocks.confident,
            carbon_kg=kg,
            broken=broken,
        )

    def _broken(self, offer_group: OfferGroup, nodes: Ints, micros: Ints, confident_hours: Floats, kg: Floats) -> Ints:
        """The bits of `EXTRA` that are broken; kilograms are compared with the tolerance of nine shown digits."""
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
            mark("constraints.max_accelerators", nodes * offer_group.machine.type.devices > asked.max_accelerators)
        mark("constraints.quotas", nodes > offer_group.quota_nodes)
        if job.deadline_hours is not None:
            mark("deadline", confident_hours > job.deadline_hours)
        if job.budget_usd is not None:
            mark("budget_usd", micros / 1e6 > job.budget_usd)
        return broken


def node_counts(machine: Machine, most: int) -> range:
    """The node counts at which a machine is sold: all to `most` if its nodes cluster, else one; a slice has all its
    hosts.
    """
    instance_type = machine.type
    if instance_type.fixed_nodes:
        return range(
            instance_type.fixed_nodes,
            instance_type.fixed_nodes + 1 if instance_type.fixed_nodes <= most else instance_type.fixed_nodes,
        )
    return range(1, most + 1 if instance_type.clusters else 2)


def at_price(offer_group: OfferGroup, micros: int) -> OfferGroup:
    """The same offer group at the price of one of its more expensive offers."""
    return replace(offer_group, micros=micros)
