"""Time and memory of a market's machines at every node count that a job may run on."""

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

from planner.candidates.kept_estimates import Able, kept_estimates
from planner.candidates.machine_rows import MachineRows, machine_rows
from planner.candidates.market import Market
from planner.candidates.screen import Screened
from planner.candidates.shapes import Shapes
from planner.estimate.corrected import estimate_learned
from planner.estimate.learned import Learned
from planner.estimate.machines import Estimates
from planner.job import Training
from planner.kept import kept_per_snapshot
from planner.own_steps import as_timed
from planner.question import Question
from planner.workload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimated:
    """The estimates of a market's machine shapes at every node count; `able` is there where they were kept."""

    rows: MachineRows
    estimates: Estimates
    able: Able | None = None


def shapes_left(market: Market, screened: Screened) -> frozenset[int]:
    """The shapes that some kept offer has."""
    return _left(market, screened)[0]


@kept_per_snapshot(128)
def _left(market: Market, screened: Screened) -> tuple[frozenset[int], float]:
    """The shapes that some kept offer has, and the most nodes of which some offer lets one job have; 1 without any offer."""
    types = market.snapshot.type_index[screened.places]
    shapes = frozenset(market.snapshot.shapes.of_type[types].tolist())
    return shapes, float(market.node_limit[types].max(initial=1.0))


def estimated(
    question: Question, market: Market, screened: Screened, max_nodes: int, shapes_wanted: Set[int]
) -> Estimated:
    """Time and memory of at least the shapes that some kept offer has, on up to `max_nodes` nodes."""
    shapes = market.snapshot.shapes
    wanted = tuple(sorted(shapes_wanted))
    most = market.up.nodes if market.up else int(min(max_nodes, _left(market, screened)[1]))
    work, training, goodput = question.work, question.job.training, question.settings.goodput
    if not market.owned and market.up is None:
        rows, estimates, able = kept_estimates(
            shapes, wanted, most, work, training, goodput=goodput, learned=question.learned
        )
        return Estimated(rows=rows, estimates=estimates, able=able)
    rows = _rows(shapes, wanted, most)
    estimates = _estimates(rows, work, training, goodput, question.learned)
    if any(machine.measured for machine in market.owned):
        estimates = as_timed(estimates, rows.machines, work, training)
    return Estimated(rows=rows, estimates=estimates)


@lru_cache(maxsize=16)
def _rows(shapes: Shapes, wanted: tuple[int, ...], most_nodes: int) -> MachineRows:
    """One object for one set of rows, by which `_estimates` knows it."""
    return machine_rows(shapes, wanted, most_nodes)


#: A user's own machines are few, and the same job is asked about again with every other deadline, budget or place.
@lru_cache(maxsize=16)
def _estimates(rows: MachineRows, work: Work, training: Training, goodput: float, learned: Learned) -> Estimates:
    return estimate_learned(work, training, rows.machines, goodput=goodput, learned=learned)
