"""Every configuration of the job, one by one: each lot at each node count that a plan considers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.job import TrainingJob
from planner.verify.bill import Rates
from planner.verify.clock import Clock
from planner.verify.estimates import Estimator, Row, Shape, runs_on, shape_of
from planner.verify.rules import node_counts
from planner.verify.shelves import Lot


class Priced(NamedTuple):
    """A lot at a node count: whole micro-dollars, hours, kg of CO2 (None: unknown), and the requirements it breaks."""

    lot: Lot
    nodes: int
    micros: int
    clock: Clock
    carbon_kg: float | None
    broken: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """What to enumerate: a job's lots with the rows of their machines. `layers` of the model set node counts apart."""

    job: TrainingJob
    rates: Rates
    estimator: Estimator
    layers: int

    def pairs(self, lots: list[Lot], most_nodes: int) -> dict[int, list[int]]:
        """Per shelf the node counts: up to what is asked, or what the shelf holds if that is less."""
        most: dict[int, int] = {}
        for lot in lots:
            most[lot.shelf] = max(most.get(lot.shelf, 1), min(most_nodes, lot.machine.limit))
        return {shelf: node_counts(count) for shelf, count in most.items()}

    def rows(self, lots: list[Lot], most_nodes: int) -> tuple[dict[tuple[Shape, int], Row], dict[int, list[int]]]:
        """The estimates that the lots need, asked for at once, and the node counts of each shelf."""
        counts = self.pairs(lots, most_nodes)
        wanted = {
            (id(lot.machine), lot.shelf): (
                lot.machine,
                runs_on(lot.machine.type, counts[lot.shelf], counts[lot.shelf][-1]),
            )
            for lot in lots
        }
        found = self.estimator.ask((machine, nodes) for machine, many in wanted.values() for nodes in many)
        return found, counts

    def runnable(self, lots: list[Lot], most_nodes: int) -> Iterator[tuple[Lot, int, Row]]:
        """Every lot at every node count at which its machines can run the job, whatever that takes."""
        rows, counts = self.rows(lots, most_nodes)
        for lot in lots:
            shape = shape_of(lot.machine)
            for nodes in runs_on(lot.machine.type, counts[lot.shelf], counts[lot.shelf][-1]):
                row = rows[shape, nodes]
                if not row.reason and nodes <= lot.machine.limit:
                    yield lot, nodes, row

    def priced(self, lots: list[Lot], most_nodes: int) -> Iterator[Priced]:
        """Every configuration of these lots that ends, with what it breaks."""
        for lot, nodes, row in self.runnable(lots, most_nodes):
            found = self.one(lot, lot.micros, nodes, row)
            if found is not None:
                yield found

    def one(self, lot: Lot, micros: int, nodes: int, row: Row) -> Priced | None:
        """One configuration at a price; None where it does not end."""
        busy = self.rates.clock(lot, nodes, row)
        if busy is None:
            return None
        clock = self.rates.in_windows(lot.machine, busy)
        if clock is None:
            return None
        total = round(self.rates.bill(lot, micros, nodes, busy).total * 1e6)
        kg = self.rates.kg_per_node_hour(lot)
        kg = None if kg is None else kg * nodes * busy.up
        return Priced(lot, nodes, total, clock, kg, self._broken(lot, nodes, total, clock, kg))

    def _broken(self, lot: Lot, nodes: int, micros: int, clock: Clock, kg: float | None) -> frozenset[str]:
        """The lot's own and those of size, time, money and carbon; kilograms count as they are shown, to nine digits."""
        job, asked = self.job, self.job.constraints
        more = []
        if asked.carbon_budget_kg is not None and (kg is None or kg > asked.carbon_budget_kg * (1 + 1e-9)):
            more.append("constraints.carbon_budget_kg")
        if job.objective == "carbon" and kg is None:
            more.append("objective")
        if nodes > asked.max_nodes:
            more.append("constraints.max_nodes")
        if asked.max_accelerators is not None and nodes * lot.machine.type.devices > asked.max_accelerators:
            more.append("constraints.max_accelerators")
        if job.deadline_hours is not None and clock.kept > job.deadline_hours:
            more.append("deadline")
        if job.budget_usd is not None and micros / 1e6 > job.budget_usd:
            more.append("budget_usd")
        return lot.broken.union(more) if more else lot.broken


def at_price(lot: Lot, micros: int) -> Lot:
    """The same lot at another price: one of its dearer offers."""
    return replace(lot, micros=micros)
