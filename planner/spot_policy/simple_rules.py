"""Simple rules to compare a policy with: on-demand alone, greedy, and Uniform Progress.

All keep enough time for on-demand: as soon as another step without progress could make on-demand too late, they switch to
it until the end. With several zones the rules stay where they run as long as it is up, and otherwise take the place that
is up and cheapest per unit of work. Uniform Progress is re-implemented from its description (Wu et al., Can't Be Late,
NSDI 2024, section 5.2.2): spot whenever it is up; idle and behind the straight line from start to deadline, on-demand; on
on-demand, until ahead of where the line will be two changeovers later. `waits` is the stricter reading of that last
rule: spot that comes up is not taken either before the line is passed.
"""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import SpotTerms

if TYPE_CHECKING:
    from gpuplan.planner.spot_policy.trace_replay import RunState

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

_WAITING = -1
_TOLERANCE = 1e-9


@lru_cache(maxsize=64)
def _hours_and_speeds(terms: SpotTerms) -> tuple[Floats, Floats]:
    """Changeover hours from place to place, and speeds, on-demand last."""
    places = range(len(terms.places) + 1)
    hours = np.array([[terms.moving_hours(i, j) for j in places] for i in places])
    return hours, np.array([*(place.speed for place in terms.places), 1.0])


def must_rescue(terms: SpotTerms, seen: "RunState", target: Ints) -> Flags:
    """Whether a step towards `target` could leave too little time for on-demand, in real time.

    A step on a place that is up counts as progress only as far as a checkpoint saves it by the end of the step: the next
    preemption takes the rest.
    """
    demand, step = len(terms.places), terms.step_hours
    hours, speeds = _hours_and_speeds(terms)
    home = np.where(target >= 0, target, seen.home)
    stays = target == seen.place
    to_go = np.where(stays, seen.to_go_hours, hours[seen.home, home])
    ran = np.where(target >= 0, np.maximum(step - to_go, 0.0), 0.0)
    after = seen.work_hours - ran * speeds[home]
    unsaved = np.where(stays & (target >= 0), seen.saved_work_hours, seen.work_hours)
    # Finishing within the step is not always in time: the last step may reach beyond the deadline.
    left_work = np.where(ran >= terms.checkpoint_every_hours, np.maximum(after, 0.0), unsaved)
    late = seen.left_hours - step < left_work + hours[home, demand] - _TOLERANCE
    ends = (target >= 0) & (to_go + seen.work_hours / speeds[home] <= min(step, seen.left_hours) + _TOLERANCE)
    return np.asarray((target != demand) & late & ~ends)


class Guarded(ABC):
    """A rule that always keeps enough time for on-demand."""

    def __init__(self, terms: SpotTerms) -> None:
        self.terms = terms
        self.demand = len(terms.places)
        worth = [place.usd_per_hour / place.speed for place in terms.places]
        self.order = np.argsort(worth, kind="stable")
        self.bound: Flags | None = None

    def decide(self, seen: "RunState") -> Ints:
        """The place that the rule prefers, or on-demand for good once time is short."""
        target = self._prefer(seen)
        if self.bound is None:
            self.bound = np.zeros(len(target), np.bool_)
        self.bound |= must_rescue(self.terms, seen, target)
        return np.where(self.bound, self.demand, target)

    @abstractmethod
    def _prefer(self, seen: "RunState") -> Ints:
        """The preferred zone, `demand` for on-demand, or `_WAITING`, regardless of the time left."""

    def _spot(self, seen: "RunState") -> Ints:
        """The preferred zone, or `_WAITING` if none is up."""
        best = np.full(len(seen.place), _WAITING)
        for zone in self.order[::-1]:
            best = np.where(seen.up[:, zone], zone, best)
        return np.where((seen.place >= 0) & (seen.place < self.demand), seen.place, best)


class OnDemand(Guarded):
    """On-demand from start to end."""

    def _prefer(self, seen: "RunState") -> Ints:
        return np.full(len(seen.place), self.demand)


class Greedy(Guarded):
    """Spot whenever it is up, else wait."""

    def _prefer(self, seen: "RunState") -> Ints:
        return self._spot(seen)


class UniformProgress(Guarded):
    """Spot whenever it is up, else follow the straight line from start to deadline."""

    def __init__(self, terms: SpotTerms, *, waits: bool = False) -> None:
        super().__init__(terms)
        self.waits = waits

    def _prefer(self, seen: "RunState") -> Ints:
        terms = self.terms
        passed = terms.deadline_hours - seen.left_hours
        done = terms.work_hours - seen.work_hours
        work_per_hour = terms.work_hours / terms.deadline_hours
        behind = done < passed * work_per_hour - _TOLERANCE
        ahead = done >= (passed + 2 * terms.changeover_hours) * work_per_hour - _TOLERANCE
        spot = self._spot(seen)
        idle_or_demand = np.where(seen.place == self.demand, np.where(ahead, _WAITING, self.demand), _WAITING)
        without = np.where((seen.place != self.demand) & behind, self.demand, idle_or_demand)
        stays = (seen.place == self.demand) & ~ahead if self.waits else np.zeros(len(spot), np.bool_)
        return np.where((spot >= 0) & ~stays, spot, without)
