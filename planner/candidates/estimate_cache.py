"""Cache of step estimates, shared by jobs of one model that differ in length, deadline, places or budget.

Time and memory of a step depend only on the machines, the work of one step, the training method and the corrections from
past runs, and each machine row is estimated independently. So one table per such key holds every row of a snapshot's
shapes, and a job's hours are steps x seconds of a step. The first job estimates the rows that it needs. The first job
that needs other rows fills the rest of a small table, since more such jobs will follow. The most recently used tables
stay within `MOST_TABLES` and `MOST_BYTES`. A job on more than `MOST_CACHED_NODES` nodes is estimated without the cache.
"""

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.candidates.node_counts import MachineCandidates, machine_candidates, pairs_of
from gpuplan.planner.model.job import Training
from gpuplan.planner.model.learned import LearnedCorrections
from gpuplan.planner.performance.corrected_estimates import PerStep, estimate_learned, per_step, whole
from gpuplan.planner.performance.estimator_request import Estimates, arrays_of
from gpuplan.planner.snapshot_cache import cached_per_snapshot
from gpuplan.planner.workload.step_work import Work

Ints = NDArray[np.int64]

#: Most cached tables, and their most bytes in total: one takes about 1 MiB over the shapes of three clouds.
MOST_TABLES = 64
MOST_BYTES = 64 * 1024 * 1024
#: Few jobs would use a table on more nodes, and it would displace many others: at 4,096 nodes it takes 100 MiB.
MOST_CACHED_NODES = 64
#: The most nodes of a table: the limit of a job that states none, or the most of any table.
_TABLE_NODES = (32, MOST_CACHED_NODES)
#: Most rows of a table that is filled at once: those of three clouds on `MOST_CACHED_NODES`, which takes about 15 ms.
_MOST_ROWS_AT_ONCE = 4096
#: The reason of a row that is not estimated yet; the estimator never returns it.
_NOT_ESTIMATED = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Able:
    """The rows of a table that can run its steps: those with `reason` 0. A small cache key for results of the table."""

    reason: Ints

    @staticmethod
    def of(reason: Ints) -> "Able":
        """One object for all tables with equal reasons, such as those of one model's batch sizes, so that caches are shared."""
        return _able(reason.tobytes())


#: As many as there are tables.
@lru_cache(maxsize=MOST_TABLES)
def _able(reason: bytes) -> Able:
    return Able(reason=np.frombuffer(reason, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Rows estimated so far (`done`) and their estimates; other rows have no meaning."""

    done: NDArray[np.bool_]
    estimates: PerStep
    able: Able
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Key:
    """Everything that a step depends on except its machine row; one object per distinct set, so comparisons are fast."""

    shapes: Shapes
    most_nodes: int
    step: Work
    training: Training
    learned: LearnedCorrections


#: More keys than tables, since a table is unreachable once its key is evicted.
@lru_cache(maxsize=256)
def _key(shapes: Shapes, most_nodes: int, step: Work, training: Training, learned: LearnedCorrections) -> _Key:
    return _Key(shapes=shapes, most_nodes=most_nodes, step=step, training=training, learned=learned)


#: A table counts as at least its share of the bytes, which limits the number of tables.
_tables: LRUCache[_Key, _Table] = LRUCache(
    MOST_BYTES, getsizeof=lambda table: max(table.nbytes, MOST_BYTES // MOST_TABLES)
)
_changing = threading.Lock()


def cached_estimates(
    shapes: Shapes,
    wanted: tuple[int, ...],
    max_nodes: int,
    work: Work,
    training: Training,
    *,
    goodput: float | None,
    learned: LearnedCorrections,
) -> tuple[MachineCandidates, Estimates, Able | None]:
    """Rows for the wanted shapes on up to `max_nodes` nodes, and estimates with an element for each of them.

    Other elements of the estimates have no meaning. The third result marks the rows that can run a step, one object for all
    jobs with equal rows; None if the estimates are not cached. Raises `UnusableInput` as `estimate` does.
    """
    if max_nodes > MOST_CACHED_NODES:
        rows = machine_candidates(shapes, wanted, max_nodes)
        return rows, estimate_learned(work, training, rows.machines, goodput=goodput, learned=learned), None
    most = next(nodes for nodes in _TABLE_NODES if nodes >= max_nodes)
    rows, used = _rows_in(shapes, wanted, max_nodes, most)
    # A step does not depend on the length of the job nor on its assumptions.
    step = replace(work, units_total=work.units_per_step, assumptions=())
    key = _key(shapes, most, step, training, learned)
    with _changing:
        table = _tables.get(key)
    missing = used if table is None else used[~table.done[used]]
    if table is None or len(missing):
        if table is not None and len(table.done) <= _MOST_ROWS_AT_ONCE:
            missing = np.flatnonzero(~table.done)
        table = _grown(key, table, missing, rows)
        if table.nbytes <= _tables.maxsize:
            with _changing:
                _tables[key] = table
    return rows, _of_job(table.estimates, work.steps, goodput), table.able


def _of_job(per_step: PerStep, steps: float, goodput: float | None) -> Estimates:
    """The estimates of a job."""
    return whole(per_step, steps, goodput)


@lru_cache(maxsize=256)
def _rows_in(
    shapes: Shapes, wanted: tuple[int, ...], max_nodes: int, most_nodes: int
) -> tuple[MachineCandidates, Ints]:
    """The pairs of `machine_candidates` with their rows in the table of all shapes, and the distinct rows."""
    table = _all_rows(shapes, most_nodes)
    shape, nodes, first = pairs_of(shapes, wanted, max_nodes)
    # Pairs are sorted by shape and then nodes, so that a pair is found by bisection.
    width = int(table.nodes.max(initial=0)) + 1
    row = table.row[np.searchsorted(table.shape * width + table.nodes, shape * width + nodes)]
    used = np.zeros(len(table.machines), np.bool_)
    used[row] = True
    return MachineCandidates(machines=table.machines, shape=shape, nodes=nodes, row=row, first=first), np.flatnonzero(
        used
    )


def prepare_rows(shapes: Shapes) -> None:
    """List the rows of the tables before the first question about these shapes."""
    for most_nodes in _TABLE_NODES:
        _all_rows(shapes, most_nodes)


@cached_per_snapshot(len(_TABLE_NODES))
def _all_rows(shapes: Shapes, most_nodes: int) -> MachineCandidates:
    """The rows of every shape on up to `most_nodes` nodes, which is one of `_TABLE_NODES`."""
    return machine_candidates(shapes, tuple(range(len(shapes))), most_nodes)


def _grown(key: _Key, table: _Table | None, missing: Ints, rows: MachineCandidates) -> _Table:
    """A copy of the table with the missing rows estimated; other threads may still read the given table."""
    machines = rows.machines
    new_rows = per_step(key.step, key.training, machines.take(missing), learned=key.learned)
    done = np.zeros(len(machines), np.bool_) if table is None else table.done.copy()
    done[missing] = True
    before = None if table is None else table.estimates
    grown = _scattered(before, new_rows, missing, len(machines))
    return _Table(done=done, estimates=grown, able=Able.of(grown.estimates.reason), nbytes=grown.nbytes())


def _scattered(before: PerStep | None, per_step: PerStep, at: Ints, count: int) -> PerStep:
    """The new estimates written to rows `at` of `count` rows, together with the earlier ones."""

    def put(old: NDArray[Any] | None, new: NDArray[Any], empty: int = 0) -> NDArray[Any]:
        result = np.full(count, empty, new.dtype) if old is None else old.copy()
        result[at] = new
        return result

    old = None if before is None else before.estimates
    arrays: dict[str, Any] = {
        name: put(
            None if old is None else getattr(old, name),
            getattr(per_step.estimates, name),
            _NOT_ESTIMATED if name == "reason" else 0,
        )
        for name in arrays_of(per_step.estimates)
    }
    terms = {
        name: put(None if old is None else old.terms[name], term) for name, term in per_step.estimates.terms.items()
    }
    return PerStep(
        estimates=replace(per_step.estimates, **arrays, terms=terms),
        plain_seconds=put(None if before is None else before.plain_seconds, per_step.plain_seconds),
        factor=None if per_step.factor is None else put(None if before is None else before.factor, per_step.factor),
    )
