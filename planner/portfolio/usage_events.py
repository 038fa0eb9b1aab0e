"""The slots at which use of a pool changes, as rows of the time-indexed model (`gpuplan.planner.portfolio.time_indexed_model`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.portfolio_instance import Columns, Floats, Instance, Ints

Triples = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Events:
    """Events: e is (`pool`, `slot`), with the least `capacity` until the next event, in slot `tightest`.

    `changes`: event, column index, and units of every start (+) and end (-).
    """

    pool: Ints
    slot: Ints
    capacity: Floats
    tightest: Ints
    changes: Triples

    def in_use(self, x: Floats) -> Floats:
        """Units in use from each event on for shares `x` of the columns."""
        event, column, units = self.changes
        change = np.zeros(len(self.slot))
        np.add.at(change, event, units * x[column])
        total = np.cumsum(change)
        first = np.flatnonzero(np.diff(self.pool, prepend=-1))
        before = np.where(first > 0, total[first - 1], 0.0)
        use: Floats = np.maximum(0.0, total - np.repeat(before, np.diff(np.append(first, len(total)))))
        return use


def events_of(instance: Instance, columns: Columns, at: Ints, left: Floats, *, every_slot: bool) -> Events:
    """The events of these columns in finite pools."""
    limited = np.isfinite(left).any(axis=1)
    width = instance.slots + 1
    keys: list[Ints] = []
    which: list[Ints] = []
    units: list[Floats] = []
    configuration = columns.configuration[at]
    for use in range(instance.pool.shape[1]):
        pool, drawn = instance.pool[configuration, use], instance.units[configuration, use]
        mine = np.flatnonzero(limited[pool] & (drawn > 0))
        for moment, sign in ((columns.start, 1.0), (columns.end, -1.0)):
            keys.append(pool[mine] * width + moment[at[mine]])
            which.append(mine)
            units.append(sign * drawn[mine])
    key = np.concatenate(keys)
    if every_slot:
        used = np.unique(key // width)
        every = np.unique(np.concatenate((key, (used[:, None] * width + np.arange(instance.slots)).reshape(-1))))
        event = np.searchsorted(every, key)
    else:
        every, event = np.unique(key, return_inverse=True)
    pool, slot = every // width, every % width
    capacity, tightest = _least_left(left, pool, slot)
    changes = event.reshape(-1).astype(np.int64), np.concatenate(which), np.concatenate(units)
    return Events(pool=pool, slot=slot, capacity=capacity, tightest=tightest, changes=changes)


def _least_left(left: Floats, pool: Ints, slot: Ints) -> tuple[Floats, Ints]:
    """The least capacity from each event to the next of its pool, and its slot; nothing runs after the last event."""
    capacity, tightest = np.full(len(slot), np.inf), np.minimum(slot, left.shape[1] - 1)
    for event in range(len(slot) - 1):
        if pool[event + 1] == pool[event]:
            part = left[pool[event], slot[event] : slot[event + 1]]
            least = int(part.argmin())
            capacity[event], tightest[event] = max(0.0, float(part[least])), slot[event] + least
    return capacity, tightest


def binding(instance: Instance, columns: Columns, at: Ints, events: Events) -> NDArray[np.bool_]:
    """Events whose capacity could be exceeded, by the most units that each job can use."""
    most = np.zeros(len(instance.capacity))
    for pool in np.unique(events.pool).tolist():
        size = np.where(instance.pool == pool, instance.units, 0.0).sum(axis=1)[columns.configuration[at]]
        largest = np.zeros(instance.jobs)
        np.maximum.at(largest, columns.job[at], size)
        most[pool] = largest.sum()
    could: NDArray[np.bool_] = (most[events.pool] > events.capacity) & np.isfinite(events.capacity)
    return could


def chain(events: Events, first_row: int, first_variable: int) -> list[Triples]:
    """The rows use_r_t: the changes at an event, and the use before and after it."""
    event, column, units = events.changes
    every = np.arange(len(events.slot))
    follows = np.flatnonzero(events.pool[1:] == events.pool[:-1]) if len(every) else every
    return [
        (first_row + event, column, units),
        (first_row + every, first_variable + every, -np.ones(len(every))),
        (first_row + follows + 1, first_variable + follows, np.ones(len(follows))),
    ]
