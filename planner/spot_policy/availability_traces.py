"""When interruptible machines were available: availability over time, zone by zone, on one grid.

A zone counts as up in a step only if it was up (for all requested nodes) during the whole step. So moving a
trace to a coarser grid, or to one that does not align, never invents availability.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.errors import UnusableInput

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Probes rarely come more often, and a finer grid only costs time.
DEFAULT_STEP_HOURS = 1 / 12
#: A step per minute for five years; more fills the memory.
MOST_STEPS = 3_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """One zone's history: `available[i]` nodes were available from `i` to `i + 1` times `step_hours`."""

    name: str
    step_hours: float
    available: Ints

    @property
    def hours(self) -> float:
        """The length of the history."""
        return len(self.available) * self.step_hours

    def up(self, nodes: int, step_hours: float) -> Flags:
        """Whether `nodes` were available, per step of `step_hours`: [whole steps in the trace].

        Raises `UnusableInput` if there are more than `MOST_STEPS` steps.
        """
        if self.hours / step_hours > MOST_STEPS:
            message = f"{self.name} covers {self.hours:.4g} h, too many steps of {step_hours * 60:.3g} min; give shorter traces"
            raise UnusableInput.at("traces", message=message)
        steps = math.floor(self.hours / step_hours + 1e-9)
        edges = np.arange(steps + 1) * (step_hours / self.step_hours)
        first = np.floor(edges[:-1] + 1e-9).astype(np.int64)
        last = np.minimum(np.ceil(edges[1:] - 1e-9).astype(np.int64), len(self.available))
        missing = np.concatenate(([0], np.cumsum(self.available < nodes)))
        return np.asarray(missing[last] == missing[first])


def windows(traces: Sequence[Trace], *, nodes: int, step_hours: float, hours: float, starts: int, seed: int) -> Flags:
    """`starts` random windows of `hours`, at the same times in every trace: [starts, steps, traces].

    All traces are assumed to start together. Raises `UnusableInput` if the shortest is shorter than a window.
    """
    steps = math.ceil(hours / step_hours - 1e-9)
    watched = [trace.up(nodes, step_hours) for trace in traces]
    room = min(len(up) for up in watched) - steps
    if room < 0:
        shortest = min(traces, key=lambda trace: trace.hours)
        message = f"{shortest.name} covers {shortest.hours:.4g} h, but a run may take {hours:.4g} h; give longer traces"
        raise UnusableInput.at("traces", message=message)
    begins = np.random.default_rng(seed).integers(0, room + 1, starts)
    return np.stack([np.stack([up[at : at + steps] for up in watched], axis=1) for at in begins])
