"""Time and memory of a market's machines at every node count that a job may run on."""

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpuplan.planner.candidates.estimate_cache import Able, cached_estimates
from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.candidates.node_counts import MachineCandidates, machine_candidates
from gpuplan.planner.candidates.offer_screening import Screened
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.model.job import Training
from gpuplan.planner.model.learned import LearnedCorrections
from gpuplan.planner.performance.corrected_estimates import estimate_learned
from gpuplan.planner.performance.estimator_request import Estimates, Machines
from gpuplan.planner.performance.measured_steps import as_timed
from gpuplan.planner.workload.step_work import Work

#: What the estimate of a machine row depends on; one node does not use the network between nodes.
_ONE_NODE = ("accelerator", "devices", "fraction", "device_memory_mib", "intranode_gbs")
_MACHINE = (*_ONE_NODE, "scaleup_domain", "internode_gbps", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimated:
    """The estimates of a market's machine shapes at every node count; `able` is None if they are not cached."""

    rows: MachineCandidates
    estimates: Estimates
    able: Able | None = None


def estimate_of(estimated: Estimated, machines: Machines) -> Estimates | None:
    """What is already estimated for the only row of `machines`; None if that row is not there or cannot run."""
    known = estimated.rows.machines
    left = np.flatnonzero((known.nodes == machines.nodes) & (estimated.estimates.reason == 0))
    for name in _MACHINE if machines.nodes[0] > 1 else _ONE_NODE:
        mine, theirs = getattr(machines, name), getattr(known, name)[left]
        left = left[(theirs == mine) | (np.isnan(theirs) & np.isnan(mine))]
    return estimated.estimates.only(int(left[0])) if len(left) else None


def shapes_left(market: Market, screened: Screened) -> frozenset[int]:
    """The machine shapes of the screened offers."""
    return _left(market, screened)[0]


def _left(market: Market, screened: Screened) -> tuple[frozenset[int], float]:
    """The machine shapes of the screened offers, and the largest node limit among them; 1 without any offer."""
    types = market.snapshot.type_index[screened.places]
    shapes = frozenset(market.snapshot.shapes.of_type[types].tolist())
    return shapes, float(market.node_limit[types].max(initial=1.0))


def estimated(
    question: Question, market: Market, screened: Screened, max_nodes: int, shapes_wanted: Set[int]
) -> Estimated:
    """Time and memory of at least the shapes of the screened offers, on up to `max_nodes` nodes."""
    shapes = market.snapshot.shapes
    wanted = tuple(sorted(shapes_wanted))
    most = market.up.nodes if market.up else int(min(max_nodes, _left(market, screened)[1]))
    work, training, goodput = question.work, question.job.training, question.settings.goodput
    if not market.owned and market.up is None:
        rows, estimates, able = cached_estimates(
            shapes, wanted, most, work, training, goodput=goodput, learned=question.learned
        )
        return Estimated(rows=rows, estimates=estimates, able=able)
    rows = _rows(shapes, wanted, most)
    estimates = _estimates(rows, work, training, goodput, question.learned)
    if any(machine.measured for machine in market.owned):
        estimates = as_timed(estimates, rows.machines, work, training)
    return Estimated(rows=rows, estimates=estimates)


@lru_cache(maxsize=16)
def _rows(shapes: Shapes, wanted: tuple[int, ...], most_nodes: int) -> MachineCandidates:
    """Machine rows, one object per distinct set, so that `_estimates` can cache by identity."""
    return machine_candidates(shapes, wanted, most_nodes)


#: Owned machines are few, and the same job is planned again with other deadlines, budgets or places.
@lru_cache(maxsize=16)
def _estimates(
    rows: MachineCandidates, work: Work, training: Training, goodput: float | None, learned: LearnedCorrections
) -> Estimates:
    return estimate_learned(work, training, rows.machines, goodput=goodput, learned=learned)
