"""Rules that follow a capacity ladder: its choices in order, each for the time of a try, at the start and after a preemption.

The places of a run's terms are the choices of a ladder, `len(places)` is the on-demand machine that keeps the deadline.
Machines of a permanent place are not interruptible: the run stays on them to its end. A request for a permanent place may be
refused, at every step anew. All rules switch to on-demand while there is time for it, and if that is refused go on as
before until the next step.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.spot_policy.run_parameters import SpotTerms
from gpuplan.planner.spot_policy.simple_rules import Guarded, must_rescue
from gpuplan.planner.spot_policy.trace_replay import WAITING, RunState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Seed of the refusals: the same for all rules.
_SEED = 7
_DONE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderTerms:
    """A run with its ladder: `order` are places, `permanent` [places + 1] says which are not interruptible.

    A choice is tried for `try_hours`. Each request for a permanent place is refused with the probability `refused`.
    """

    run: SpotTerms
    order: tuple[int, ...]
    permanent: tuple[bool, ...]
    try_hours: float
    refused: float = 0.0


class LadderOnce(Guarded):
    """The ladder once: from its top at the start and after every preemption; the last choice is waited for and kept."""

    def __init__(self, terms: LadderTerms) -> None:
        super().__init__(terms.run)
        self.ladder = np.array(self._choices(terms))
        self.tries, self.try_hours = self._tries(terms), terms.try_hours
        self.permanent, self.refused = np.array(terms.permanent), terms.refused
        self.draw = np.random.default_rng(_SEED)
        self.stage, self.tried = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.preferred, self.granted = self.stage, np.zeros((0, 0), np.bool_)

    def _choices(self, terms: LadderTerms) -> Sequence[int]:
        """The places to try in turn."""
        return terms.order

    def _tries(self, terms: LadderTerms) -> int:
        """Steps for which one choice is tried."""
        return max(1, round(terms.try_hours / terms.run.step_hours))

    def decide(self, seen: RunState) -> Ints:
        """As the ladder says, unless time is short."""
        refused = self.draw.random((len(seen.place), len(self.permanent))) < self.refused
        self.granted = ~self.permanent | ~refused
        target = super().decide(seen)
        denied = (target == self.demand) & (seen.place != self.demand) & ~self.granted[:, self.demand]
        return np.where(denied, np.where(self.preferred == self.demand, seen.place, self.preferred), target)

    def _prefer(self, seen: RunState) -> Ints:
        rows = np.arange(len(seen.place))
        if not len(self.stage):
            self.stage, self.tried = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        idle = seen.place == WAITING
        wanted = self.ladder[self.stage]
        obtainable = np.hstack((seen.up, np.ones((len(rows), 1), np.bool_))) & self.granted
        gets = idle & obtainable[rows, wanted]
        self.tried = np.where(gets, 0, self.tried + (idle & ~gets))
        moves_on = self.tried >= self.tries
        self.stage = np.where(gets, 0, self._next_stage(self.stage + moves_on))
        self.tried = np.where(moves_on, 0, self.tried)
        self.preferred = np.where(gets, wanted, seen.place)
        return self.preferred

    def _next_stage(self, stage: Ints) -> Ints:
        return np.minimum(stage, len(self.ladder) - 1)


class LadderAgain(LadderOnce):
    """The ladder without its last choice, again and again from its top; on-demand only when time is short.

    A run without machines asks for on-demand the time of a try before that, because on-demand may be refused too.
    """

    def _choices(self, terms: LadderTerms) -> Sequence[int]:
        return terms.order[:-1] or terms.order

    def _next_stage(self, stage: Ints) -> Ints:
        return np.asarray(stage % len(self.ladder))

    def _prefer(self, seen: RunState) -> Ints:
        target = super()._prefer(seen)
        sooner = must_rescue(self.terms, replace(seen, left_hours=seen.left_hours - self.try_hours), target)
        return np.where((target == WAITING) & sooner, self.demand, target)


class FirstOnly(LadderOnce):
    """The first choice alone, waited for; on-demand only when time is short."""

    def _choices(self, terms: LadderTerms) -> Sequence[int]:
        return terms.order[:1]

    def _tries(self, terms: LadderTerms) -> int:
        return sys.maxsize


class OnDemandOnly(LadderOnce):
    """On-demand from the start."""

    def _choices(self, terms: LadderTerms) -> Sequence[int]:
        return (len(terms.run.places),)


#: The rules that are compared, by the names of an answer.
LADDER_RULES: dict[str, Callable[[LadderTerms], LadderOnce]] = {
    "ladder": LadderAgain,
    "ladder, last choice kept": LadderOnce,
    "first choice only": FirstOnly,
    "cheapest on demand": OnDemandOnly,
}


class Watched:
    """A rule with a record: per run the first place obtained and when, hours at every place, and hours to the end."""

    def __init__(self, rule: LadderOnce) -> None:
        self.rule, self.step_hours = rule, rule.terms.step_hours
        self.first, self.first_hours = np.zeros(0, np.int64), np.zeros(0)
        self.place_hours, self.live_hours = np.zeros((0, 0)), np.zeros(0)

    def decide(self, seen: RunState) -> Ints:
        """What the rule decides, recorded."""
        target = self.rule.decide(seen)
        if not len(self.first):
            runs = len(target)
            self.first, self.first_hours = np.full(runs, WAITING), np.zeros(runs)
            self.place_hours, self.live_hours = np.zeros((runs, self.rule.demand + 1)), np.zeros(runs)
        live = seen.work_hours > _DONE
        starts = live & (self.first == WAITING) & (target != WAITING)
        self.first = np.where(starts, target, self.first)
        self.first_hours = np.where(starts, self.live_hours, self.first_hours)
        runs_on = live & (target != WAITING)
        self.place_hours[np.flatnonzero(runs_on), target[runs_on]] += self.step_hours
        self.live_hours = self.live_hours + live * self.step_hours
        return target
