"""Time and memory of a step, kept: what jobs of one model share that differ in length, deadline, places or budget.

A step's time and memory rest on the machines, the work of one step, how it is trained and what past runs teach, and on
nothing else; each machine row is estimated for itself. So one table per such key holds every row of a snapshot's shapes,
and a job's hours are steps x seconds of a step. The first job that asks is answered from the rows that it needs; the first
that needs others has the rest of a small table filled in with them, since more such jobs will come. A few tables are
kept, the last used ones, within `MOST_BYTES`. A job on more than `MOST_NODES_KEPT` nodes is estimated for itself.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.machine_rows import MachineRows, machine_rows, pairs_of
from planner.candidates.shapes import Shapes
from planner.estimate.corrected import PerStep, estimate_learned, per_step, whole
from planner.estimate.learned import Learned
from planner.estimate.machines import Estimates, arrays_of
from planner.job import Training
from planner.workload.work import Work

Ints = NDArray[np.int64]

#: Tables kept at most, and together at most this much: one is about 1 MiB over the shapes of three clouds.
MOST_TABLES = 64
MOST_BYTES = 64 * 1024 * 1024
#: Node counts that a table has at least: what a job asks about that names no limit.
_LEAST_NODES = 32
#: A table on more nodes would be used by few jobs and take the room of many: at 4,096 nodes it has 100 MiB.
MOST_NODES_KEPT = 64
#: Rows of a table that is filled in at once: those of three clouds on as many nodes, which takes about 15 ms.
_MOST_ROWS_AT_ONCE = 4096
#: What a row says that nobody asked about; no reason that the estimator gives.
_NOT_ASKED = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Able:
    """Which rows of a table can run such steps: those of `reason` 0. A small part of it, for what is kept beside tables."""

    reason: Ints

    @staticmethod
    def of(reason: Ints) -> "Able":
        """One object for tables that agree in this, as those of one model's batches do: what is kept serves all of them."""
        return _able(reason.tobytes())


#: As many as there are tables.
@lru_cache(maxsize=MOST_TABLES)
def _able(reason: bytes) -> Able:
    return Able(reason=np.frombuffer(reason, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Rows estimated so far (`done`), and what was found; other rows mean nothing."""

    done: NDArray[np.bool_]
    found: PerStep
    able: Able
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Key:
    """All that a step rests on but its machine row; one object for one set of it, so that it is compared in no time."""

    shapes: Shapes
    most_nodes: int
    step: Work
    training: Training
    learned: Learned


#: More keys than tables: a key that is forgotten takes its table's use with it, not what it says.
@lru_cache(maxsize=256)
def _key(shapes: Shapes, most_nodes: int, step: Work, training: Training, learned: Learned) -> _Key:
    return _Key(shapes=shapes, most_nodes=most_nodes, step=step, training=training, learned=learned)


_tables: OrderedDict[_Key, _Table] = OrderedDict()
_changing = threading.Lock()


def kept_estimates(
    shapes: Shapes,
    wanted: tuple[int, ...],
    max_nodes: int,
    work: Work,
    training: Training,
    *,
    goodput: float,
    learned: Learned,
) -> tuple[MachineRows, Estimates, Able | None]:
    """Rows for the wanted shapes on up to `max_nodes` nodes, and estimates that have an element for each of them.

    Other elements of the estimates mean nothing. Last comes which rows can run a step, one object for all jobs alike in
    that; None where nothing is kept. Raises `UnusableInput` as `estimate` does.
    """
    if max_nodes > MOST_NODES_KEPT:
        rows = machine_rows(shapes, wanted, max_nodes)
        return rows, estimate_learned(work, training, rows.machines, goodput=goodput, learned=learned), None
    most = max(_LEAST_NODES, 1 << (max_nodes - 1).bit_length())
    rows, used = _rows_in(shapes, wanted, max_nodes, most)
    # What a step rests on: neither the length of the job nor what is said of it.
    step = replace(work, units_total=work.units_per_step, assumptions=())
    key = _key(shapes, most, step, training, learned)
    table = _tables.get(key)
    missing = used if table is None else used[~table.done[used]]
    if table is None or len(missing):
        if table is not None and len(table.done) <= _MOST_ROWS_AT_ONCE:
            missing = np.flatnonzero(~table.done)
        table = _grown(key, table, missing, rows)
        _keep(key, table)
    else:
        _used(key)
    return rows, _of_job(table.found, work.steps, goodput), table.able


@lru_cache(maxsize=8)
def _of_job(found: PerStep, steps: float, goodput: float) -> Estimates:
    """Markets with the same shapes have one object in common."""
    return whole(found, steps, goodput)


@lru_cache(maxsize=256)
def _rows_in(shapes: Shapes, wanted: tuple[int, ...], max_nodes: int, most_nodes: int) -> tuple[MachineRows, Ints]:
    """The pairs of `machine_rows` with their places in the table of all shapes, and those places, each once."""
    table = _all_rows(shapes, most_nodes)
    shape, nodes, first = pairs_of(shapes, wanted, max_nodes)
    # Pairs are sorted by shape and then nodes, so that a pair is found by bisection.
    width = int(table.nodes.max(initial=0)) + 1
    row = table.row[np.searchsorted(table.shape * width + table.nodes, shape * width + nodes)]
    used = np.zeros(len(table.machines), np.bool_)
    used[row] = True
    return MachineRows(machines=table.machines, shape=shape, nodes=nodes, row=row, first=first), np.flatnonzero(used)


@lru_cache(maxsize=32)
def _all_rows(shapes: Shapes, most_nodes: int) -> MachineRows:
    return machine_rows(shapes, tuple(range(len(shapes))), most_nodes)


def _grown(key: _Key, table: _Table | None, missing: Ints, rows: MachineRows) -> _Table:
    """The table with the missing rows estimated; the one given stays as it is, for whoever reads it."""
    machines = rows.machines
    found = per_step(key.step, key.training, machines.take(missing), learned=key.learned)
    done = np.zeros(len(machines), np.bool_) if table is None else table.done.copy()
    done[missing] = True
    before = None if table is None else table.found
    grown = _scattered(before, found, missing, len(machines))
    return _Table(done=done, found=grown, able=Able.of(grown.estimates.reason), nbytes=grown.nbytes())


def _scattered(before: PerStep | None, found: PerStep, at: Ints, count: int) -> PerStep:
    """What was found put in its places among `count`, beside what was there."""

    def put(old: NDArray[Any] | None, new: NDArray[Any], empty: int = 0) -> NDArray[Any]:
        result = np.full(count, empty, new.dtype) if old is None else old.copy()
        result[at] = new
        return result

    old = None if before is None else before.estimates
    arrays: dict[str, Any] = {
        name: put(
            None if old is None else getattr(old, name),
            getattr(found.estimates, name),
            _NOT_ASKED if name == "reason" else 0,
        )
        for name in arrays_of(found.estimates)
    }
    terms = {name: put(None if old is None else old.terms[name], each) for name, each in found.estimates.terms.items()}
    return PerStep(
        estimates=replace(found.estimates, **arrays, terms=terms),
        plain_seconds=put(None if before is None else before.plain_seconds, found.plain_seconds),
        factor=None if found.factor is None else put(None if before is None else before.factor, found.factor),
    )


def _used(key: _Key) -> None:
    """Note that the table was used, unless it has been forgotten meanwhile."""
    with _changing:
        if key in _tables:
            _tables.move_to_end(key)


def _keep(key: _Key, table: _Table) -> None:
    """Keep the table as the last used one, and forget those used longest ago beyond what may be kept."""
    with _changing:
        _tables[key] = table
        _tables.move_to_end(key)
        size = sum(each.nbytes for each in _tables.values())
        while len(_tables) > 1 and (len(_tables) > MOST_TABLES or size > MOST_BYTES):
            _, oldest = _tables.popitem(last=False)
            size -= oldest.nbytes
